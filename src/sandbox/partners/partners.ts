// SandboxPartners: the HTTP partners of the gateway's routes, on the chain of the sandbox.
//
// Opened by the sandbox and by tests. They are HTTP servers on one host, on ports chosen by the
// kernel, and the chain executes their transactions. `routeConfigs` is the configuration that
// reaches all of them.

import type { Clock } from "../../core/clock.ts";
import type { completeConfig } from "../../core/configuration/configuration.ts";
import type { Logger } from "../../core/log.ts";
import { SandboxKeyPair } from "../chain/keys.ts";
import type { ChainApi } from "../chain/types.ts";
import { altPartner } from "./alt-partner.ts";
import { BlockEngine } from "./block-engine.ts";
import { type PartnerHandler, PartnerServer } from "./partner-endpoint.ts";
import { schedulerPartner, swqosPartner } from "./swqos.ts";

const blockEngineTipLamports = 1000n;
const altPartnerTipLamports = 100_000;

/** A route in the format of completeConfig. */
export type RouteInput = NonNullable<Parameters<typeof completeConfig>[0]["routes"]>[number];

interface SandboxPartnersOptions {
  /** Address without a port. Default "127.0.0.1". */
  readonly host?: string;
  /** Tip addresses of bundles in base58. Default: one generated address. */
  readonly tipAddresses?: readonly string[];
  readonly log?: Logger | undefined;
}

/** Endpoints, each with its faults and counts. */
interface PartnerEndpoints {
  readonly swqos: PartnerServer;
  readonly blockEngine: PartnerServer;
  readonly scheduler: PartnerServer;
  /** Endpoints by identity of the validator (base58). */
  readonly altPartners: ReadonlyMap<string, PartnerServer>;
}

export class SandboxPartners implements PartnerEndpoints {
  readonly tipAddresses: readonly string[];
  readonly swqos: PartnerServer;
  readonly blockEngine: PartnerServer;
  readonly scheduler: PartnerServer;
  readonly altPartners: ReadonlyMap<string, PartnerServer>;
  readonly #unsubscribe: () => void;

  /** Throws ShredwayError "address_invalid" or "http_open"; everything is closed then. */
  static async open(
    chain: ChainApi,
    clock: Clock,
    options: SandboxPartnersOptions = {},
  ): Promise<SandboxPartners> {
    const { host = "127.0.0.1", log } = options;
    const tipAddresses = options.tipAddresses ?? [SandboxKeyPair.named(0, "tip account 0").address];
    const opened: PartnerServer[] = [];
    const open = async (handler: PartnerHandler): Promise<PartnerServer> => {
      const endpoint = await PartnerServer.open(host, handler, { clock, log });
      opened.push(endpoint);
      return endpoint;
    };
    // The processed slot is the last complete one; an event gives the current one.
    let slot = chain.slot("processed");
    const unsubscribe = chain.subscribe((event) => {
      if (event.kind === "slot") slot = event.slot;
      else if (event.kind === "skipped" && event.slot > slot) slot = event.slot;
    });
    try {
      const engine = new BlockEngine(chain, {
        tipAddresses,
        minimumTipLamports: blockEngineTipLamports,
      });
      const altPartners = new Map<string, PartnerServer>();
      for (const { identity, isAltPartner } of chain.validators()) {
        if (!isAltPartner) continue;
        const port = altPartner(chain, { identity, tipAddresses, slot: () => slot });
        altPartners.set(identity, await open(port));
      }
      const endpoints = {
        swqos: await open(swqosPartner(chain)),
        blockEngine: await open(engine.handle),
        scheduler: await open(schedulerPartner(chain)),
        altPartners,
      };
      return new SandboxPartners(endpoints, tipAddresses, unsubscribe);
    } catch (thrown) {
      unsubscribe();
      for (const endpoint of opened) endpoint.close();
      throw thrown;
    }
  }

  private constructor(
    { swqos, blockEngine, scheduler, altPartners }: PartnerEndpoints,
    tipAddresses: readonly string[],
    unsubscribe: () => void,
  ) {
    this.swqos = swqos;
    this.blockEngine = blockEngine;
    this.scheduler = scheduler;
    this.altPartners = altPartners;
    this.tipAddresses = tipAddresses;
    this.#unsubscribe = unsubscribe;
  }

  get endpoints(): readonly PartnerServer[] {
    return [this.swqos, this.blockEngine, this.scheduler, ...this.altPartners.values()];
  }

  /** Value for the key `routes` of a configuration. */
  routeConfigs(): RouteInput[] {
    const leaders = Array.from(this.altPartners, ([identity, { url }]) => [identity, url] as const);
    const ported: RouteInput[] =
      leaders.length === 0
        ? []
        : [
            {
              name: "alt-partner",
              kind: "alt-partner",
              leaders: Object.fromEntries(leaders),
              mevSafe: true,
              minimumTipLamports: altPartnerTipLamports,
            },
          ];
    return [
      { name: "swqos", kind: "swqos", url: this.swqos.url, callsPerRequest: 16 },
      { name: "block-builder", kind: "block-builder", url: this.blockEngine.url, mevSafe: true },
      { name: "scheduler", kind: "scheduler", url: `${this.scheduler.url}/bytes`, format: "bytes" },
      ...ported,
    ];
  }

  /** Cuts all connections. Idempotent. */
  close(): void {
    this.#unsubscribe();
    for (const endpoint of this.endpoints) endpoint.close();
  }
}
