// A store of registrations in memory. It can fail and delay its callers.

import type {
  LandedTip,
  LandedTipStore,
  TipQuarter,
  TipSnapshot,
} from "../../../src/tips/tip-types.ts";

export class MemoryStore implements LandedTipStore {
  readonly tips = new Map<string, LandedTip>();
  readonly byQuarter = new Map<number, TipQuarter>();
  last: TipSnapshot | null = null;
  /** The start of each read so far. */
  readonly readings: number[] = [];
  #lastQuarter = Number.NEGATIVE_INFINITY;
  isFailing = false;
  writes = 0;
  /** Awaited by writes and reads. */
  held: Promise<void> | null = null;

  async write(added: readonly LandedTip[], removed: readonly string[]): Promise<void> {
    await this.held;
    this.#check();
    this.writes++;
    for (const signature of removed) this.tips.delete(signature);
    for (const tip of added) {
      if (!this.tips.has(tip.signature)) this.tips.set(tip.signature, tip);
    }
  }

  async since(sinceMs: number, behind: LandedTip | null, limit: number): Promise<LandedTip[]> {
    await this.held;
    this.#check();
    if (behind === null) this.readings.push(sinceMs);
    const key = ({ landedMs, signature }: LandedTip) => `${landedMs} ${signature}`;
    return [...this.tips.values()]
      .filter((tip) => tip.landedMs >= sinceMs && (!behind || key(tip) > key(behind)))
      .toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
      .slice(0, limit);
  }

  async forgetBefore(ms: number): Promise<void> {
    this.#check();
    for (const { signature, landedMs } of this.tips.values()) {
      if (landedMs < ms) this.tips.delete(signature);
    }
  }

  async keepSnapshot(snapshot: TipSnapshot, quarter: number): Promise<void> {
    this.#check();
    if (quarter === this.#lastQuarter || quarter === this.#lastQuarter - 1) return;
    this.last = snapshot;
    this.#lastQuarter = quarter;
  }

  async lastSnapshot(): Promise<TipSnapshot | null> {
    this.#check();
    return this.last;
  }

  async keepQuarter(tips: TipQuarter): Promise<void> {
    this.#check();
    const stored = [...this.byQuarter.keys()];
    const later = stored.slice(stored.indexOf(tips.quarter));
    // The rule of the database: one that was stored before an earlier quarter hour is replaced.
    if (later.some((quarter) => quarter < tips.quarter)) this.byQuarter.delete(tips.quarter);
    if (!this.byQuarter.has(tips.quarter)) this.byQuarter.set(tips.quarter, tips);
  }

  async quarters(from: number, to: number): Promise<TipQuarter[]> {
    this.#check();
    return [...this.byQuarter.values()]
      .filter(({ quarter }) => quarter >= from && quarter <= to)
      .toSorted((a, b) => a.quarter - b.quarter);
  }

  #check(): void {
    if (this.isFailing) throw new Error("the disk is gone");
  }
}
