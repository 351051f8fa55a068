// Intervals of a landing benchmark: of percentiles, of shares, and of paired differences. Pure.
//
// Each interval is the smallest one that contains two others. The block bootstrap over turns of leaders, as in
// races, accounts for rounds that share a leader. The exact interval accounts for what a small sample cannot show:
// a rare drop, or the last per cent. If a percentile needs more samples than there are, it has no interval.

import {
  drawnQuantile,
  drawsOf,
  type GroupedValues,
  groupedValues,
  groupsMin,
  type Interval,
  intervalOf,
  slotsPerTurn,
} from "../report/bootstrap.ts";
import { hull, percentileRanks, shareInterval } from "../report/exact-intervals.ts";

/** A number, and the interval that contains the true one with the level of the report; null: too few samples. */
export interface Estimate {
  readonly value: number | null;
  readonly interval: Interval | null;
}

/** One value of a round; null: the round has none. */
type RoundValues = readonly (number | null)[];

const level = 0.95;
const draws = 400;
/** More, because their intervals reach further into the tails. */
const comparisonDraws = 1000;

/** The turns of the rounds' slots: rounds of one turn are resampled together. */
export class Turns {
  /** Number of the group of each round. */
  readonly groupOf: readonly number[];
  readonly count: number;
  readonly #draws = new Map<number, readonly Uint32Array[]>();

  constructor(slots: readonly number[]) {
    const turns = slots.map((slot) => Math.floor(slot / slotsPerTurn));
    const numbers = new Map([...new Set(turns)].map((turn, number) => [turn, number]));
    this.groupOf = turns.map((turn) => numbers.get(turn) ?? 0);
    this.count = numbers.size;
  }

  get areEnough(): boolean {
    return this.count >= groupsMin;
  }

  drawn(count: number): readonly Uint32Array[] {
    const known = this.#draws.get(count) ?? drawsOf(this.count, count);
    this.#draws.set(count, known);
    return known;
  }
}

/** The smallest value of `sorted` with at least `share` of all up to it. */
function quantile(sorted: ArrayLike<number>, share: number): number | null {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null;
}

function grouped(values: RoundValues, turns: Turns): GroupedValues {
  return groupedValues(
    values.flatMap((value, round) =>
      value === null ? [] : [{ value, group: turns.groupOf[round] ?? 0, weight: 1 }],
    ),
  );
}

/** Per group: the sum of `of` over its rounds. */
function sums(turns: Turns, rounds: number, of: (round: number) => number): Float64Array {
  const totals = new Float64Array(turns.count);
  for (let round = 0; round < rounds; round++) {
    const group = turns.groupOf[round] ?? 0;
    totals[group] = (totals[group] ?? 0) + of(round);
  }
  return totals;
}

function drawnSum(totals: Float64Array, times: Uint32Array): number {
  let total = 0;
  for (let i = 0; i < totals.length; i++) total += (totals[i] ?? 0) * (times[i] ?? 0);
  return total;
}

/** Percentile `share` (0 to 1) of the values. */
function percentileOf(
  pool: GroupedValues,
  turns: Turns,
  share: number,
  options: { readonly level: number; readonly draws: number },
): Estimate {
  const { values } = pool;
  const value = quantile(values, share);
  const ranks = percentileRanks(share, values.length, options.level);
  if (value === null || !ranks || !turns.areEnough) return { value, interval: null };
  const counts = new Float64Array(turns.count);
  for (const group of pool.groupOf) counts[group] = (counts[group] ?? 0) + 1;
  const drawn: number[] = [];
  for (const times of turns.drawn(options.draws)) {
    const total = drawnSum(counts, times);
    if (total > 0) drawn.push(drawnQuantile(pool, times, share * total));
  }
  const exact = { low: values[ranks.low - 1] ?? value, high: values[ranks.high - 1] ?? value };
  return { value, interval: hull(exact, intervalOf(drawn, options.level)) };
}

export interface Percentiles {
  readonly count: number;
  readonly p50: Estimate;
  readonly p90: Estimate;
  readonly p99: Estimate;
}

/** `turns`: null: without intervals. */
export function percentilesOf(values: RoundValues, turns: Turns | null): Percentiles {
  const known = values.filter((value) => value !== null);
  const pool = turns && grouped(values, turns);
  const sorted = pool?.values ?? known.toSorted((a, b) => a - b);
  const estimate = (share: number): Estimate =>
    turns && pool
      ? percentileOf(pool, turns, share, { level, draws })
      : { value: quantile(sorted, share), interval: null };
  return { count: known.length, p50: estimate(0.5), p90: estimate(0.9), p99: estimate(0.99) };
}

/** Share of rounds for which `hits` is true. */
export function shareOf(hits: readonly boolean[], turns: Turns | null): Estimate {
  const count = hits.filter((hit) => hit).length;
  if (hits.length === 0) return { value: null, interval: null };
  const value = count / hits.length;
  if (!turns?.areEnough) return { value, interval: null };
  const totals = sums(turns, hits.length, () => 1);
  const wins = sums(turns, hits.length, (round) => (hits[round] ? 1 : 0));
  const drawn = turns
    .drawn(draws)
    .map((times) => drawnSum(wins, times) / Math.max(1, drawnSum(totals, times)));
  return { value, interval: hull(shareInterval(count, hits.length, level), intervalOf(drawn)) };
}

export interface Comparison {
  /** Rounds in which both landed and have a time. */
  readonly both: number;
  readonly aFirst: number;
  readonly bFirst: number;
  /** Share of these rounds in which `a` was first; a tie counts as half. */
  readonly winShare: Estimate;
  /** Median time by which `a` was earlier. */
  readonly advanceNs: Estimate;
  /** Share of rounds that `a` landed minus that of `b`. */
  readonly landedDifference: Estimate;
}

interface Pair {
  readonly landedA: readonly boolean[];
  readonly landedB: readonly boolean[];
  /** Above 0: `a` is earlier in the chain; null: not both landed. */
  readonly order: RoundValues;
  readonly advanceNs: RoundValues;
}

/**
 * Level of each interval of a comparison, so that all claims of a report hold together with 95 %
 * (Bonferroni): two claims for each pair.
 */
function comparisonLevel(pairs: number): number {
  return 1 - (1 - level) / Math.max(1, 2 * pairs);
}

function winsOf({ order }: Pair, turns: Turns | null, of: number) {
  const known = order.filter((value) => value !== null);
  const aFirst = known.filter((value) => value > 0).length;
  const bFirst = known.filter((value) => value < 0).length;
  const value =
    known.length === 0 ? null : (aFirst + (known.length - aFirst - bFirst) / 2) / known.length;
  const counts = { both: known.length, aFirst, bFirst };
  if (!turns?.areEnough || known.length === 0)
    return { ...counts, winShare: { value, interval: null } };
  const points = (round: number) => {
    const each = order[round] ?? null;
    return each === null ? 0 : each > 0 ? 1 : each === 0 ? 0.5 : 0;
  };
  const wins = sums(turns, order.length, points);
  const totals = sums(turns, order.length, (round) => (order[round] === null ? 0 : 1));
  const drawn = turns
    .drawn(comparisonDraws)
    .map((times) => [drawnSum(wins, times), drawnSum(totals, times)] as const)
    .flatMap(([won, total]) => (total > 0 ? [won / total] : []));
  const exact = shareInterval(aFirst, aFirst + bFirst, of);
  const interval = hull(aFirst + bFirst === 0 ? { low: 0, high: 1 } : exact, intervalOf(drawn, of));
  return { ...counts, winShare: { value, interval } };
}

/**
 * Interval of the difference of two paired shares. The rounds that only one landed decide it: their share of all
 * rounds, and the share of `a` among them, each with an exact interval of half the error.
 */
function exactDifference(onlyA: number, onlyB: number, rounds: number, of: number): Interval {
  const half = 1 - (1 - of) / 2;
  const differing = shareInterval(onlyA + onlyB, rounds, half);
  const won = onlyA + onlyB === 0 ? { low: 0, high: 1 } : shareInterval(onlyA, onlyA + onlyB, half);
  const [low, high] = [2 * won.low - 1, 2 * won.high - 1];
  return {
    low: low * (low < 0 ? differing.high : differing.low),
    high: high * (high > 0 ? differing.high : differing.low),
  };
}

function landedDifference({ landedA, landedB }: Pair, turns: Turns | null, of: number): Estimate {
  const rounds = landedA.length;
  if (rounds === 0) return { value: null, interval: null };
  const sign = (round: number) => Number(landedA[round]) - Number(landedB[round]);
  let onlyA = 0;
  let onlyB = 0;
  for (let round = 0; round < rounds; round++) {
    if (sign(round) > 0) onlyA++;
    else if (sign(round) < 0) onlyB++;
  }
  const value = (onlyA - onlyB) / rounds;
  if (!turns?.areEnough) return { value, interval: null };
  const totals = sums(turns, rounds, () => 1);
  const signs = sums(turns, rounds, sign);
  const drawn = turns
    .drawn(comparisonDraws)
    .map((times) => drawnSum(signs, times) / Math.max(1, drawnSum(totals, times)));
  return {
    value,
    interval: hull(exactDifference(onlyA, onlyB, rounds, of), intervalOf(drawn, of)),
  };
}

/** `pairs`: number of pairs in the report. */
export function comparisonOf(pair: Pair, turns: Turns | null, pairs: number): Comparison {
  const of = comparisonLevel(pairs);
  const advances = pair.advanceNs.filter((value) => value !== null);
  const advanceNs = turns
    ? percentileOf(grouped(pair.advanceNs, turns), turns, 0.5, {
        level: of,
        draws: comparisonDraws,
      })
    : {
        value: quantile(
          advances.toSorted((a, b) => a - b),
          0.5,
        ),
        interval: null,
      };
  return {
    ...winsOf(pair, turns, of),
    advanceNs,
    landedDifference: landedDifference(pair, turns, of),
  };
}
