// Tip history: the percentiles of the last seven days, one entry per quarter hour.
//
// Created and filled by tip-statistics.ts, read by /tip_floor/history and the portal. It has the entries
// of the database, which other nodes may have written, and adds each refresh of this process. A quarter
// hour without a refresh stays missing.

import type { LandedTipStore, TipHistoryReader, TipQuarter } from "./tip-types.ts";

export const quarterMs = 15 * 60_000;
const quartersPerHour = 4;
/** Seven days. */
export const quartersMax = 7 * 24 * quartersPerHour;

export class TipHistory implements TipHistoryReader {
  readonly #nowMs: () => number;
  /** Entries by the number of the quarter hour. */
  #quarters = new Map<number, TipQuarter>();
  #isLoaded = false;
  #generation = 0;

  /** `nowMs`: wall time. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get generation(): number {
    return this.#generation;
  }

  /** Whether `load` succeeded once. */
  get isLoaded(): boolean {
    return this.#isLoaded;
  }

  last(hours: number): readonly TipQuarter[] {
    const now = this.#now;
    const from = now - hours * quartersPerHour;
    return [...this.#quarters.values()]
      .filter(({ quarter }) => quarter > from && quarter <= now)
      .toSorted((a, b) => a.quarter - b.quarter);
  }

  /** Does nothing if the quarter hour is known. */
  add(tips: TipQuarter): void {
    if (this.#quarters.has(tips.quarter)) return;
    this.#replace([...this.#quarters.values(), tips]);
  }

  /** Reads the database, whose entries replace those of this process. Rejects with "store_failed". */
  async load(store: Pick<LandedTipStore, "quarters">): Promise<void> {
    const now = this.#now;
    const stored = await store.quarters(now - quartersMax + 1, now);
    this.#isLoaded = true;
    this.#replace([...this.#quarters.values(), ...stored]);
  }

  /** The last one of a quarter hour stays. A clock that is set back and forth must not fill the memory. */
  #replace(all: readonly TipQuarter[]): void {
    const now = this.#now;
    const near = all.filter(({ quarter }) => Math.abs(now - quarter) < quartersMax);
    this.#quarters = new Map(near.map((one) => [one.quarter, one]));
    this.#generation++;
  }

  get #now(): number {
    return Math.floor(this.#nowMs() / quarterMs);
  }
}
