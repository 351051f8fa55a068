// Block bootstrap: intervals of results whose samples are not independent. Pure.
//
// Used by `race` and `land`. Samples belong to groups (turns of leaders). Groups are resampled with
// replacement, and the middle part of the results is the interval. The seed is fixed, so the same samples
// give the same intervals.

import { SeededRandom } from "../../core/seeded-random.ts";

/** Fewer groups give no intervals, because these would be too narrow. */
export const groupsMin = 8;
/** Number of consecutive slots of a leader, which share paths and load: one group. */
export const slotsPerTurn = 4;
const seed = 95;

export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** The middle part of `values` with the share `level`. */
export function intervalOf(values: readonly number[], level = 0.95): Interval {
  const sorted = Float64Array.from(values).toSorted();
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))] ?? 0;
  const outside = (1 - level) / 2;
  return { low: at(outside), high: at(1 - outside) };
}

export function isOutside({ low, high }: Interval, value: number): boolean {
  return value < low || value > high;
}

/** For each draw, how often each of the `groups` was drawn. */
export function drawsOf(groups: number, draws: number): Uint32Array[] {
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

/** Values ascending, each with the number of its group and the number of samples that it stands for. */
export interface GroupedValues {
  readonly values: Float64Array;
  readonly groupOf: Uint32Array;
  readonly weights: Float64Array;
}

interface GroupedValue {
  readonly value: number;
  readonly group: number;
  readonly weight: number;
}

export function groupedValues(entries: readonly GroupedValue[]): GroupedValues {
  const sorted = entries.toSorted((a, b) => a.value - b.value);
  return {
    values: Float64Array.from(sorted, ({ value }) => value),
    groupOf: Uint32Array.from(sorted, ({ group }) => group),
    weights: Float64Array.from(sorted, ({ weight }) => weight),
  };
}

/** The smallest value of a draw with at least `rank` samples up to it; 0 without values. */
export function drawnQuantile(
  { values, groupOf, weights }: GroupedValues,
  times: Uint32Array,
  rank: number,
): number {
  let seen = 0;
  for (let i = 0; i < values.length; i++) {
    seen += (weights[i] ?? 0) * (times[groupOf[i] ?? 0] ?? 0);
    if (seen >= rank) return values[i] ?? 0;
  }
  return values.at(-1) ?? 0;
}
