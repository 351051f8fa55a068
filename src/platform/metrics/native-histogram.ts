// Histograms of the data plane as Prometheus has them: a fixed set of bounds, exact counts.
//
// The data plane counts by log-linear buckets whose edges include every power of two, so a bound of one
// nanosecond below such an edge has an exact count: nothing is guessed by interpolation here.

import type { Histogram } from "../../core/log-linear-histogram.ts";
import type { HistogramValue } from "./types.ts";

interface NativeBounds {
  readonly edges: readonly bigint[];
  /** Seconds. */
  readonly bounds: readonly number[];
}

/** From 2^first to 2^last nanoseconds, each 2^step times the one before. */
function powersOfTwo(first: number, last: number, step: number): NativeBounds {
  const edges: bigint[] = [];
  for (let power = first; power <= last; power += step) edges.push(1n << BigInt(power));
  return { edges, bounds: edges.map((edge) => Number(edge - 1n) / 1e9) };
}

/** 1 µs to 2 s, each twice the one before. */
export const fineBounds = powersOfTwo(10, 31, 1);
/** 1 µs to 17 s, each four times the one before: for what there is one of per source. */
export const coarseBounds = powersOfTwo(10, 34, 2);

export function nativeValue(histogram: Histogram, { edges, bounds }: NativeBounds): HistogramValue {
  return {
    bounds,
    cumulative: histogram.countsBelow(edges),
    count: histogram.count,
    sum: Number(histogram.sum) / 1e9,
  };
}
