// Confidence: 95 % intervals of the race's results.
//
// Bootstrap over turns of leaders (leader-turns.ts): turns are resampled with replacement, and the
// middle 95 % of the results is the interval. The seed is fixed, so the same race gives the same
// intervals. Below `groupsMin` turns there are no intervals, because they would be too narrow.

import { SeededRandom } from "../../core/seeded-random.ts";
import type { Group } from "./leader-turns.ts";

const groupsMin = 8;
const draws = 400;
const seed = 95;

export interface Interval {
  readonly low: number;
  readonly high: number;
}

interface PairConfidence {
  /** Share of shreds that the first feed of the pair delivered first. */
  readonly winShare: Interval;
  /** Median advance of the first feed of the pair. */
  readonly medianNs: Interval;
}

export interface Confidence {
  /** Number of leader turns used for the intervals. */
  readonly groups: number;
  /** Intervals by feed; null with too few turns. */
  readonly winShares: readonly Interval[] | null;
  /** Intervals by pair; null for a pair without common shreds. */
  readonly pairs: readonly (PairConfidence | null)[] | null;
}

function intervalOf(values: number[]): Interval {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))] ?? 0;
  return { low: at(0.025), high: at(0.975) };
}

/** Values of all sketches of a pair, ascending, each with its group. */
interface Pool {
  readonly values: Float64Array;
  readonly groupOf: Uint32Array;
  readonly weights: Float64Array;
}

function poolOf(groups: readonly Group[], pair: number): Pool {
  const entries = groups.flatMap((group, number) => {
    const { sketch, weight } = group.pairs[pair] ?? { sketch: [], weight: 0 };
    return Array.from(sketch, (value) => ({ value, number, weight }));
  });
  entries.sort((a, b) => a.value - b.value);
  return {
    values: Float64Array.from(entries, ({ value }) => value),
    groupOf: Uint32Array.from(entries, ({ number }) => number),
    weights: Float64Array.from(entries, ({ weight }) => weight),
  };
}

function medianOf({ values, groupOf, weights }: Pool, times: Uint32Array, half: number): number {
  let seen = 0;
  for (let i = 0; i < values.length; i++) {
    seen += (weights[i] ?? 0) * (times[groupOf[i] ?? 0] ?? 0);
    if (seen >= half) return values[i] ?? 0;
  }
  return values.at(-1) ?? 0;
}

function sum(groups: readonly Group[], times: Uint32Array, of: (group: Group) => number): number {
  let total = 0;
  for (const [i, group] of groups.entries()) total += (times[i] ?? 0) * of(group);
  return total;
}

function drawsOf(groups: number): Uint32Array[] {
  const random = new SeededRandom(seed);
  return Array.from({ length: draws }, () => {
    const times = new Uint32Array(groups);
    for (let i = 0; i < groups; i++) {
      const drawn = random.below(groups);
      times[drawn] = (times[drawn] ?? 0) + 1;
    }
    return times;
  });
}

function pairConfidence(
  groups: readonly Group[],
  pair: number,
  drawn: readonly Uint32Array[],
): PairConfidence | null {
  const pool = poolOf(groups, pair);
  if (pool.values.length === 0) return null;
  const shares: number[] = [];
  const medians: number[] = [];
  for (const times of drawn) {
    const both = sum(groups, times, (group) => group.pairs[pair]?.both ?? 0);
    if (both === 0) continue;
    shares.push(sum(groups, times, (group) => group.pairs[pair]?.wins ?? 0) / both);
    medians.push(medianOf(pool, times, both / 2));
  }
  return { winShare: intervalOf(shares), medianNs: intervalOf(medians) };
}

export function confidenceOf(groups: readonly Group[]): Confidence {
  const [first] = groups;
  if (!first || groups.length < groupsMin) {
    return { groups: groups.length, winShares: null, pairs: null };
  }
  const drawn = drawsOf(groups.length);
  const winShares = Array.from(first.wins, (_, feed) =>
    intervalOf(
      drawn.map(
        (times) =>
          sum(groups, times, ({ wins }) => wins[feed] ?? 0) /
          sum(groups, times, ({ distinct }) => distinct),
      ),
    ),
  );
  const pairs = first.pairs.map((_, pair) => pairConfidence(groups, pair, drawn));
  return { groups: groups.length, winShares, pairs };
}
