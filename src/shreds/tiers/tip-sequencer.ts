// Tip sequencer: the order in which counted tips take effect.
//
// Owned by leader-tiers.ts. Every tip gets a number before it is persisted, and commits end in any
// order. A tip takes effect when all smaller numbers have ended, so one number describes which tips are
// in the sums.

import type { CountedTip } from "./types.ts";

export interface SettledOrder {
  readonly order: bigint;
  /** null: never counted. */
  readonly tip: CountedTip | null;
  /** The time of its turn. */
  readonly atMs: number;
}

export class TipSequencer {
  #taken: bigint;
  /** All numbers up to here are or were in `#ready`. */
  #settled: bigint;
  readonly #early = new Map<bigint, CountedTip | null>();
  #ready: SettledOrder[] = [];

  constructor(last: bigint) {
    this.#taken = last;
    this.#settled = last;
  }

  take(): bigint {
    this.#taken++;
    return this.#taken;
  }

  /** `nowMs`: the time of its turn, and of those that waited for it. */
  settle(order: bigint, tip: CountedTip | null, nowMs: number): void {
    if (order <= this.#settled || order > this.#taken || this.#early.has(order)) {
      throw new RangeError(`expected an issued and unsettled order number, got ${order}`);
    }
    this.#early.set(order, tip);
    for (;;) {
      const next = this.#settled + 1n;
      const settled = this.#early.get(next);
      if (settled === undefined) return;
      this.#early.delete(next);
      this.#settled = next;
      this.#ready.push({ order: next, tip: settled, atMs: nowMs });
    }
  }

  /** The tips whose turn came, in order; `handled` removes them. */
  handle(handled: (next: SettledOrder) => boolean): void {
    let count = 0;
    for (const next of this.#ready) {
      if (!handled(next)) break;
      count++;
    }
    this.#ready = this.#ready.slice(count);
  }
}
