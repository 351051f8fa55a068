// Tip statistics that never change.

import type { TipFloor, TipSnapshot } from "../../../src/tips/tip-types.ts";

const snapshot: TipSnapshot = {
  timeMs: 1_767_226_500_000,
  percentiles: { p25: 1n, p50: 2n, p75: 3n, p95: 4n, p99: 5n },
  emaP50: 2n,
  count: 9,
  windowStartMs: 1_767_225_600_000,
  isStale: false,
};

export const fixedTipFloor: TipFloor = { snapshot, onRefresh: () => () => undefined };
