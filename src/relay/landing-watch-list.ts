// Landing watch list: one watch list of the relay, shared by many listeners.
//
// Created over a relay with deshredding. Observations come from the relay's own authenticated shreds:
// the leader put the transaction into its block. There is no vote yet, the outcome is unknown, and the
// fork may be abandoned. A listener that needs the outcome queries a node afterwards.
//
// If the block of a slot begins again (an update-parent marker), observations before the marker are
// withdrawn.

import { isShredwayError, messageOf } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { Landing, SlotRestart } from "./data-plane/landings.ts";
import type { Relay } from "./data-plane/relay.ts";

type LandingListener = (landing: Landing) => void;

/** Called with the slot that no longer contains the transaction. */
type WithdrawalListener = (restart: SlotRestart) => void;

/** The used part of the relay. */
type LandingRelay = Pick<
  Relay,
  "watchSignatures" | "unwatchSignatures" | "drainLandings" | "onLandings"
>;

interface Waiter {
  readonly observed: LandingListener;
  readonly withdrawn: WithdrawalListener | undefined;
  /** Reported observations that were not withdrawn, by slot. */
  readonly standing: Map<bigint, Position[]>;
}

type Position = Pick<Landing, "batchIndex" | "ordinal">;

function nameOf(signature: Uint8Array): string {
  return Buffer.from(signature).toString("latin1");
}

export class LandingWatchList {
  readonly #relay: LandingRelay;
  readonly #log: Logger;
  readonly #waiters = new Map<string, Set<Waiter>>();
  /** Waiters with an observation in the slot. */
  readonly #waitersBySlot = new Map<bigint, Set<Waiter>>();

  constructor(relay: LandingRelay, log: Logger) {
    this.#relay = relay;
    this.#log = log;
    relay.onLandings(() => {
      for (const report of relay.drainLandings()) {
        if (report.kind === "landing") this.#observed(report);
        else this.#restarted(report);
      }
    });
  }

  /**
   * Reports every observation of the signature (64 bytes) to `observed`, each once, starting with those
   * of the last seconds, and to `withdrawn` each slot whose reported observations were all withdrawn. The
   * returned function stops it. Throws ShredwayError "watch_refused" if the list is full.
   */
  watch(
    signature: Uint8Array,
    observed: LandingListener,
    withdrawn?: WithdrawalListener,
  ): () => void {
    const own = new Uint8Array(signature); // the caller may change its array
    const name = nameOf(own);
    const waiter: Waiter = { observed, withdrawn, standing: new Map() };
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
    if (!waiters?.delete(waiter)) return false;
    for (const slot of waiter.standing.keys()) this.#leaveSlot(slot, waiter);
    return waiters.size === 0 && this.#waiters.delete(name);
  }

  #observed(landing: Landing): void {
    const { slot, batchIndex, ordinal } = landing;
    const waiters = this.#waiters.get(nameOf(landing.signature)) ?? new Set();
    // A copy, because listeners may add and remove listeners.
    for (const waiter of Array.from(waiters)) {
      if (!waiters.has(waiter)) continue;
      const known = waiter.standing.get(slot);
      if (known?.some((one) => one.batchIndex === batchIndex && one.ordinal === ordinal)) continue;
      waiter.standing.set(slot, [...(known ?? []), { batchIndex, ordinal }]);
      this.#joinSlot(slot, waiter);
      this.#call(() => waiter.observed(landing));
    }
  }

  #restarted(restart: SlotRestart): void {
    const { slot, batchIndex } = restart;
    const waiters = this.#waitersBySlot.get(slot) ?? new Set();
    for (const waiter of Array.from(waiters)) {
      if (!waiters.has(waiter)) continue;
      const known = waiter.standing.get(slot) ?? [];
      const standing = known.filter((one) => one.batchIndex >= batchIndex);
      if (standing.length > 0) {
        waiter.standing.set(slot, standing);
        continue;
      }
      waiter.standing.delete(slot);
      this.#leaveSlot(slot, waiter);
      this.#call(() => waiter.withdrawn?.(restart));
    }
  }

  #call(listener: () => void): void {
    try {
      listener();
    } catch (error) {
      this.#log.error(`relay: a listener of landings failed: ${messageOf(error)}`);
    }
  }

  #joinSlot(slot: bigint, waiter: Waiter): void {
    const waiters = this.#waitersBySlot.get(slot);
    if (waiters) waiters.add(waiter);
    else this.#waitersBySlot.set(slot, new Set([waiter]));
  }

  #leaveSlot(slot: bigint, waiter: Waiter): void {
    const waiters = this.#waitersBySlot.get(slot);
    waiters?.delete(waiter);
    if (waiters?.size === 0) this.#waitersBySlot.delete(slot);
  }
}
