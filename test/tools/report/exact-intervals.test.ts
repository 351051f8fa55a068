// Exact intervals against published values and against simulation.

import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { isOutside } from "../../../src/tools/report/bootstrap.ts";
import { hull, percentileRanks, shareInterval } from "../../../src/tools/report/exact-intervals.ts";

describe("shareInterval", () => {
  it("agrees with tables of Clopper and Pearson", () => {
    const tables = [
      [0, 10, 0, 0.30849],
      [1, 10, 0.00253, 0.44502],
      [5, 10, 0.18709, 0.81291],
      [10, 10, 0.69151, 1],
      [81, 263, 0.25269, 0.36762],
    ] as const;
    for (const [hits, of, low, high] of tables) {
      const interval = shareInterval(hits, of, 0.95);
      expect(interval.low).toBeCloseTo(low, 3);
      expect(interval.high).toBeCloseTo(high, 3);
    }
  });

  it("contains the true share in at least 95 % of samples", () => {
    const random = new SeededRandom(7);
    for (const share of [0.02, 0.5, 0.97]) {
      let contained = 0;
      for (let i = 0; i < 400; i++) {
        const hits = Array.from({ length: 40 }, () => random.happens(share)).filter(Boolean).length;
        if (!isOutside(shareInterval(hits, 40, 0.95), share)) contained++;
      }
      expect(contained).toBeGreaterThanOrEqual(380);
    }
  });
});

describe("percentileRanks", () => {
  it("agrees with tables of the sign test for medians", () => {
    expect(percentileRanks(0.5, 10, 0.95)).toEqual({ low: 2, high: 9 });
    expect(percentileRanks(0.5, 20, 0.95)).toEqual({ low: 6, high: 15 });
    expect(percentileRanks(0.5, 100, 0.95)).toEqual({ low: 40, high: 61 });
  });

  it("reports that the samples are too few", () => {
    expect(percentileRanks(0.5, 5, 0.95)).toBeNull();
    expect(percentileRanks(0.5, 6, 0.95)).not.toBeNull();
    // All 99 % of the samples may be below the percentile, unless 0.99^n is below 2.5 %.
    expect(percentileRanks(0.99, 367, 0.95)).toBeNull();
    expect(percentileRanks(0.99, 368, 0.95)).not.toBeNull();
    expect(percentileRanks(0.5, 0, 0.95)).toBeNull();
  });
});

it("hull contains both intervals", () => {
  expect(hull({ low: 1, high: 2 }, { low: 3, high: 4 })).toEqual({ low: 1, high: 4 });
});
