// Confidence: 95 % intervals of the race's results.
//
// Block bootstrap (../report/bootstrap.ts) over turns of leaders (leader-turns.ts). Below `groupsMin`
// turns there are no intervals.

import {
  drawnQuantile,
  drawsOf,
  type GroupedValues,
  groupedValues,
  groupsMin,
  type Interval,
  intervalOf,
} from "../report/bootstrap.ts";
import type { Group } from "./leader-turns.ts";

const draws = 400;

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

function poolOf(groups: readonly Group[], pair: number): GroupedValues {
  return groupedValues(
    groups.flatMap(({ pairs }, group) => {
      const { sketch, weight } = pairs[pair] ?? { sketch: [], weight: 0 };
      return Array.from(sketch, (value) => ({ value, group, weight }));
    }),
  );
}

function sum(groups: readonly Group[], times: Uint32Array, of: (group: Group) => number): number {
  let total = 0;
  for (const [i, group] of groups.entries()) total += (times[i] ?? 0) * of(group);
  return total;
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
    medians.push(drawnQuantile(pool, times, both / 2));
  }
  return { winShare: intervalOf(shares), medianNs: intervalOf(medians) };
}

export function confidenceOf(groups: readonly Group[]): Confidence {
  const [first] = groups;
  if (!first || groups.length < groupsMin) {
    return { groups: groups.length, winShares: null, pairs: null };
  }
  const drawn = drawsOf(groups.length, draws);
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
