// Leases of subscribers: destinations that stay in the table as long as heartbeats arrive.
//
// Used by subscriber-service.ts. Bounded per subscriber. The table of destinations is published when a
// lease begins, ends or is revoked, not at each heartbeat.

import type { Clock, Timer } from "../../core/clock.ts";
import { GrpcError } from "../../core/grpc/status.ts";
import type { Logger } from "../../core/log.ts";
import type { Destination } from "../data-plane/tables.ts";

export interface Subscriber {
  readonly name: string;
  /** Base58. */
  readonly publicKey: string;
  /** null: the account has no tier, so nothing is sent. */
  readonly tier: string | null;
  /** Addresses at the same time. */
  readonly destinations: number;
}

interface SubscriberLeasesDependencies {
  readonly clock: Clock;
  /** Called after each change of the destinations. Throws if the relay rejects them. */
  readonly publish: () => void;
  readonly log: Logger;
}

const checkMs = 1000;

export class SubscriberLeases {
  readonly #dependencies: SubscriberLeasesDependencies;
  readonly #timer: Timer;
  /** Valid leases by address "ip:port". */
  readonly #leases = new Map<string, { subscriber: Subscriber; endsNs: bigint }>();

  constructor(dependencies: SubscriberLeasesDependencies) {
    this.#dependencies = dependencies;
    this.#timer = dependencies.clock.every(checkMs, () => this.#end());
  }

  /** Begins or renews a lease. Throws GrpcError. */
  renew(subscriber: Subscriber, address: string, ttlMs: number): void {
    const { clock, publish, log } = this.#dependencies;
    const endsNs = clock.monotonicNs() + BigInt(ttlMs) * 1_000_000n;
    const known = this.#leases.get(address);
    if (known && known.subscriber.publicKey !== subscriber.publicKey) {
      throw new GrpcError("ALREADY_EXISTS", `${address} belongs to another subscriber`);
    }
    if (known) {
      known.endsNs = endsNs;
      return;
    }
    const count = this.#countOf(subscriber.publicKey);
    if (count >= subscriber.destinations) {
      throw new GrpcError(
        "RESOURCE_EXHAUSTED",
        `${count} addresses are in use; expected at most ${subscriber.destinations} for this public key`,
      );
    }
    this.#leases.set(address, { subscriber, endsNs });
    try {
      publish();
    } catch (error) {
      this.#leases.delete(address);
      throw error;
    }
    log.info(
      `shredstream: subscriber ${subscriber.name}: shreds of ${subscriber.tier} to ${address}`,
    );
  }

  /** Applies changed and removed subscribers, whose destinations the caller has published. */
  replace(subscribers: ReadonlyMap<string, Subscriber>): void {
    for (const [address, lease] of this.#leases) {
      const subscriber = subscribers.get(lease.subscriber.publicKey);
      if (subscriber) lease.subscriber = subscriber;
      else this.#leases.delete(address);
    }
  }

  /** The destinations of the leases, if these are the subscribers (by public key). */
  destinationsOf(subscribers: ReadonlyMap<string, Subscriber>): Destination[] {
    return [...this.#leases].flatMap(
      ([
        address,
        {
          subscriber: { publicKey },
        },
      ]) => {
        const subscriber = subscribers.get(publicKey);
        if (!subscriber || subscriber.tier === null) return [];
        return [{ address, name: `${subscriber.name} ${address}`, tier: subscriber.tier }];
      },
    );
  }

  close(): void {
    this.#timer.cancel();
  }

  #countOf(publicKey: string): number {
    let count = 0;
    for (const { subscriber } of this.#leases.values()) {
      if (subscriber.publicKey === publicKey) count++;
    }
    return count;
  }

  #end(): void {
    const nowNs = this.#dependencies.clock.monotonicNs();
    const ended = [...this.#leases].filter(([, { endsNs }]) => endsNs <= nowNs);
    if (ended.length === 0) return;
    const { publish, log } = this.#dependencies;
    for (const [address, { subscriber }] of ended) {
      this.#leases.delete(address);
      log.info(`shredstream: subscriber ${subscriber.name}: no heartbeat for ${address}, stopped`);
    }
    try {
      publish();
    } catch (error) {
      log.error({ err: error }, "shredstream: the destinations could not be published");
    }
  }
}
