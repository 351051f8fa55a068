// Confidence: how far a number of the race could be off by chance, as a 95 % interval.
//
// Bootstrap over turns of leaders (groups.ts): the same number of turns is drawn again and again with
// replacement, and the middle 95 % of what comes out is the interval. From a fixed seed: the same race
// gives the same intervals. Below `groupsMin` turns there is none, for it would promise too much.

import { SeededRandom } from "../../core/seeded-random.ts";
import type { Group } from "./groups.ts";

const groupsMin = 8;
const draws = 400;
const seed = 95;

export interface Interval {
  readonly low: number;
  readonly high: number;
}

interface PairConfidence {
  /** Of the share of shreds that the first of the pair brought first. */
  readonly winShare: Interval;
  /** Of the median advance of the first of the pair. */
  readonly medianNs: Interval;
}

export interface Confidence {
  /** Turns of leaders that the intervals are made of. */
  readonly groups: number;
  /** By feed; null: too few turns. */
  readonly winShares: readonly Interval[] | null;
  /** By pair; a pair without a shred in common has none. */
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
