// Counters that `race` and `listen` share: how a feed did against the others, what it did not bring, and
// the newest rows for a picture.

import { LagHistogram } from "../../core/log-linear-histogram.ts";

/** How one feed did in one kind of thing that feeds race for. */
export class ContestCounts {
  /** How often this feed got there. */
  reached = 0;
  /** Before all others, alone. */
  wins = 0;
  /** Against the best of the others; below 0 is ahead. */
  readonly lag = new LagHistogram();

  /** `lag` is null where no other feed got there. */
  add(lag: number | null, isWin: boolean): void {
    this.reached++;
    if (lag !== null) this.lag.record(lag);
    if (isWin) this.wins++;
  }
}

/** Runs of this length and more are bursts: too long for chance at small losses. */
const burstFrom = 8;

/** Runs of shreds that did not come. */
export class MissingRuns {
  count = 0;
  longest = 0;
  /** Missing shreds in runs of `burstFrom` and more. */
  inBursts = 0;
  #run = 0;

  /** The next shred in order. */
  add(isMissing: boolean): void {
    if (isMissing) this.#run++;
    else this.end();
  }

  /** What follows is not in order with what came before. */
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

/** The newest rows, one for each slot: at least `rowsMax` once there were so many, always less than twice that. */
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
