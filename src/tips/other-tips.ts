// Other tips: tips that landed through other nodes, read from the store before each snapshot.
//
// Created by tip-statistics.ts if nodes share a store. It reads the whole window a minute before the
// quarter hour, and new tips just before it. A snapshot is therefore never late, and lacks at most the
// last two seconds of other nodes. If the store is unreachable, known tips stay.

import type { LandedTip, LandedTipStore } from "./tip-types.ts";

interface OtherTipsDependencies {
  readonly store: Pick<LandedTipStore, "since">;
  /** Wall time. */
  readonly nowMs: () => number;
  /** Tips that are already known are reported again. */
  readonly add: (tip: LandedTip) => void;
  readonly failed: (error: unknown) => void;
}

/** Times before the end of a quarter hour: first the whole window, then new tips. */
const readAheadMs = [60_000, 2_000] as const;
/**
 * After this time it is known whether an observed tip was withdrawn, as for failed transactions.
 */
const settledMs = 10_000;
/**
 * Tips are written a second after the observation, later if the database is slow, with slightly
 * different clocks.
 */
const overlapMs = 30_000;
/** A page blocks the event loop for a few milliseconds. */
const tipsPerRead = 1000;

export class OtherTips {
  readonly #dependencies: OtherTipsDependencies;
  readonly #windowMs: number;
  /** The quarter hour, and the number of its reads. */
  #quarter = Number.NEGATIVE_INFINITY;
  #begun = 0;
  /** All tips that landed before are known, from the last complete read. */
  #knownToMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | null = null;
  #isClosed = false;

  constructor(dependencies: OtherTipsDependencies, windowMs: number) {
    this.#dependencies = dependencies;
    this.#windowMs = windowMs;
  }

  /** Time until the next read in a quarter hour that lasts `leftMs` more; null: no more reads. */
  dueMs(quarter: number, leftMs: number): number | null {
    const begun = quarter === this.#quarter ? this.#begun : 0;
    const aheadMs = readAheadMs[begun];
    return aheadMs === undefined ? null : Math.max(0, leftMs - aheadMs);
  }

  /** Starts due reads. Never rejects, never waits. */
  turn(quarter: number, leftMs: number): void {
    if (this.dueMs(quarter, leftMs) !== 0 || this.#isClosed) return;
    this.#quarter = quarter;
    this.#begun = readAheadMs.filter((aheadMs) => leftMs <= aheadMs).length;
    // A read in progress includes the newest tips at its end.
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
    });
  }

  /** Settles when no read is in progress. */
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
    // After the clock was set back, nothing is known.
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
