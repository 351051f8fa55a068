// Composition of the portal: the parts of the gateway, the relay and the store that it may use.
//
// Called by compose-gateway.ts before the gateway exists; functions that need the gateway are called when
// the first request arrives.

import { readOwnAddresses, senderAddresses } from "../core/addresses/own-addresses.ts";
import type { Clock } from "../core/clock.ts";
import type { Config } from "../core/configuration/configuration.ts";
import { type Logger, problemsOf } from "../core/log.ts";
import { packageVersion } from "../core/version.ts";
import {
  type ConnectionSnapshot,
  mergedConnections,
} from "../gateway/accounts/connection-records.ts";
import type { KeyRing } from "../gateway/accounts/key-ring.ts";
import type { Gateway } from "../gateway/endpoints/gateway.ts";
import type { GatewaySettings, ShredSales } from "../gateway/methods/dependencies.ts";
import type { RouteTable } from "../gateway/routes/route-table.ts";
import type { Submissions } from "../gateway/submission/types.ts";
import type { PortalGateway, ServiceFacts } from "../platform/portal/dependencies.ts";
import { pageFolder } from "../platform/portal/page-files.ts";
import { Portal } from "../platform/portal/portal.ts";
import type { Store } from "../platform/store/store.ts";
import type { RelayService } from "../relay/relay-service.ts";
import { destinationSettingsOf } from "../shreds/destinations/destination-rules.ts";
import type { TipStatistics } from "../tips/tip-statistics.ts";
import type { QuicService } from "./compose-quic.ts";
import type { GatewayService } from "./gateway-service.ts";
import { rateLimitOf } from "./gateway-settings.ts";
import type { NodeDirectory } from "./node-directory.ts";

interface PortalOptions {
  readonly config: Config;
  readonly relay?: RelayService;
  readonly log: Logger;
  readonly clock: Clock;
  readonly store: Store;
  readonly keyRing: KeyRing;
  readonly routes: RouteTable;
  readonly pipeline: Submissions;
  readonly tips: TipStatistics;
  readonly shreds: ShredSales | null;
  /** null: no other node uses the database. */
  readonly nodes: Pick<NodeDirectory, "regionProblem"> | null;
  /** null: no section `quic`. */
  readonly quic: QuicService | null;
  readonly settings: GatewaySettings;
  /** The current configuration, including reloaded keys. */
  readonly inForce: () => Config;
  /** Both functions exist when the first request arrives. */
  readonly gateway: () => Gateway;
  readonly service: () => GatewayService;
}

function portalGatewayOf(gateway: Gateway, inForce: () => Config): PortalGateway {
  const { callers, report } = gateway;
  return {
    addressOf: (head) => callers.addressOf(head),
    isProxied: (head) => callers.isProxied(head),
    check: (head, text, refuse) => callers.check(head, text, refuse),
    admit: (key, method) => gateway.contextOf(key).admit(method),
    dispatch: (key, method, params) => gateway.contextOf(key).dispatch(method, params),
    lastUseNs: (keyId) => callers.lastUseNs(keyId),
    limitOf: (key) => rateLimitOf(inForce(), key),
    report,
  };
}

function senderAddressesOf({ relay }: Config): readonly string[] {
  const { source } = relay.send;
  if (source !== undefined) return [source];
  return senderAddresses(readOwnAddresses(), relay.allowPrivateDestinations);
}

const noDelivery = { regions: [], perAccountMax: 0 };

type DeliveryOptions = Pick<PortalOptions, "shreds" | "inForce">;

function deliveryOf({ shreds, inForce }: DeliveryOptions): ReturnType<ServiceFacts["delivery"]> {
  return shreds ? destinationSettingsOf(inForce()) : noDelivery;
}

/** A sentence for each region that no running node serves. */
function regionProblemsOf(options: DeliveryOptions & Pick<PortalOptions, "nodes">): string[] {
  const { nodes } = options;
  if (!nodes) return [];
  return deliveryOf(options).regions.flatMap((region) => {
    const problem = nodes.regionProblem(region);
    return problem === null
      ? []
      : [`nodes: ${problem}; destinations of this region receive no shreds until one starts`];
  });
}

function serviceFactsOf(options: PortalOptions): ServiceFacts {
  const { config, relay, store, settings, service, inForce } = options;
  return {
    version: packageVersion(),
    region: config.regions.length > 0 ? settings.regions[0].name : null,
    node: config.data.postgres === undefined ? null : store.node,
    delivery: () => deliveryOf(options),
    submission: () => ({
      gatewayUrl: settings.regions[0].url,
      tipAddresses: settings.regions[0].tipAddresses,
      minimumTipLamports: Number(settings.minimumTipLamports),
    }),
    senderAddresses: () => senderAddressesOf(inForce()),
    leaders: () => relay?.leaders() ?? { slot: null, current: null },
    warnings: () => {
      const differences = service().readiness().nodeDifferences ?? [];
      const ofNodes = differences.map((text) => `nodes: ${text}`);
      const ofRegions = regionProblemsOf(options);
      return [...(relay?.warnings() ?? []), ...service().warnings(), ...ofNodes, ...ofRegions];
    },
  };
}

/** Connections over QUIC, then WebSockets. */
function connectionsOf({ quic, gateway }: PortalOptions): ConnectionSnapshot {
  const sockets = gateway().socketRecords;
  if (!quic) return sockets;
  const { connections, keys } = quic.ingress;
  return mergedConnections([{ connections, keys }, sockets]);
}

/** null: the portal is off. */
export function openPortal(options: PortalOptions): Portal | null {
  const { config, relay, log, clock, store, keyRing, routes, pipeline, tips, shreds } = options;
  if (!config.portal.enabled) return null;
  const problems = problemsOf(log);
  return new Portal({
    clock,
    log,
    sessionHours: config.portal.sessionHours,
    pageFolder,
    keys: keyRing,
    keyStore: store.keys,
    refreshKeys: () => options.service().refreshKeys(),
    gateway: () => portalGatewayOf(options.gateway(), options.inForce),
    service: serviceFactsOf(options),
    relay: relay ? () => relay.snapshot() : null,
    subscriptions: () => relay?.shredstream.statuses() ?? [],
    traceDelays: () => relay?.traces.delays() ?? [],
    shreds,
    shredTipAddresses: () => options.settings.regions[0].shredTipAddresses,
    tips,
    submissions: pipeline,
    submissionLists: store.submissions,
    routes: () => routes.snapshots(),
    connections: () => connectionsOf(options),
    streams: () => options.service().streamSnapshot(),
    problems: () => problems.list,
  });
}
