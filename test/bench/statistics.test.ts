import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  judge,
  judgedRoundsMin,
  noiseIndex,
  perRound,
  quantile,
  spread,
  summarise,
} from "../../bench/statistics.ts";

const finite = fc.double({ min: -1e9, max: 1e9, noNaN: true });

describe("quantile", () => {
  it("takes the middle, and interpolates between two", () => {
    expect(quantile([3, 1, 2], 0.5)).toBe(2);
    expect(quantile([4, 1, 2, 3], 0.5)).toBe(2.5);
    expect(quantile([10, 20], 0.25)).toBe(12.5);
  });

  it("is NaN without values", () => {
    expect(quantile([], 0.5)).toBeNaN();
  });

  it("lies between the extremes and does not depend on the order", () => {
    fc.assert(
      fc.property(
        fc.array(finite, { minLength: 1 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (values, part) => {
          const found = quantile(values, part);
          expect(found).toBeGreaterThanOrEqual(Math.min(...values));
          expect(found).toBeLessThanOrEqual(Math.max(...values));
          expect(quantile(values.toReversed(), part)).toBe(found);
        },
      ),
    );
  });
});

describe("summarise and spread", () => {
  it("gives median, quartiles and count", () => {
    expect(summarise([1, 2, 3, 4, 5])).toEqual({ median: 3, low: 2, high: 4, count: 5 });
  });

  it("measures the quartiles' distance against the median", () => {
    expect(spread(summarise([90, 95, 100, 105, 110]))).toBeCloseTo(0.1);
    expect(spread(summarise([7]))).toBe(0);
    expect(spread(summarise([0, 0, 0]))).toBe(0);
  });
});

describe("perRound", () => {
  it("combines values of the same round and drops rounds that one lacks", () => {
    const ours = new Map([
      [1, 110],
      [2, 220],
      [3, 330],
    ]);
    const bare = new Map([
      [3, 300],
      [1, 100],
    ]);
    expect(perRound([ours, bare], ([a = 0, b = 0]) => a / b)).toEqual([1.1, 1.1]);
    expect(perRound([], () => 1)).toEqual([]);
    expect(perRound([ours, new Map()], () => 1)).toEqual([]);
  });
});

describe("judge", () => {
  const steady = summarise([100, 100, 101, 101, 102]);
  const unsteady = summarise([80, 90, 100, 110, 120]);
  const value = (median: number) => summarise(Array(judgedRoundsMin).fill(median));

  it("compares the median with the limit, the limit included", () => {
    expect(judge(value(1.1), 1.1, steady)).toBe("reached");
    expect(judge(value(1.11), 1.1, steady)).toBe("missed");
    expect(judge(summarise([140]), 150)).toBe("reached");
  });

  it("gives no verdict on an unsteady reference, on few rounds, or without a value", () => {
    expect(judge(value(1), 1.1, unsteady)).toBe("no verdict");
    expect(judge(summarise([1, 1]), 1.1, steady)).toBe("no verdict");
    expect(judge(summarise([]), 1.1, steady)).toBe("no verdict");
    expect(judge(summarise([]), 1.1)).toBe("no verdict");
  });
});

describe("noiseIndex", () => {
  it("is zero on a quiet machine", () => {
    const slots = Array.from({ length: 8 }, () => ({ cpuNs: 1000, wallNs: 1000 }));
    expect(noiseIndex(slots)).toEqual({ cpuSpread: 0, stolen: 0 });
    expect(noiseIndex([])).toEqual({ cpuSpread: 0, stolen: 0 });
  });

  it("tells unsteady work from a CPU that others had", () => {
    const stolen = Array.from({ length: 8 }, () => ({ cpuNs: 1000, wallNs: 1250 }));
    expect(noiseIndex(stolen)).toEqual({ cpuSpread: 0, stolen: 0.25 });
    const unsteady = [900, 1000, 1000, 1100].map((cpuNs) => ({ cpuNs, wallNs: cpuNs }));
    expect(noiseIndex(unsteady).cpuSpread).toBeCloseTo(0.05);
    expect(noiseIndex(unsteady).stolen).toBe(0);
  });
});
