// Leases of subscribers: destinations that stay in the table as long as heartbeats arrive.
//
// Used by subscriber-service.ts. Bounded per subscriber. The table of destinations is published when a
// lease begins, ends or is revoked, not at each heartbeat.

import type { Clock, Timer } from "../../core/clock.ts";
import { GrpcError } from "../../core/grpc/status.ts";
import type { Logger } from "../../core/log.ts";
import type { Destination } from "../data-plane/tables.ts";
import { type LeaseEvent, leaseEvents } from "./subscriber-status.ts";

export interface Subscriber {
  readonly name: string;
  /** Base58. */
  readonly publicKey: string;
  /** null: the account has no tier, so nothing is sent. */
  readonly tier: string | null;
  /** Addresses at the same time. */
  readonly destinations: number;
  /** Account of a registered public key; absent: a subscriber of the configuration. */
  readonly accountId?: string;
}

/** The registered destinations of an account, and its limit. */
export interface AccountAddresses {
  /** Registered destinations, in all regions and states. */
  readonly destinations: number;
  /** Limit of destinations and leases together. */
  readonly max: number;
}

interface SubscriberLeasesDependencies {
  readonly clock: Clock;
  /** Called after each change of the destinations. Throws if the relay rejects them. */
  readonly publish: () => void;
  /** Absent: leases of accounts have no common limit. */
  readonly addressesOf?: ((accountId: string) => AccountAddresses) | undefined;
  readonly log: Logger;
}

const checkMs = 1000;

export class SubscriberLeases {
  readonly #dependencies: SubscriberLeasesDependencies;
  readonly #timer: Timer;
  /** Valid leases by address "ip:port". */
  readonly #leases = new Map<string, { subscriber: Subscriber; endsNs: bigint }>();
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every event is a key
  readonly #counts = Object.fromEntries(leaseEvents.map((event) => [event, 0])) as Record<
    LeaseEvent,
    number
  >;

  constructor(dependencies: SubscriberLeasesDependencies) {
    this.#dependencies = dependencies;
    this.#timer = dependencies.clock.every(checkMs, () => this.#end());
  }

  /** Counted events since the start. */
  get counts(): Readonly<Record<LeaseEvent, number>> {
    return this.#counts;
  }

  /** Present leases by tier, or "none" for accounts without one; a tier without a lease is absent. */
  countByTier(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { subscriber } of this.#leases.values()) {
      const tier = subscriber.tier ?? "none";
      counts.set(tier, (counts.get(tier) ?? 0) + 1);
    }
    return counts;
  }

  /** Begins or renews a lease of a subscriber with a tier. Throws GrpcError. */
  renew(subscriber: Subscriber, address: string, ttlMs: number): void {
    const { clock, publish, log } = this.#dependencies;
    const endsNs = clock.monotonicNs() + BigInt(ttlMs) * 1_000_000n;
    const known = this.#leases.get(address);
    if (known && known.subscriber.publicKey !== subscriber.publicKey) {
      throw new GrpcError("ALREADY_EXISTS", `${address} belongs to another subscriber`);
    }
    if (known) {
      known.endsNs = endsNs;
      this.#counts.renewed++;
      return;
    }
    const { publicKey } = subscriber;
    const count = this.#countIf((one) => one.publicKey === publicKey);
    if (count >= subscriber.destinations) {
      throw new GrpcError(
        "RESOURCE_EXHAUSTED",
        `${count} addresses are in use; expected at most ${subscriber.destinations} for this public key`,
      );
    }
    this.#checkAccount(subscriber);
    this.#leases.set(address, { subscriber, endsNs });
    try {
      publish();
    } catch (error) {
      this.#leases.delete(address);
      throw error;
    }
    this.#counts.begun++;
    log.info(
      `shredstream: subscriber ${subscriber.name}: shreds of ${subscriber.tier} to ${address}`,
    );
  }

  /** Applies changed and removed subscribers, whose destinations the caller has published. */
  replace(subscribers: ReadonlyMap<string, Subscriber>): void {
    for (const [address, lease] of this.#leases) {
      const subscriber = subscribers.get(lease.subscriber.publicKey);
      if (subscriber) {
        lease.subscriber = subscriber;
        continue;
      }
      this.#leases.delete(address);
      this.#counts.removed++;
    }
  }

  /** The destinations of the leases, if these are the subscribers (by public key). */
  destinationsOf(subscribers: ReadonlyMap<string, Subscriber>): Destination[] {
    return [...this.#leases].flatMap(([address, lease]) => {
      const subscriber = subscribers.get(lease.subscriber.publicKey);
      if (!subscriber || subscriber.tier === null) return [];
      return [{ address, name: `${subscriber.name} ${address}`, tier: subscriber.tier }];
    });
  }

  close(): void {
    this.#timer.cancel();
  }

  /** Present leases of all public keys of an account. */
  countOfAccount(accountId: string): number {
    return this.#countIf((subscriber) => subscriber.accountId === accountId);
  }

  /** Throws GrpcError if the account has all of its addresses. */
  #checkAccount({ accountId }: Subscriber): void {
    const { addressesOf } = this.#dependencies;
    if (accountId === undefined || !addressesOf) return;
    const { destinations, max } = addressesOf(accountId);
    const leases = this.countOfAccount(accountId);
    if (destinations + leases < max) return;
    throw new GrpcError(
      "RESOURCE_EXHAUSTED",
      `the account uses ${destinations + leases} addresses (destinations: ${destinations}, proxies: ${leases}); ` +
        `expected at most ${max} together. Remove a destination or stop another proxy`,
    );
  }

  #countIf(holds: (subscriber: Subscriber) => boolean): number {
    let count = 0;
    for (const { subscriber } of this.#leases.values()) if (holds(subscriber)) count++;
    return count;
  }

  #end(): void {
    const nowNs = this.#dependencies.clock.monotonicNs();
    const ended = [...this.#leases].filter(([, { endsNs }]) => endsNs <= nowNs);
    if (ended.length === 0) return;
    const { publish, log } = this.#dependencies;
    for (const [address, { subscriber }] of ended) {
      this.#leases.delete(address);
      this.#counts.expired++;
      log.info(`shredstream: subscriber ${subscriber.name}: no heartbeat for ${address}, stopped`);
    }
    try {
      publish();
    } catch (error) {
      log.error({ err: error }, "shredstream: the destinations could not be published");
    }
  }
}
