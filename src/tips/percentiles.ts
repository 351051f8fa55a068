// Nearest-rank percentiles of tips: the 25th, 50th, 75th, 95th and 99th.
//
// Called by tip-window.ts. Percentile p of n sorted values is the one at rank ceil(p * n / 100), counted
// from 1: the smallest value that is at or above p percent of them. It is always a paid tip. The five
// values are selected without sorting. Pivots are random, so no order of tips makes it slow.

import type { SeededRandom } from "../core/seeded-random.ts";
import type { TipSnapshot } from "./tip-types.ts";

export type Percentiles = TipSnapshot["percentiles"];

const wanted = [25, 50, 75, 95, 99] as const;

/** Indexes from 0 in ascending order of `count` values, at least 1. */
export function ranksOf(count: number): number[] {
  return wanted.map((percent) => Math.ceil((percent * count) / 100) - 1);
}

/** Values per step between two yields: about 100 µs. */
const stepValues = 16_384;

/**
 * The values at `ranks` (ascending indexes from 0) of the sorted `values`. Reorders `values`, which must
 * not change while it is suspended.
 */
export function* selectRanks(
  values: Float64Array,
  ranks: readonly number[],
  random: SeededRandom,
): Generator<void, number[]> {
  const selected: number[] = [];
  let begin = 0;
  for (const rank of ranks) {
    yield* select(values, { begin, rank }, random);
    selected.push(values[rank] ?? 0);
    // No value before this rank is larger, so the next selection starts here.
    begin = rank;
  }
  return selected;
}

/** Afterwards no value before `rank` is larger than values[rank], and none after it is smaller. */
function* select(
  values: Float64Array,
  { begin, rank }: { readonly begin: number; readonly rank: number },
  random: SeededRandom,
): Generator<void, void> {
  let low = begin;
  let high = values.length - 1;
  while (low < high) {
    const pivot = medianOfThree(values, low, high, random);
    let left = low;
    let right = high;
    let stop = stepValues;
    // Both stop at equal values: most tips are the minimum, and the halves must stay equal.
    while (left <= right) {
      while ((values[left] ?? 0) < pivot) left++;
      while ((values[right] ?? 0) > pivot) right--;
      if (left > right) break;
      const value = values[left] ?? 0;
      values[left++] = values[right] ?? 0;
      values[right--] = value;
      if (left - low + high - right < stop) continue;
      stop += stepValues;
      yield;
    }
    if (rank <= right) high = right;
    else if (rank >= left) low = left;
    else return;
  }
}

function medianOfThree(
  values: Float64Array,
  low: number,
  high: number,
  random: SeededRandom,
): number {
  const draw = (): number => values[low + Math.floor(random.share() * (high - low + 1))] ?? 0;
  const a = draw();
  const b = draw();
  const c = draw();
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}
