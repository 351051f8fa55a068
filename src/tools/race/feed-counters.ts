// Counters that `race` and `listen` share: results of contests, runs of missing shreds, and the
// newest rows for a picture.

import { LagHistogram } from "../../core/log-linear-histogram.ts";

/** Results of one feed in one kind of contest. */
export class FirstArrivalCounts {
  /** Number of contests that this feed finished. */
  reached = 0;
  /** Number of contests that this feed alone finished first. */
  wins = 0;
  /** Relative to the best other feed; negative if ahead. */
  readonly lag = new LagHistogram();

  /** `lag` is null if no other feed finished the contest. */
  add(lag: number | null, isWin: boolean): void {
    this.reached++;
    if (lag !== null) this.lag.record(lag);
    if (isWin) this.wins++;
  }
}

/** Minimum length of a burst: too long for random losses at low rates. */
const burstFrom = 8;

/** Runs of missing shreds. */
export class MissingRuns {
  count = 0;
  longest = 0;
  /** Missing shreds in runs of at least `burstFrom`. */
  inBursts = 0;
  #run = 0;

  /** Adds the next shred in order. */
  add(isMissing: boolean): void {
    if (isMissing) this.#run++;
    else this.end();
  }

  /** Ends the current run, because the next shred has no order relative to the last one. */
  end(): void {
    const run = this.#run;
    this.#run = 0;
    if (run === 0) return;
    this.count++;
    this.longest = Math.max(this.longest, run);
    if (run >= burstFrom) this.inBursts += run;
  }
}

const rowsMax = 2048;

/**
 * The newest rows, one per slot: at least `rowsMax` once that many exist, always less than twice
 * as many.
 */
export class NewestRows<T> {
  #rows: T[] = [];

  /** Oldest first. */
  get rows(): readonly T[] {
    return this.#rows;
  }

  add(row: T): void {
    this.#rows.push(row);
    if (this.#rows.length >= 2 * rowsMax) this.#rows = this.#rows.slice(-rowsMax);
  }
}
