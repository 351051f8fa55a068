import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Bound,
  judge,
  judgedRoundsMin,
  noiseIndex,
  perRound,
  quantile,
  type Summary,
  spread,
  summarise,
} from "../../bench/report/statistics.ts";

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
  it("combines values of the same round and omits incomplete rounds", () => {
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
  const interval = (low: number, median: number, high: number, count = 7): Summary => ({
    median,
    low,
    high,
    count,
  });
  const ratio = (value: Summary, bound: Bound, target: number) =>
    judge(value, { target, bound, isRatio: true });

  it("compares the whole interval with the target, the target included", () => {
    expect(ratio(interval(0.9, 1, 1.1), "at most", 1.1)).toBe("met");
    expect(ratio(interval(0.9, 1, 1.11), "at most", 1.1)).toBe("inconclusive");
    expect(ratio(interval(1.1, 1.2, 1.3), "at most", 1.1)).toBe("inconclusive");
    expect(ratio(interval(1.11, 1.2, 1.3), "at most", 1.1)).toBe("missed");
    expect(ratio(interval(0.8, 0.9, 1), "at least", 0.8)).toBe("met");
    expect(ratio(interval(0.7, 0.9, 1), "at least", 0.8)).toBe("inconclusive");
    expect(ratio(interval(0.7, 0.75, 0.79), "at least", 0.8)).toBe("missed");
  });

  it("judges a single absolute value alone", () => {
    expect(judge(summarise([140]), { target: 150 })).toBe("met");
    expect(judge(summarise([151]), { target: 150 })).toBe("missed");
    expect(judge(summarise([0]), { target: 0 })).toBe("met");
  });

  it("is inconclusive without a value, and for a ratio of few rounds", () => {
    expect(judge(summarise([]), { target: 1.1 })).toBe("inconclusive");
    expect(judge(summarise([Number.NaN]), { target: 1.1 })).toBe("inconclusive");
    expect(ratio(interval(1, 1, 1, judgedRoundsMin - 1), "at most", 1.1)).toBe("inconclusive");
    expect(ratio(interval(1, 1, 1, judgedRoundsMin), "at most", 1.1)).toBe("met");
    expect(ratio(interval(2, 2, 2, judgedRoundsMin - 1), "at most", 1.1)).toBe("missed");
  });

  it("reports missed for every interval beyond the target, of any width", () => {
    const bounds = fc.constantFrom<Bound>("at most", "at least");
    const rounds = fc.array(finite, { minLength: judgedRoundsMin, maxLength: 20 });
    fc.assert(
      fc.property(rounds, bounds, finite, fc.boolean(), (values, bound, target, isRatio) => {
        const value = summarise(values);
        const beyond = (one: number) => (bound === "at most" ? one > target : one < target);
        const verdict = judge(value, { target, bound, isRatio });
        if (beyond(value.low) && beyond(value.high)) expect(verdict).toBe("missed");
        else if (beyond(value.low) || beyond(value.high)) expect(verdict).toBe("inconclusive");
        else expect(verdict).toBe("met");
      }),
    );
  });
});

describe("noiseIndex", () => {
  it("is zero on a quiet machine", () => {
    const slots = Array.from({ length: 8 }, () => ({ cpuNs: 1000, wallNs: 1000 }));
    expect(noiseIndex(slots)).toEqual({ cpuSpread: 0, stolen: 0 });
    expect(noiseIndex([])).toEqual({ cpuSpread: 0, stolen: 0 });
  });

  it("distinguishes unsteady work from a CPU in use by others", () => {
    const stolen = Array.from({ length: 8 }, () => ({ cpuNs: 1000, wallNs: 1250 }));
    expect(noiseIndex(stolen)).toEqual({ cpuSpread: 0, stolen: 0.25 });
    const unsteady = [900, 1000, 1000, 1100].map((cpuNs) => ({ cpuNs, wallNs: cpuNs }));
    expect(noiseIndex(unsteady).cpuSpread).toBeCloseTo(0.05);
    expect(noiseIndex(unsteady).stolen).toBe(0);
  });
});
