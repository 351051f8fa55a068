// HttpRoute: a Route over one or more partner endpoints.
//
// Opened by open-route.ts, with one endpoint for all leaders or one per leader. Counters, queue
// limit and name belong to the whole route.

import type { Clock } from "../../core/clock.ts";
import type { Logger } from "../../core/log.ts";
import type { RouteLoans } from "../fast-path/route-loans.ts";
import type { TakenRequest } from "../submission/taken-request.ts";
import type {
  OutboundTransaction,
  Route,
  RouteCapabilities,
  RouteSnapshot,
} from "../submission/types.ts";
import { PartnerEndpoint, type PartnerEndpointOptions } from "./partner-endpoint.ts";
import { kernelNetwork, type PartnerNetwork } from "./partner-network.ts";
import { RouteCounter } from "./route-counts.ts";

/** One usable endpoint suffices. */
const bestFirst = ["up", "unknown", "failing", "down"] as const;

interface HttpRouteDependencies {
  readonly clock: Clock;
  readonly log?: Logger | undefined;
  /** Absent: the fast path does not use the route. */
  readonly fastPath?: FastRoutes | undefined;
  /** Default: the kernel's. */
  readonly network?: PartnerNetwork | undefined;
}

/** Opens the loans of a route; null: the fast path is closed. */
export interface FastRoutes {
  openRoute(): RouteLoans | null;
}

/** Endpoints by leader (base58), or one for all leaders. */
export type EndpointPlan =
  | { readonly all: PartnerEndpointOptions }
  | { readonly byLeader: ReadonlyMap<string, PartnerEndpointOptions> };

export class HttpRoute implements Route {
  readonly capabilities: RouteCapabilities;
  readonly #counter: RouteCounter;
  readonly #endpoints: readonly PartnerEndpoint[];
  /** null: the fast path does not use the route. */
  readonly #loans: RouteLoans | null;
  readonly #endpointOf: (outbound: OutboundTransaction) => PartnerEndpoint | undefined;
  #isClosed = false;

  constructor(
    capabilities: RouteCapabilities,
    plan: EndpointPlan,
    { clock, log, fastPath, network = kernelNetwork }: HttpRouteDependencies,
  ) {
    this.capabilities = capabilities;
    this.#counter = new RouteCounter(clock, log);
    this.#loans = fastPath?.openRoute() ?? null;
    const open = (options: PartnerEndpointOptions): PartnerEndpoint =>
      new PartnerEndpoint(options, {
        clock,
        log,
        network,
        counter: this.#counter,
        loans: this.#loans,
        capabilities,
      });
    if ("all" in plan) {
      const port = open(plan.all);
      this.#endpoints = [port];
      this.#endpointOf = () => port;
    } else {
      const ports = new Map(Array.from(plan.byLeader, ([leader, one]) => [leader, open(one)]));
      this.#endpoints = [...ports.values()];
      this.#endpointOf = ({ leader }) => (leader === null ? undefined : ports.get(leader));
    }
  }

  /** True if at least one endpoint is up. */
  get isUp(): boolean {
    return !this.#isClosed && this.#endpoints.some((port) => port.isUp);
  }

  /** The best state of an endpoint. */
  get #healthText(): RouteSnapshot["health"] {
    if (this.#isClosed) return "down";
    const states = new Set(this.#endpoints.map(({ health }) => health));
    return bestFirst.find((state) => states.has(state)) ?? "down";
  }

  offer(outbound: OutboundTransaction): boolean {
    const isOpen = !this.#isClosed || (outbound.taken && this.hasSendOf(outbound.taken));
    const port = isOpen && this.#takes(outbound) ? this.#endpointOf(outbound) : undefined;
    if (port) return port.offer(outbound);
    this.#counter.turnAway();
    return false;
  }

  hasSendOf(taken: TakenRequest): boolean {
    return this.#loans !== null && taken.hasSendOf(this.#loans.number);
  }

  flush(): void {
    for (const endpoint of this.#endpoints) endpoint.flush();
  }

  snapshot(): RouteSnapshot {
    const counter = this.#counter;
    const down = this.#endpoints.find((port) => !port.isUp) ?? this.#endpoints[0];
    const failing = down?.lastFailure
      ? down
      : this.#endpoints.find((port) => port.lastFailure !== "");
    return {
      ...counter.counts(),
      name: this.capabilities.name,
      kind: this.capabilities.kind,
      health: this.#healthText,
      lastFailure: failing?.lastFailure ?? "",
      lastFailureNs: failing?.lastFailureNs ?? null,
      queued: counter.queued,
      inFlight: counter.inFlight,
      sendP50Us: counter.sendPercentileUs(50),
      sendP99Us: counter.sendPercentileUs(99),
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#endpoints.map((port) => port.close()));
    this.#loans?.close();
  }

  /**
   * Guards against transactions that the route does not support; the send plan never offers them.
   */
  #takes({ mode, transactions }: OutboundTransaction): boolean {
    return (
      this.capabilities.modes.includes(mode) &&
      (mode === "bundle" ? transactions.length > 0 : transactions.length === 1)
    );
  }
}
