// Race scores: first arrivals, lags and losses of every feed over all judged slots.
//
// A slot has shreds or, in a race with streams, transactions, which are counted as data shreds without FEC sets.
// race-session.ts adds settled slots; race-report.ts reads the scores. A feed wins a shred if it alone
// delivers it first; arrivals in the same nanosecond tie. A lag is relative to the best other
// feed, so only shreds that another feed also delivered have one.

import { LagHistogram } from "../../core/log-linear-histogram.ts";
import { FirstArrivalCounts, MissingRuns, NewestRows } from "./feed-counters.ts";
import { Groups } from "./leader-turns.ts";
import { recoverableFrom, SlotArrivals, setLeaves } from "./slot-arrivals.ts";
import type { TransactionArrivals } from "./transaction-collector.ts";

export type JudgedSlot = SlotArrivals | TransactionArrivals;

export interface SlotCoverageRow {
  readonly slot: number;
  /** Shreds that any feed delivered. */
  readonly distinct: number;
  /** Delivered shreds by feed. */
  readonly delivered: readonly number[];
}

class FeedScore {
  data = 0;
  code = 0;
  wins = 0;
  ties = 0;
  /** Wins, plus its part of each tie. */
  winSum = 0;
  /** Shreds that only this feed delivered; they are wins too. */
  solo = 0;
  /** Wins among the shreds that all feeds delivered. */
  sharedWins = 0;
  sharedTies = 0;
  /** Relative to the best other feed; negative if ahead. */
  readonly lag = new LagHistogram();
  /** Contest for the first possible recovery of a FEC set. */
  readonly fecSets = new FirstArrivalCounts();
  /** Contest for the first possible recovery of every FEC set of a slot. */
  readonly slots = new FirstArrivalCounts();
  /** Shreds that this feed did not deliver, in order of their first arrivals. */
  readonly missed = new MissingRuns();
  /** Time from the first to the last shred of each slot. */
  readonly span = new LagHistogram();
}

export class PairScore {
  readonly a: number;
  readonly b: number;
  aFirst = 0;
  bFirst = 0;
  ties = 0;
  /** Time by which `a` was earlier. */
  readonly advance = new LagHistogram();

  constructor(a: number, b: number) {
    this.a = a;
    this.b = b;
  }
}

const never = Number.POSITIVE_INFINITY;

export class RaceScores {
  readonly feeds: readonly FeedScore[];
  readonly pairs: readonly PairScore[];
  readonly groups: Groups;
  distinctData = 0;
  distinctCode = 0;
  /** Shreds that every feed delivered. */
  shared = 0;
  sets = 0;
  slots = 0;
  /** Slots whose last shred at least one feed delivered. */
  wholeSlots = 0;
  readonly #coverage = new NewestRows<SlotCoverageRow>();

  constructor(feeds: number) {
    this.feeds = Array.from({ length: feeds }, () => new FeedScore());
    this.pairs = this.feeds.flatMap((_, a) =>
      this.feeds.slice(a + 1).map((_other, i) => new PairScore(a, a + 1 + i)),
    );
    this.groups = new Groups(feeds);
  }

  /** Rows for the picture. */
  get coverage(): readonly SlotCoverageRow[] {
    return this.#coverage.rows;
  }

  get distinct(): number {
    return this.distinctData + this.distinctCode;
  }

  add(slot: JudgedSlot): void {
    this.slots++;
    this.groups.startSlot(slot.slot);
    const delivered = this.feeds.map(() => 0);
    if (slot instanceof SlotArrivals) {
      this.#addShreds(slot, delivered);
    } else {
      for (const row of slot.times.values()) this.#addShred(row, true, delivered);
      this.#addMisses([...slot.times.values()]);
    }
    this.#coverage.add({ slot: slot.slot, distinct: slot.distinct, delivered });
  }

  #addShreds(slot: SlotArrivals, delivered: number[]): void {
    const rows: Float64Array[] = [];
    const readyAt = this.feeds.map(() => Number.NEGATIVE_INFINITY);
    for (const { times } of slot.sets.values()) {
      this.sets++;
      for (let leaf = 0; leaf < setLeaves; leaf++) {
        const row = times.subarray(leaf * slot.feeds, (leaf + 1) * slot.feeds);
        if (row.every((time) => time === never)) continue;
        rows.push(row);
        this.#addShred(row, leaf < 32, delivered);
      }
      this.#addSet(times, readyAt);
    }
    this.#addMisses(rows);
    if (slot.setCount !== null) {
      this.wholeSlots++;
      if (slot.sets.size === slot.setCount) this.#race(readyAt, ({ slots }) => slots);
    }
  }

  #addShred(row: Float64Array, isData: boolean, delivered: number[]): void {
    if (isData) this.distinctData++;
    else this.distinctCode++;
    this.groups.noteShred();
    const { first, second, firsts, present } = ranksOf(row);
    const isShared = present === row.length;
    if (isShared) this.shared++;
    for (let feed = 0; feed < row.length; feed++) {
      const time = row[feed] ?? never;
      const score = this.feeds[feed];
      if (time === never || !score) continue;
      delivered[feed] = (delivered[feed] ?? 0) + 1;
      if (isData) score.data++;
      else score.code++;
      if (time === first) {
        this.groups.noteWin(feed, 1 / firsts);
        score.winSum += 1 / firsts;
        if (firsts === 1) score.wins++;
        else score.ties++;
        if (isShared && firsts === 1) score.sharedWins++;
        else if (isShared) score.sharedTies++;
      }
      if (present === 1) score.solo++;
      else score.lag.record(time - (time === first ? second : first));
    }
    if (present > 1) this.#addPairs(row);
  }

  #addPairs(row: Float64Array): void {
    for (const [number, pair] of this.pairs.entries()) {
      const advance = (row[pair.b] ?? never) - (row[pair.a] ?? never);
      if (!Number.isFinite(advance)) continue; // at least one of the two did not deliver it
      pair.advance.record(advance);
      if (advance > 0) pair.aFirst++;
      else if (advance < 0) pair.bFirst++;
      else pair.ties++;
      this.groups.notePair(number, advance);
    }
  }

  #addSet(times: Float64Array, readyAt: number[]): void {
    const ready = this.feeds.map((_, feed) => recoverableAt(times, feed, this.feeds.length));
    for (const [feed, at] of ready.entries()) readyAt[feed] = Math.max(readyAt[feed] ?? never, at);
    this.#race(ready, ({ fecSets }) => fecSets);
  }

  /** Scores one contest for each feed that finished it. */
  #race(times: readonly number[], countsOf: (score: FeedScore) => FirstArrivalCounts): void {
    const { first, second, firsts } = ranksOf(times);
    for (const [feed, time] of times.entries()) {
      const score = this.feeds[feed];
      if (time === never || !score) continue;
      const best = time === first ? second : first;
      countsOf(score).add(best === never ? null : time - best, time === first && firsts === 1);
    }
  }

  #addMisses(rows: Float64Array[]): void {
    const firsts = new Map(rows.map((row) => [row, row.reduce((a, b) => Math.min(a, b))]));
    rows.sort((a, b) => (firsts.get(a) ?? 0) - (firsts.get(b) ?? 0));
    for (const [feed, score] of this.feeds.entries()) {
      let begin = never;
      let end = Number.NEGATIVE_INFINITY;
      for (const row of rows) {
        const time = row[feed] ?? never;
        score.missed.add(time === never);
        if (time === never) continue;
        begin = Math.min(begin, time);
        end = Math.max(end, time);
      }
      score.missed.end();
      if (end >= begin) score.span.record(end - begin);
    }
  }
}

/** `second` is the second-best time; equal to `first` on a tie. */
function ranksOf(times: ArrayLike<number>): {
  first: number;
  second: number;
  firsts: number;
  present: number;
} {
  let first = never;
  let second = never;
  let firsts = 0;
  let present = 0;
  for (let feed = 0; feed < times.length; feed++) {
    const time = times[feed] ?? never;
    if (time === never) continue;
    present++;
    if (time < first) {
      second = first;
      first = time;
      firsts = 1;
    } else {
      if (time === first) firsts++;
      second = Math.min(second, time);
    }
  }
  return { first, second, firsts, present };
}

/**
 * Time at which the feed had delivered enough of the set to recover the rest; Infinity if never.
 */
function recoverableAt(times: Float64Array, feed: number, feeds: number): number {
  return nthAt(times, feed, feeds, recoverableFrom);
}

function nthAt(times: Float64Array, feed: number, feeds: number, nth: number): number {
  const own = new Float64Array(setLeaves);
  for (let leaf = 0; leaf < setLeaves; leaf++) own[leaf] = times[leaf * feeds + feed] ?? never;
  return own.toSorted()[nth - 1] ?? never;
}
