// Other tips: what landed through the other nodes, read from the store before each snapshot.
//
// Made by tip-statistics.ts where nodes share a store. All of the window is read a minute before the
// quarter of an hour, and what came since just before it: a snapshot is never late because of it, and
// lacks of the others the last two seconds at most. A store that is away leaves what is known.

import type { LandedTip, LandedTipStore } from "./tip-types.ts";

interface OtherTipsDependencies {
  readonly store: Pick<LandedTipStore, "since">;
  /** Wall time. */
  readonly nowMs: () => number;
  /** Told again of what is known. */
  readonly add: (tip: LandedTip) => void;
  readonly failed: (error: unknown) => void;
}

/** Before the end of a quarter: all of the window, then what came since. */
const readAheadMs = [60_000, 2_000] as const;
/** So soon it is known whether a tip that was seen is gone again, as those of failed transactions are. */
const settledMs = 10_000;
/** Written a second after the observation, more when the database was slow, by clocks that differ a little. */
const overlapMs = 30_000;
/** A page holds the event loop for some milliseconds. */
const tipsPerRead = 1000;

export class OtherTips {
  readonly #dependencies: OtherTipsDependencies;
  readonly #windowMs: number;
  /** Quarter, and how many of its readings were begun. */
  #quarter = Number.NEGATIVE_INFINITY;
  #begun = 0;
  /** All that landed before is known, by the last reading that came to its end. */
  #knownToMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | null = null;
  #isClosed = false;

  constructor(dependencies: OtherTipsDependencies, windowMs: number) {
    this.#dependencies = dependencies;
    this.#windowMs = windowMs;
  }

  /** How long until a reading is due in a quarter that lasts `leftMs` yet; null: none is any more. */
  dueMs(quarter: number, leftMs: number): number | null {
    const begun = quarter === this.#quarter ? this.#begun : 0;
    const aheadMs = readAheadMs[begun];
    return aheadMs === undefined ? null : Math.max(0, leftMs - aheadMs);
  }

  /** Begins what is due. Never rejects, never waits. */
  turn(quarter: number, leftMs: number): void {
    if (this.dueMs(quarter, leftMs) !== 0 || this.#isClosed) return;
    this.#quarter = quarter;
    this.#begun = readAheadMs.filter((aheadMs) => leftMs <= aheadMs).length;
    // One that still goes on comes to the youngest at its end.
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
    });
  }

  /** Settles when nothing is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#reading;
  }

  get #isLast(): boolean {
    return this.#begun === readAheadMs.length;
  }

  async #read(): Promise<void> {
    const { store, nowMs, add, failed } = this.#dependencies;
    const beganMs = nowMs();
    // A clock that was set back knows nothing.
    const knownToMs = this.#knownToMs <= beganMs ? this.#knownToMs - overlapMs : 0;
    const sinceMs = Math.max(beganMs - this.#windowMs, this.#isLast ? knownToMs : 0);
    let behind: LandedTip | null = null;
    try {
      while (!this.#isClosed) {
        const tips: LandedTip[] = await store.since(sinceMs, behind, tipsPerRead);
        for (const tip of tips) {
          if (this.#isLast || tip.landedMs <= beganMs - settledMs) add(tip);
        }
        behind = tips.at(-1) ?? null;
        if (tips.length < tipsPerRead) {
          this.#knownToMs = beganMs;
          return;
        }
      }
    } catch (error) {
      failed(error);
    }
  }
}
