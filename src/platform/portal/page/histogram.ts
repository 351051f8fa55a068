// A latency histogram as bars: where each stands on a logarithmic axis, and how high.
//
// Pure. Buckets without counts at both ends are left out, so that the shape fills the chart.

import type { HistogramView } from "../types.ts";
import type { Extent } from "./scale.ts";

export interface Bar {
  readonly fromNs: number;
  readonly toNs: number;
  readonly count: number;
  /** Of all that were counted; 0 to 1. */
  readonly share: number;
  /** Of the highest bar; 0 to 1. */
  readonly height: number;
}

/** Below the first bucket nothing is known: it is drawn as wide as buckets are. */
const firstBucketShare = 0.75;

/** Empty when nothing was counted. */
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

/** What the axis spans; null without bars. A single bucket gets room on both sides. */
export function extentOf(bars: readonly Bar[]): Extent | null {
  const [first] = bars;
  const last = bars.at(-1);
  if (!first || !last) return null;
  return bars.length === 1 ? [first.fromNs / 2, last.toNs * 2] : [first.fromNs, last.toNs];
}
