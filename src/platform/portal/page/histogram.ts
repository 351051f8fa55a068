// Latency histogram as bars: position on a logarithmic axis, and height.
//
// Pure. Empty buckets at both ends are omitted, so that the bars fill the chart.

import type { HistogramView } from "../types.ts";
import type { Extent } from "./scale.ts";

export interface Bar {
  readonly fromNs: number;
  readonly toNs: number;
  readonly count: number;
  /** Share of all counts, 0 to 1. */
  readonly share: number;
  /** Height relative to the highest bar, 0 to 1. */
  readonly height: number;
}

/** The first bucket has no lower bound; it is drawn as wide as the others. */
const firstBucketShare = 0.75;

/** Empty if nothing was counted. */
export function barsOf({ buckets }: Pick<HistogramView, "buckets">): Bar[] {
  const total = buckets.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) return [];
  const highest = Math.max(...buckets.map(({ count }) => count));
  const bars = buckets.map(({ upToNs, count }, i) => ({
    fromNs: buckets[i - 1]?.upToNs ?? upToNs * firstBucketShare,
    toNs: upToNs,
    count,
    share: count / total,
    height: count / highest,
  }));
  const first = bars.findIndex(({ count }) => count > 0);
  const last = bars.findLastIndex(({ count }) => count > 0);
  return bars.slice(first, last + 1);
}

/** Returns the extent of the axis, null without bars. A single bar gets a margin on both sides. */
export function extentOf(bars: readonly Bar[]): Extent | null {
  const [first] = bars;
  const last = bars.at(-1);
  if (!first || !last) return null;
  return bars.length === 1 ? [first.fromNs / 2, last.toNs * 2] : [first.fromNs, last.toNs];
}
