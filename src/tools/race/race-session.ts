// Race session: turns arrivals into judged slots.
//
// `shredway race` calls it with live or captured arrivals and the current time. A slot is judged
// when it is settled and every feed could receive all of it. Slots in progress at the start of
// the last feed are excluded, and slots that have not settled at the end. A feed that sends
// nothing within `graceNs` is not waited for. If it starts later, the comparison begins again there.

import type { FeedCounts } from "./open-slots.ts";
import { type JudgedSlot, RaceScores } from "./race-scores.ts";

/** Collects arrivals by slot until the slot is settled. */
interface RaceCollector<Arrival> {
  readonly counts: readonly FeedCounts[];
  /** Slots in progress, in order of their first arrivals. */
  readonly open: readonly JudgedSlot[];
  note(arrival: Arrival): void;
  settle(nowNs: number): void;
}

interface CollectorOptions {
  readonly feeds: number;
  readonly settleNs: number;
  readonly onSettled: (slot: JudgedSlot) => void;
}

interface RaceSessionOptions {
  readonly feeds: number;
  readonly settleNs: number;
  readonly graceNs: number;
  /** Called with every judged slot. */
  readonly onScored?: (slot: JudgedSlot) => void;
}

interface LateStart {
  readonly feed: number;
  /** Since the start of the race. */
  readonly firstNs: number;
}

/** Maximum number of slots in progress, counted from the median. */
const underWayMax = 64;

/** `Arrival`: of a shred or a transaction. */
export class RaceSession<Arrival> {
  readonly collector: RaceCollector<Arrival>;
  /** Feeds that started after the comparison had begun without them. */
  readonly lateStarts: LateStart[] = [];
  /** Excluded slots: not every feed could receive all of them. */
  edgeSlots = 0;
  readonly #options: RaceSessionOptions;
  #scores: RaceScores;
  /** Feeds without an arrival when the comparison began. */
  #absent: number[] = [];
  /** Slots that settled before the start of the last feed is known. */
  #waiting: JudgedSlot[] = [];
  /** Highest slot in progress at the start of the last feed; undefined until it is known. */
  #edge: number | undefined;

  constructor(
    options: RaceSessionOptions,
    collect: (options: CollectorOptions) => RaceCollector<Arrival>,
  ) {
    this.#options = options;
    this.#scores = new RaceScores(options.feeds);
    this.collector = collect({
      feeds: options.feeds,
      settleNs: options.settleNs,
      onSettled: (slot) => this.#settle(slot),
    });
  }

  get scores(): RaceScores {
    return this.#scores;
  }

  /** Whether slots are judged already: every feed has started or its grace period is over. */
  get hasStarted(): boolean {
    return this.#edge !== undefined;
  }

  note(arrival: Arrival): void {
    this.collector.note(arrival);
  }

  /** `nowNs` counts from the start of the race, like the times of the arrivals. */
  advance(nowNs: number): void {
    if (this.#edge === undefined) {
      const areAllStarted = this.collector.counts.every(({ arrivals }) => arrivals > 0);
      if (areAllStarted || nowNs >= this.#options.graceNs) this.#begin();
    } else this.#noteLateStarts();
    this.collector.settle(nowNs);
  }

  /** Ends the race; slots that have not settled are excluded. */
  finish(nowNs: number): void {
    if (this.#edge === undefined) this.#begin();
    else this.#noteLateStarts();
    this.collector.settle(nowNs);
    this.edgeSlots += this.collector.open.length;
  }

  /** Begins the comparison again if an absent feed has started: it could not win before. */
  #noteLateStarts(): void {
    const { counts } = this.collector;
    const started = this.#absent.filter((feed) => (counts[feed]?.arrivals ?? 0) > 0);
    if (started.length === 0) return;
    for (const feed of started) {
      this.lateStarts.push({ feed, firstNs: counts[feed]?.firstNs ?? 0 });
    }
    this.edgeSlots += this.#scores.slots;
    this.#scores = new RaceScores(this.#options.feeds);
    this.#begin();
  }

  #begin(): void {
    this.#absent = [...this.collector.counts.keys()].filter(
      (feed) => this.collector.counts[feed]?.arrivals === 0,
    );
    this.#edge = this.#findEdge();
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const slot of waiting) this.#score(slot);
  }

  // Excludes slots whose first shred arrived before the first one of the last feed, and all
  // earlier slots. The median prevents a single absurd slot number from deciding.
  #findEdge(): number {
    const starts = this.collector.counts.map(({ firstNs }) => firstNs).filter(Number.isFinite);
    const lastStartNs = Math.max(...starts);
    const inProgress = [...this.#waiting, ...this.collector.open]
      .filter(({ firstNs }) => firstNs <= lastStartNs)
      .map(({ slot }) => slot)
      .toSorted((a, b) => a - b);
    const median = inProgress[inProgress.length >> 1] ?? -1;
    return inProgress.findLast((slot) => slot <= median + underWayMax) ?? -1;
  }

  #settle(slot: JudgedSlot): void {
    if (this.#edge === undefined) this.#waiting.push(slot);
    else this.#score(slot);
  }

  #score(slot: JudgedSlot): void {
    if (slot.slot <= (this.#edge ?? -1)) {
      this.edgeSlots++;
      return;
    }
    if (slot.distinct === 0) return;
    this.#scores.add(slot);
    this.#options.onScored?.(slot);
  }
}
