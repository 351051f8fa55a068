// Tip sequencer: which tip takes effect next?
//
// Held by leader-tiers.ts. Every tip that may be counted takes a number before it is persisted; commits
// end in any order. A tip takes effect when all with smaller numbers have ended, so that one number
// says which tips are in the sums and which are not.

import type { CountedTip } from "./types.ts";

export interface SettledOrder {
  readonly order: bigint;
  /** null: never counted. */
  readonly tip: CountedTip | null;
  /** When its turn came. */
  readonly atMs: number;
}

export class TipSequencer {
  #taken: bigint;
  /** Everything up to here is in `#ready`, or was. */
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

  /** `nowMs`: when the turn has come of it and of those behind it that waited for it. */
  settle(order: bigint, tip: CountedTip | null, nowMs: number): void {
    if (order <= this.#settled || order > this.#taken || this.#early.has(order)) {
      throw new RangeError(
        `expected the order of a tip that was taken and not settled, got ${order}`,
      );
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

  /** Those whose turn came, in order; what `handled` tells of is gone afterwards. */
  handle(handled: (next: SettledOrder) => boolean): void {
    let count = 0;
    for (const next of this.#ready) {
      if (!handled(next)) break;
      count++;
    }
    this.#ready = this.#ready.slice(count);
  }
}
