// Landing watch list: one watch list of the relay, shared by many listeners.
//
// Created over a relay with deshredding. Observations come from the relay's own authenticated shreds:
// the leader put the transaction into its block. There is no vote yet, the outcome is unknown, and the
// fork may be abandoned. A listener that needs the outcome queries a node afterwards.

import { isShredwayError, messageOf } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { Landing } from "./data-plane/landings.ts";
import type { Relay } from "./data-plane/relay.ts";

type LandingListener = (landing: Landing) => void;

/** The used part of the relay. */
type LandingRelay = Pick<
  Relay,
  "watchSignatures" | "unwatchSignatures" | "drainLandings" | "onLandings"
>;

interface Waiter {
  readonly listener: LandingListener;
  /** Reported observations. */
  readonly reported: Set<string>;
}

function nameOf(signature: Uint8Array): string {
  return Buffer.from(signature).toString("latin1");
}

export class LandingWatchList {
  readonly #relay: LandingRelay;
  readonly #log: Logger;
  readonly #waiters = new Map<string, Set<Waiter>>();

  constructor(relay: LandingRelay, log: Logger) {
    this.#relay = relay;
    this.#log = log;
    relay.onLandings(() => this.#deliver(relay.drainLandings()));
  }

  /**
   * Reports every observation of the signature (64 bytes) to `listener`, each once, starting with those
   * of the last seconds. The returned function stops it. Throws ShredwayError "watch_refused" if the
   * list is full.
   */
  watch(signature: Uint8Array, listener: LandingListener): () => void {
    const own = new Uint8Array(signature); // the caller may change its array
    const name = nameOf(own);
    const waiter: Waiter = { listener, reported: new Set() };
    const waiters = this.#waiters.get(name) ?? new Set();
    waiters.add(waiter);
    this.#waiters.set(name, waiters);
    try {
      this.#relay.watchSignatures([own]); // even if already watched, which reports retained observations
    } catch (error) {
      // If the list is full, existing listeners stay, including those of this signature.
      if (this.#forget(name, waiter)) throw error;
      waiters.add(waiter);
    }
    return () => this.#unwatch(name, own, waiter);
  }

  /** Number of watched signatures. */
  get watched(): number {
    return this.#waiters.size;
  }

  #unwatch(name: string, signature: Uint8Array, waiter: Waiter): void {
    if (!this.#forget(name, waiter)) return;
    try {
      this.#relay.unwatchSignatures([signature]);
    } catch (error) {
      if (!isShredwayError(error, "relay_closed")) throw error;
    }
  }

  /** True if the signature has no listener any more. */
  #forget(name: string, waiter: Waiter): boolean {
    const waiters = this.#waiters.get(name);
    if (!waiters?.delete(waiter) || waiters.size > 0) return false;
    return this.#waiters.delete(name);
  }

  #deliver(landings: readonly Landing[]): void {
    for (const landing of landings) {
      const observation = `${landing.slot} ${landing.batchIndex} ${landing.ordinal}`;
      // A copy, because listeners may add and remove listeners.
      const waiters = [...(this.#waiters.get(nameOf(landing.signature)) ?? [])];
      for (const { listener, reported } of waiters) {
        if (reported.has(observation)) continue;
        reported.add(observation);
        try {
          listener(landing);
        } catch (error) {
          this.#log.error(`relay: a listener of landings failed: ${messageOf(error)}`);
        }
      }
    }
  }
}
