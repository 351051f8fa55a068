// Opens a route from its configuration.
//
// Only this file knows the kinds of routes and their protocols; all other code uses `Route`.

import type { Clock } from "../../core/clock.ts";
import type { RouteConfig } from "../../core/configuration/configuration.ts";
import { isOnFastPath } from "../../core/configuration/fast-path.ts";
import { routeHeadersProblem } from "../../core/configuration/route-headers.ts";
import { ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { quicheHint } from "../../core/quic/quiche.ts";
import type { Route, RouteCapabilities, SendMode } from "../submission/types.ts";
import { altPartnerDialect } from "./alt-partner.ts";
import { blockEngineDialect } from "./block-engine.ts";
import type { Dialect } from "./dialect.ts";
import { type EndpointPlan, type FastRoutes, HttpRoute } from "./http-route.ts";
import type { PartnerEndpointOptions } from "./partner-endpoint.ts";
import type { PartnerNetwork } from "./partner-network.ts";
import { schedulerDialect } from "./scheduler.ts";
import { swqosDialect } from "./swqos-rpc.ts";

const packetBytesMax = 1232;
const v1TransactionBytesMax = 4096;

interface RouteDependencies {
  readonly clock: Clock;
  readonly log?: Logger | undefined;
  /** Sends through routes without TLS before requests are read; absent: the fast path is off. */
  readonly fastPath?: FastRoutes | undefined;
  /** Default: the kernel's. */
  readonly network?: PartnerNetwork | undefined;
  /** Opens routes over QUIC (tpu-route.ts); null: not supported here. Throws like openRoute. */
  readonly openTpu?: ((config: RouteConfig) => Route) | null | undefined;
}

/** null: the kind does not use HTTP. */
function dialectOf(config: RouteConfig, url: URL): Dialect | null {
  switch (config.kind) {
    case "swqos":
      return swqosDialect(url, config.callsPerRequest);
    case "block-builder":
      return blockEngineDialect(url);
    case "scheduler":
      return schedulerDialect(url, config);
    case "alt-partner":
      return altPartnerDialect(url, config.callsPerRequest);
    case "tpu":
      return null;
  }
}

function capabilitiesOf(config: RouteConfig): RouteCapabilities {
  const { name, kind, mevSafe, leaders, transactions, bundles } = config;
  const isBuilder = kind === "block-builder";
  const modes: SendMode[] = [
    ...(transactions ? (["transaction"] as const) : []),
    ...(isBuilder && bundles ? (["bundle"] as const) : []),
  ];
  return {
    name,
    kind,
    modes,
    transactionBytesMax:
      config.transactionBytesMax ?? (isBuilder ? packetBytesMax : v1TransactionBytesMax),
    mevSafe,
    minimumTipLamports: BigInt(config.minimumTipLamports),
    leaders: leaders ? new Set(Object.keys(leaders)) : null,
  };
}

function refused({ name }: RouteConfig, message: string): ShredwayError {
  return new ShredwayError("config_invalid", `route ${name}: ${message}`);
}

function isOverQuic({ kind, quicPorts }: RouteConfig): boolean {
  return kind === "tpu" || (kind === "alt-partner" && quicPorts !== undefined);
}

/**
 * Opens a route. It connects when the first transaction is sent, or, over QUIC, before a leader's
 * slots. Throws ShredwayError "config_invalid".
 */
export function openRoute(
  config: RouteConfig,
  { clock, log, openTpu, fastPath, network }: RouteDependencies,
): Route {
  if (isOverQuic(config)) {
    if (openTpu) return openTpu(config);
    throw refused(config, `QUIC is not available; ${quicheHint}`);
  }
  const problem = routeHeadersProblem(config.headers);
  if (problem !== null) throw refused(config, problem);
  const { name, headers, connections, queueMax, timeoutMs } = config;
  const endpointTo = (text: string): PartnerEndpointOptions => {
    const url = new URL(text);
    const dialect = dialectOf(config, url);
    if (!dialect) throw refused(config, `expected a kind of route over HTTP, got ${config.kind}`);
    return { name, url, headers, dialect, connections, queueMax, timeoutMs };
  };
  const { url, leaders } = config;
  if (url === undefined && !leaders) {
    throw refused(config, "expected url or leaders, got neither; set one of them");
  }
  const plan: EndpointPlan =
    url === undefined
      ? {
          byLeader: new Map(
            Object.entries(leaders ?? {}).map(([leader, port]) => [leader, endpointTo(port)]),
          ),
        }
      : { all: endpointTo(url) };
  return new HttpRoute(capabilitiesOf(config), plan, {
    clock,
    log,
    fastPath: isOnFastPath(config) ? fastPath : undefined,
    network,
  });
}
