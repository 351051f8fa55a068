// Native histograms: histograms of the data plane with the fixed bounds that Prometheus expects.
//
// The buckets of the data plane are log-linear, with an edge at every power of two. A bound one nanosecond below
// such an edge has an exact count, so this file does not interpolate.

import type { Histogram } from "../../core/log-linear-histogram.ts";
import type { HistogramValue } from "./types.ts";

interface NativeBounds {
  readonly edges: readonly bigint[];
  /** Seconds. */
  readonly bounds: readonly number[];
}

/** Bounds from 2^first to 2^last nanoseconds; each is 2^step times the previous one. */
function powersOfTwo(first: number, last: number, step: number): NativeBounds {
  const edges: bigint[] = [];
  for (let power = first; power <= last; power += step) edges.push(1n << BigInt(power));
  return { edges, bounds: edges.map((edge) => Number(edge - 1n) / 1e9) };
}

/** 1 µs to 2 s; each bound is twice the previous one. */
export const fineBounds = powersOfTwo(10, 31, 1);
/** 1 µs to 17 s; each bound is four times the previous one. For histograms per source. */
export const coarseBounds = powersOfTwo(10, 34, 2);

export function nativeValue(histogram: Histogram, { edges, bounds }: NativeBounds): HistogramValue {
  return {
    bounds,
    cumulative: histogram.countsBelow(edges),
    count: histogram.count,
    sum: Number(histogram.sum) / 1e9,
  };
}
