// Who waits for which signature: one watch-list of the relay, many who ask.
//
// Made by main over a relay that deshreds. Sights come from the relay's own authenticated shreds, so
// a landing is a leader's word that the transaction is in his block: before any vote, without its
// outcome, and on a fork that may be abandoned. Whoever needs the outcome asks a node afterwards.

import { messageOf } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { Landing } from "../data-plane/landings.ts";
import type { Relay } from "../data-plane/relay.ts";

export type LandingListener = (landing: Landing) => void;

/** What is used of the relay. */
export type LandingRelay = Pick<
  Relay,
  "watchSignatures" | "unwatchSignatures" | "drainLandings" | "onLandings"
>;

interface Waiter {
  readonly listener: LandingListener;
  /** Sights that it was told. */
  readonly heard: Set<string>;
}

function nameOf(signature: Uint8Array): string {
  return Buffer.from(signature).toString("latin1");
}

export class LandingWatch {
  readonly #relay: LandingRelay;
  readonly #log: Logger;
  readonly #waiters = new Map<string, Set<Waiter>>();

  constructor(relay: LandingRelay, log: Logger) {
    this.#relay = relay;
    this.#log = log;
    relay.onLandings(() => this.#hand(relay.drainLandings()));
  }

  /**
   * Tells `listener` every sight of the signature (64 bytes) from now on, first those of the last
   * seconds, each once; the returned function ends that. Throws ShredwayError "watch_refused" when
   * the list is full.
   */
  watch(signature: Uint8Array, listener: LandingListener): () => void {
    const name = nameOf(signature);
    const waiter: Waiter = { listener, heard: new Set() };
    const waiters = this.#waiters.get(name) ?? new Set();
    // The relay tells what it remembers when a signature comes on its list: so it comes again.
    if (waiters.size > 0) this.#relay.unwatchSignatures([signature]);
    waiters.add(waiter);
    this.#waiters.set(name, waiters);
    try {
      this.#relay.watchSignatures([signature]);
    } catch (error) {
      this.#forget(name, waiter);
      throw error;
    }
    return () => {
      if (this.#forget(name, waiter)) this.#relay.unwatchSignatures([signature]);
    };
  }

  /** Signatures that somebody waits for. */
  get watched(): number {
    return this.#waiters.size;
  }

  /** True when nobody waits for the signature any more. */
  #forget(name: string, waiter: Waiter): boolean {
    const waiters = this.#waiters.get(name);
    if (!waiters?.delete(waiter) || waiters.size > 0) return false;
    return this.#waiters.delete(name);
  }

  #hand(landings: readonly Landing[]): void {
    for (const landing of landings) {
      const sight = `${landing.slot} ${landing.batchIndex} ${landing.ordinal}`;
      for (const { listener, heard } of this.#waiters.get(nameOf(landing.signature)) ?? []) {
        if (heard.has(sight)) continue;
        heard.add(sight);
        try {
          listener(landing);
        } catch (error) {
          this.#log.error(`a listener of landings failed: ${messageOf(error)}`);
        }
      }
    }
  }
}
