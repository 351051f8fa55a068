// Feed timing: how whole and how steady one feed is, from the slots that are settled.
//
// Called by `listen`. Losses are gaps in the indices: of a FEC set that was seen at all, each of its 64
// shreds is known to exist, and of a slot whose last shred was seen, each of its sets is. Times are
// within the feed; how long a shred was under way no receiver can tell by itself.

import { LagHistogram } from "../../core/log-linear-histogram.ts";
import { MissingRuns, NewestRows } from "./feed-counters.ts";
import { recoverableFrom, type SlotArrivals, setLeaves } from "./slot-arrivals.ts";

interface SlotShare {
  readonly slot: number;
  /** Of its shreds, as far as is known how many there are. */
  readonly share: number;
}

export class FeedTiming {
  slots = 0;
  /** FEC sets of which at least one shred came. */
  sets = 0;
  completeSets = 0;
  recoverableSets = 0;
  /** Of slots whose end is known: sets of which nothing came. */
  absentSets = 0;
  missingData = 0;
  missingCode = 0;
  /** Runs of shreds of a set in the order of their indices, data or code, that did not come. */
  readonly gaps = new MissingRuns();
  /** From the first shred of a set to the one that made it recoverable, and to its last one. */
  readonly toRecoverable = new LagHistogram();
  readonly toLast = new LagHistogram();
  /** From the first shred of a slot to its last one. */
  readonly slotSpan = new LagHistogram();
  /** Between one new shred of a slot and the next one. */
  readonly step = new LagHistogram();
  /** Between the first shreds of one slot and of the next. */
  readonly slotStep = new LagHistogram();
  readonly #recent = new NewestRows<SlotShare>();
  #last: { readonly slot: number; readonly firstNs: number } | undefined;

  /** A slot of one feed, settled; to be called in ascending order as far as possible. */
  add(slot: SlotArrivals): void {
    if (slot.distinct === 0) return;
    this.slots++;
    const times: number[] = [];
    for (const { times: own } of slot.sets.values()) {
      this.#addSet(own);
      for (const time of own) if (Number.isFinite(time)) times.push(time);
    }
    times.sort((a, b) => a - b);
    for (const [i, time] of times.entries())
      if (i > 0) this.step.record(time - (times[i - 1] ?? time));
    this.slotSpan.record((times.at(-1) ?? 0) - (times[0] ?? 0));
    const known = Math.max(slot.setCount ?? 0, slot.sets.size);
    this.absentSets += known - slot.sets.size;
    this.#recent.add({ slot: slot.slot, share: slot.distinct / (known * setLeaves) });
    if (this.#last?.slot === slot.slot - 1) this.slotStep.record(slot.firstNs - this.#last.firstNs);
    this.#last = { slot: slot.slot, firstNs: slot.firstNs };
  }

  /** The newest slots. */
  get recent(): readonly SlotShare[] {
    return this.#recent.rows;
  }

  /** Of the shreds that are known to exist, those that did not come. */
  get lossShare(): number | null {
    const known = (this.sets + this.absentSets) * setLeaves;
    const missing = this.missingData + this.missingCode + this.absentSets * setLeaves;
    return known === 0 ? null : missing / known;
  }

  #addSet(times: Float64Array): void {
    this.sets++;
    this.#addGaps(times.subarray(0, 32));
    this.#addGaps(times.subarray(32));
    const present = times.filter(Number.isFinite).toSorted();
    const data = times.subarray(0, 32).filter(Number.isFinite).length;
    this.missingData += 32 - data;
    this.missingCode += 32 - (present.length - data);
    const first = present[0] ?? 0;
    if (present.length >= recoverableFrom) {
      this.recoverableSets++;
      this.toRecoverable.record((present[recoverableFrom - 1] ?? first) - first);
    }
    if (present.length === setLeaves) this.completeSets++;
    this.toLast.record((present.at(-1) ?? first) - first);
  }

  #addGaps(times: Float64Array): void {
    for (const time of times) this.gaps.add(!Number.isFinite(time));
    this.gaps.end();
  }
}
