// Race session: from arrivals to judged slots, without the edges.
//
// Called by `shredway race` with arrivals live or from captures, and told how far time is. A slot is judged
// when it is settled and every feed could see the whole of it: slots that were under way when the last
// feed began are left out, and those that are not settled when the race ends. A feed that does not
// begin within `graceNs` is raced without waiting for it: then it just brought nothing.

import { RaceScores } from "./race-scores.ts";
import type { ShredArrival, SlotArrivals } from "./slot-arrivals.ts";
import { SlotCollector } from "./slot-collector.ts";

interface CourseOptions {
  readonly feeds: number;
  readonly settleNs: number;
  readonly graceNs: number;
  /** Called with every slot that is judged. */
  readonly onJudged?: (slot: SlotArrivals) => void;
}

/** Slots that can be under way at a time, from the median on. */
const underWayMax = 64;

export class RaceSession {
  readonly scores: RaceScores;
  readonly collector: SlotCollector;
  /** Slots at the edges, which not every feed could see whole. */
  edgeSlots = 0;
  readonly #options: CourseOptions;
  /** Settled before it is known when the last feed began. */
  #waiting: SlotArrivals[] = [];
  /** Highest slot that was under way when the last feed began; undefined: not known yet. */
  #edge: number | undefined;

  constructor(options: CourseOptions) {
    this.#options = options;
    this.scores = new RaceScores(options.feeds);
    this.collector = new SlotCollector({
      feeds: options.feeds,
      settleNs: options.settleNs,
      onSettled: (slot) => this.#take(slot),
    });
  }

  /** Whether slots are judged already: every feed began, or was waited for long enough. */
  get hasBegun(): boolean {
    return this.#edge !== undefined;
  }

  note(arrival: ShredArrival): void {
    this.collector.note(arrival);
  }

  /** `nowNs` counts from the beginning of the race, as the times of the arrivals do. */
  advance(nowNs: number): void {
    if (this.#edge === undefined) {
      const allBegan = this.collector.counts.every(({ arrivals }) => arrivals > 0);
      if (allBegan || nowNs >= this.#options.graceNs) this.#begin();
    }
    this.collector.settle(nowNs);
  }

  /** The end: what is not settled by then is an edge. */
  finish(nowNs: number): void {
    if (this.#edge === undefined) this.#begin();
    this.collector.settle(nowNs);
    this.edgeSlots += this.collector.open.length;
  }

  #begin(): void {
    this.#edge = this.#findEdge();
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const slot of waiting) this.#judge(slot);
  }

  // A slot belongs to the edge when its first shred came before the last feed's first one, and so do the
  // slots before it. One absurd slot number among real ones must not decide, hence the median.
  #findEdge(): number {
    const begun = this.collector.counts.map(({ firstNs }) => firstNs).filter(Number.isFinite);
    const lastBegan = Math.max(...begun);
    const underWay = [...this.#waiting, ...this.collector.open]
      .filter(({ firstNs }) => firstNs <= lastBegan)
      .map(({ slot }) => slot)
      .toSorted((a, b) => a - b);
    const median = underWay[underWay.length >> 1] ?? -1;
    return underWay.findLast((slot) => slot <= median + underWayMax) ?? -1;
  }

  #take(slot: SlotArrivals): void {
    if (this.#edge === undefined) this.#waiting.push(slot);
    else this.#judge(slot);
  }

  #judge(slot: SlotArrivals): void {
    if (slot.slot <= (this.#edge ?? -1)) {
      this.edgeSlots++;
      return;
    }
    if (slot.distinct === 0) return;
    this.scores.add(slot);
    this.#options.onJudged?.(slot);
  }
}
