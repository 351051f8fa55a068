// Tip history: the percentiles of the last 24 hours, one entry per quarter hour.
//
// Created next to the tip statistics, read by the portal. It starts with the snapshot of an earlier
// process and adds each new one.

import type { TipFloor, TipSnapshot } from "./tip-types.ts";

const maxAgeMs = 24 * 3_600_000;
/** A clock that is set back and forth must not fill the memory. */
const snapshotsMax = 96;

export class TipHistory {
  readonly #tips: TipFloor;
  readonly #end: () => void;
  #snapshots: TipSnapshot[] = [];

  constructor(tips: TipFloor) {
    this.#tips = tips;
    if (tips.snapshot.count > 0) this.#add(tips.snapshot);
    this.#end = tips.onRefresh((each) => this.#add(each));
  }

  get now(): TipSnapshot {
    return this.#tips.snapshot;
  }

  /** Ascending. */
  get list(): readonly TipSnapshot[] {
    return this.#snapshots;
  }

  close(): void {
    this.#end();
  }

  #add(snapshot: TipSnapshot): void {
    const { timeMs } = snapshot;
    const before = this.#snapshots.filter(
      (one) => one.timeMs < timeMs && one.timeMs > timeMs - maxAgeMs,
    );
    this.#snapshots = [...before, snapshot].slice(-snapshotsMax);
  }
}
