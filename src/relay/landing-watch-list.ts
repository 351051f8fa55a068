// Who waits for which signature: one watch-list of the relay, many who ask.
//
// Made by main over a relay that deshreds. Observations come from the relay's own authenticated shreds, so
// a landing is a leader's word that the transaction is in his block: before any vote, without its
// outcome, and on a fork that may be abandoned. Whoever needs the outcome asks a node afterwards.

import { isShredwayError, messageOf } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { Landing } from "./data-plane/landings.ts";
import type { Relay } from "./data-plane/relay.ts";

type LandingListener = (landing: Landing) => void;

/** What is used of the relay. */
type LandingRelay = Pick<
  Relay,
  "watchSignatures" | "unwatchSignatures" | "drainLandings" | "onLandings"
>;

interface Waiter {
  readonly listener: LandingListener;
  /** Observations that it was told. */
  readonly heard: Set<string>;
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
    relay.onLandings(() => this.#hand(relay.drainLandings()));
  }

  /**
   * Tells `listener` every observation of the signature (64 bytes) from now on, first those of the last
   * seconds, each once; the returned function ends that. Throws ShredwayError "watch_refused" when
   * the list is full.
   */
  watch(signature: Uint8Array, listener: LandingListener): () => void {
    const own = new Uint8Array(signature); // the caller's may change
    const name = nameOf(own);
    const waiter: Waiter = { listener, heard: new Set() };
    const waiters = this.#waiters.get(name) ?? new Set();
    waiters.add(waiter);
    this.#waiters.set(name, waiters);
    try {
      this.#relay.watchSignatures([own]); // also when it is watched: then what is remembered is told
    } catch (error) {
      // With a full list the others keep waiting, and this one too when it was on the list before.
      if (this.#forget(name, waiter)) throw error;
      waiters.add(waiter);
    }
    return () => this.#unwatch(name, own, waiter);
  }

  /** Signatures that somebody waits for. */
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

  /** True when nobody waits for the signature any more. */
  #forget(name: string, waiter: Waiter): boolean {
    const waiters = this.#waiters.get(name);
    if (!waiters?.delete(waiter) || waiters.size > 0) return false;
    return this.#waiters.delete(name);
  }

  #hand(landings: readonly Landing[]): void {
    for (const landing of landings) {
      const observation = `${landing.slot} ${landing.batchIndex} ${landing.ordinal}`;
      // A copy: listeners may watch and stop watching.
      const waiters = [...(this.#waiters.get(nameOf(landing.signature)) ?? [])];
      for (const { listener, heard } of waiters) {
        if (heard.has(observation)) continue;
        heard.add(observation);
        try {
          listener(landing);
        } catch (error) {
          this.#log.error(`a listener of landings failed: ${messageOf(error)}`);
        }
      }
    }
  }
}
