// Percentiles by nearest rank: which of so many tips stands at 25, 50, 75, 95 and 99 of a hundred?
//
// Called by tip-window.ts. The percentile p of n sorted values is the one at rank ceil(p * n / 100),
// from 1: the smallest value that p of a hundred are at or below, always one that was paid. The five
// are selected, nothing is sorted; pivots are drawn, so that no order of tips makes it slow.

import type { SeededRandom } from "../core/seeded-random.ts";
import type { TipSnapshot } from "./tip-types.ts";

export type Percentiles = TipSnapshot["percentiles"];

const wanted = [25, 50, 75, 95, 99] as const;

/** Places from 0 in ascending order of `count` values, from 1. */
export function ranksOf(count: number): number[] {
  return wanted.map((percent) => Math.ceil((percent * count) / 100) - 1);
}

/** Values that are looked at between two stops: some 100 µs. */
const stepValues = 16_384;

/**
 * The values that stand at `ranks` (ascending places from 0) when `values` are sorted. Changes the
 * order of `values`, which must stay as they are whenever it stops.
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
    // Nothing before this rank is larger, so the next one need not look there.
    begin = rank;
  }
  return selected;
}

/** Afterwards nothing before `rank` is larger than values[rank], and nothing behind it smaller. */
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
    // Both halt at equals: most tips are the minimum, and halves must stay halves.
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
