// Shred sales: registered tips give tiers; tiers and verified destinations give the relay's table.
//
// Created by compose-shreds.ts, run by gateway-service.ts, called by the gateway (ShredSales). A change of a
// tier or destination reaches the relay in the same turn, before the answer that reports it.

import type { Config } from "../core/configuration/configuration.ts";
import { messageOf } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { ShredSales } from "../gateway/methods/dependencies.ts";
import type { ShredSaleFacts } from "../platform/metrics/account-list.ts";
import type { RelayService } from "../relay/relay-service.ts";
import type { AccountAddresses } from "../relay/shredstream/subscriber-leases.ts";
import type { ChallengeSocket } from "../shreds/destinations/challenge-socket.ts";
import { destinationSettingsOf } from "../shreds/destinations/destination-rules.ts";
import type { AccountDestinations } from "../shreds/destinations/destinations.ts";
import type { DroppedRegistrations } from "../shreds/registrations/dropped-registrations.ts";
import type { PendingRegistrations } from "../shreds/registrations/pending-registrations.ts";
import type { TipRegistrar } from "../shreds/registrations/registrar.ts";
import type { AccountTiers } from "../shreds/tiers/account-tiers.ts";
import { coverageOf } from "../shreds/tiers/coverage.ts";
import type { TierLeadership } from "../shreds/tiers/tier-leadership.ts";
import type { TierRules } from "../shreds/tiers/types.ts";

interface ShredSalesDependencies {
  readonly config: Config;
  readonly relay: Pick<RelayService, "setAccountDestinations" | "onUnreachable"> | null;
  readonly leadership: TierLeadership;
  readonly tiers: AccountTiers;
  readonly rules: TierRules;
  readonly registrar: TipRegistrar;
  readonly registrations: PendingRegistrations;
  readonly droppedRegistrations: Pick<DroppedRegistrations, "start" | "close">;
  /** Number of registrations by result, since the service started. */
  readonly settled: ReadonlyMap<string, number>;
  readonly destinations: AccountDestinations;
  readonly challenges: Pick<ChallengeSocket, "close">;
  readonly leases: LeaseCounts;
  readonly log: Logger;
}

/** Addresses of ShredStream proxies by account. */
export interface LeaseCounts {
  /** Absent: no proxies are served. */
  of?: (accountId: string) => number;
}

export interface ShredSalesSnapshot {
  /** Registrations whose landing is not known yet. */
  readonly pending: number;
  /** Destinations of this region that are verified and not paused. */
  readonly active: number;
  /** Active destinations that receive shreds. */
  readonly served: number;
}

export class ShredSalesService implements ShredSales {
  readonly #dependencies: ShredSalesDependencies;
  readonly #ends: (() => void)[] = [];
  #region: string;
  #addressesMax: number;
  #isPlanned = false;
  #isClosed = false;
  #served = 0;
  #withoutShreds: ReadonlySet<string> = new Set();

  constructor(dependencies: ShredSalesDependencies) {
    this.#dependencies = dependencies;
    const { region, perAccountMax } = destinationSettingsOf(dependencies.config);
    this.#region = region;
    this.#addressesMax = perAccountMax;
  }

  /** Restores the state of an earlier process. No shred is sent before. Throws ShredwayError. */
  async start(): Promise<void> {
    const { leadership, tiers, destinations, relay } = this.#dependencies;
    await leadership.start();
    this.#ends.push(
      tiers.onChange((accountId) => {
        if (destinations.ofAccount(accountId).length > 0) this.#plan();
      }),
      destinations.onChange(() => this.#plan()),
    );
    relay?.onUnreachable((address, atNs) => {
      destinations.unreachable(address, Number(atNs / 1_000_000n));
    });
    this.#publish();
    this.#dependencies.droppedRegistrations.start();
  }

  get registrar(): TipRegistrar {
    return this.#dependencies.registrar;
  }

  get tiers(): AccountTiers {
    return this.#dependencies.tiers;
  }

  get destinations(): AccountDestinations {
    return this.#dependencies.destinations;
  }

  /** The destinations of these ids receive no shreds from now on; all others do again. */
  pauseShreds(ids: ReadonlySet<string>): void {
    this.#withoutShreds = ids;
    this.#plan();
  }

  /** Number of destinations of an account, and the limit of destinations and proxies together. */
  readonly addressesOf = (accountId: string): AccountAddresses => ({
    destinations: this.destinations.ofAccount(accountId).length,
    max: this.#addressesMax,
  });

  /** From now on, addresses of proxies count as addresses of their accounts. */
  countLeases(of: (accountId: string) => number): void {
    this.#dependencies.leases.of = of;
  }

  /** The region whose destinations this relay serves. */
  get region(): string {
    return this.#region;
  }

  readonly tierRules = (): TierRules => this.#dependencies.rules;

  /** Applies the changes that need no restart. */
  apply(config: Config): void {
    const settings = destinationSettingsOf(config);
    this.#region = settings.region;
    this.#addressesMax = settings.perAccountMax;
    this.#dependencies.destinations.apply(settings);
    this.#plan();
  }

  snapshot(): ShredSalesSnapshot {
    const { destinations, registrations } = this.#dependencies;
    return {
      pending: registrations.counts.pending,
      active: destinations.active(this.#region).length,
      served: this.#served,
    };
  }

  /** Counts for the metrics. */
  facts(): ShredSaleFacts {
    const { destinations, leadership, registrations, registrar, settled, tiers } =
      this.#dependencies;
    return {
      pending: registrations.counts.pending,
      registered: registrar.outcomes,
      settled,
      ...tiers.census(),
      isLeader: leadership.isLeader,
      destinations: destinations.counts(),
      served: this.#served,
    };
  }

  /** Settles when everything acknowledged is durable. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const end of this.#ends.splice(0)) end();
    const { registrations, destinations, challenges, leadership } = this.#dependencies;
    destinations.close();
    await challenges.close();
    await this.#dependencies.droppedRegistrations.close();
    await leadership.close();
    await registrations.close();
  }

  /** All changes of one turn are published as one table. */
  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    queueMicrotask(() => {
      this.#isPlanned = false;
      if (this.#isClosed) return;
      try {
        this.#publish();
      } catch (error) {
        this.#dependencies.log.error(
          `relay: could not publish the destinations: ${messageOf(error)}`,
        );
      }
    });
  }

  #publish(): void {
    const { destinations, tiers, relay } = this.#dependencies;
    const active = destinations.active(this.#region);
    const wanting = active.filter(({ id }) => !this.#withoutShreds.has(id));
    const served = coverageOf(wanting, (accountId) => tiers.tierOf(accountId));
    this.#served = served.length;
    relay?.setAccountDestinations(served);
  }
}
