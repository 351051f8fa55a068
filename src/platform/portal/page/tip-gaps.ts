// Gaps in the history of tips: quarter hours without values, which a chart must not connect.
//
// Pure; used by components/tips-chart.tsx.

import type { TipPoint } from "../types.ts";
import { ms } from "./times.ts";

const quarterMs = 15 * 60_000;

/** A point of the chart. */
export interface ShownTips extends TipPoint {
  /** No refresh happened at this time: the service was not running, or could not store it. */
  readonly isGap: boolean;
}

/** `points` with one point per missing stretch. A refresh may be up to a quarter hour late. */
export function withGaps(points: readonly TipPoint[]): ShownTips[] {
  return points.flatMap((point, i) => {
    const shown = { ...point, isGap: false };
    const next = points[i + 1];
    if (!next || ms(next.time) - ms(point.time) < 2 * quarterMs) return [shown];
    const time = new Date(ms(point.time) + quarterMs).toISOString();
    const gap = { time, p25: 0, p50: 0, p75: 0, p95: 0, p99: 0, count: 0, isStale: false };
    return [shown, { ...gap, isGap: true }];
  });
}

/** The runs of points with tips; a single one needs a marker, because a line would be invisible. */
export function isAlone(points: readonly TipPoint[], at: number): boolean {
  const hasTips = (i: number): boolean => (points[i]?.count ?? 0) > 0;
  return hasTips(at) && !hasTips(at - 1) && !hasTips(at + 1);
}
