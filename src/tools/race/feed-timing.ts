// Feed timing: completeness and jitter of one feed, from settled slots.
//
// Used by `listen`. Losses are gaps in the indices: each FEC set with at least one received shred
// has 64 shreds, and a slot whose last shred was received has a known number of sets. What was sent
// before the first received shred is not a loss. Times are relative to the feed itself; a receiver
// alone cannot measure the transit time.

import { LagHistogram } from "../../core/log-linear-histogram.ts";
import { MissingRuns, NewestRows } from "./feed-counters.ts";
import { recoverableFrom, type SlotArrivals, setLeaves } from "./slot-arrivals.ts";

interface SlotShare {
  readonly slot: number;
  /** Share of received shreds, as far as their number is known. */
  readonly share: number;
}

/** Shreds that were sent before the first received one may still arrive during this time. */
const beginNs = 50e6;

/** Sets before the first received one; null: the slot was received from its beginning. */
function setsBeforeOf({ sets }: SlotArrivals): number | null {
  const lowest = Math.min(...sets.keys());
  const isWhole = lowest === 0 && Number.isFinite(sets.get(0)?.times[0] ?? Number.NaN);
  return isWhole ? null : lowest;
}

export class FeedTiming {
  slots = 0;
  /** FEC sets with at least one received shred. */
  sets = 0;
  completeSets = 0;
  recoverableSets = 0;
  /** FEC sets without any received shred, in slots whose end is known. */
  absentSets = 0;
  missingData = 0;
  missingCode = 0;
  /** Runs of missing shreds of a set, data or code, in order of their indices. */
  readonly gaps = new MissingRuns();
  /**
   * Time from the first shred of a set to the one that made it recoverable, and to the last one.
   */
  readonly toRecoverable = new LagHistogram();
  readonly toLast = new LagHistogram();
  /** Time from the first shred of a slot to the last one. */
  readonly slotSpan = new LagHistogram();
  /** Time between two consecutive new shreds of a slot. */
  readonly step = new LagHistogram();
  /** Time between the first shreds of two consecutive slots. */
  readonly slotStep = new LagHistogram();
  readonly #recent = new NewestRows<SlotShare>();
  #last: { readonly slot: number; readonly firstNs: number } | undefined;
  /** Time of the first shred. */
  #firstNs: number | undefined;

  /** Adds one settled slot; call in ascending order as far as possible. */
  add(slot: SlotArrivals): void {
    if (slot.distinct === 0) return;
    this.slots++;
    this.#firstNs ??= slot.firstNs;
    const untilNs = this.#firstNs + beginNs;
    const setsBefore = slot.firstNs <= untilNs ? setsBeforeOf(slot) : null;
    const times: number[] = [];
    for (const { times: own } of slot.sets.values()) {
      const isCut = setsBefore !== null && own.some((time) => time <= untilNs);
      if (!isCut || own.every(Number.isFinite)) this.#addSet(own);
      for (const time of own) if (Number.isFinite(time)) times.push(time);
    }
    times.sort((a, b) => a - b);
    for (const [i, time] of times.entries())
      if (i > 0) this.step.record(time - (times[i - 1] ?? time));
    this.slotSpan.record((times.at(-1) ?? 0) - (times[0] ?? 0));
    // Without the slot's last shred, only the sets with a received shred are known.
    const known = Math.max((slot.setCount ?? 0) - (setsBefore ?? 0), slot.sets.size);
    this.absentSets += known - slot.sets.size;
    this.#recent.add({ slot: slot.slot, share: slot.distinct / (known * setLeaves) });
    if (this.#last?.slot === slot.slot - 1) this.slotStep.record(slot.firstNs - this.#last.firstNs);
    this.#last = { slot: slot.slot, firstNs: slot.firstNs };
  }

  /** The newest slots. */
  get recent(): readonly SlotShare[] {
    return this.#recent.rows;
  }

  /** Share of missing shreds among those that are known to exist. */
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
