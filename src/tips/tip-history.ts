// Tip history: the percentiles of the last 24 hours, one entry per quarter hour.
//
// Created next to the tip statistics, read by the portal. It starts with the snapshot of an earlier
// process and adds each new one.

import type { TipFloor, TipSnapshot } from "./tip-types.ts";

const keptMs = 24 * 3_600_000;
/** A clock that is set back and forth must not fill the memory. */
const keptMax = 96;

export class TipHistory {
  readonly #tips: TipFloor;
  readonly #end: () => void;
  #kept: TipSnapshot[] = [];

  constructor(tips: TipFloor) {
    this.#tips = tips;
    if (tips.snapshot.count > 0) this.#add(tips.snapshot);
    this.#end = tips.onRefresh((snapshot) => this.#add(snapshot));
  }

  get now(): TipSnapshot {
    return this.#tips.snapshot;
  }

  /** Ascending. */
  get list(): readonly TipSnapshot[] {
    return this.#kept;
  }

  close(): void {
    this.#end();
  }

  #add(snapshot: TipSnapshot): void {
    const { timeMs } = snapshot;
    const before = this.#kept.filter(
      (kept) => kept.timeMs < timeMs && kept.timeMs > timeMs - keptMs,
    );
    this.#kept = [...before, snapshot].slice(-keptMax);
  }
}
