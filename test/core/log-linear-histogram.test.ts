import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodeHistogram,
  histogramFloor,
  LagHistogram,
} from "../../src/core/log-linear-histogram.ts";
import { referencePercentile } from "../tools/race/naive-scores.ts";

const precisionBits = 4;

/** The bucket of a value by search, independent of the native formula. */
function bucketOf(value: bigint): number {
  let bucket = 0;
  while (histogramFloor(bucket + 1, precisionBits) <= value) bucket++;
  return bucket;
}

describe("histogram", () => {
  it("has ascending buckets without gaps, at most 1/16 wide", () => {
    for (let bucket = 0; bucket < 400; bucket++) {
      const floor = histogramFloor(bucket, precisionBits);
      const width = histogramFloor(bucket + 1, precisionBits) - floor;
      expect(width).toBeGreaterThan(0n);
      if (bucket > 16) expect(width * 16n).toBeLessThanOrEqual(floor);
    }
  });

  it("returns percentiles within one bucket of the exact ones", () => {
    const values = fc.array(fc.bigInt({ min: 0n, max: 4_000_000n }), {
      minLength: 1,
      maxLength: 200,
    });
    fc.assert(
      fc.property(values, fc.double({ min: 0, max: 100, noNaN: true }), (numbers, p) => {
        const words = new BigUint64Array(2 + 496);
        for (const value of numbers) {
          words[0] = (words[0] ?? 0n) + value;
          if (value > (words[1] ?? 0n)) words[1] = value;
          const at = 2 + bucketOf(value);
          words[at] = (words[at] ?? 0n) + 1n;
        }
        const histogram = decodeHistogram(words, precisionBits);
        const sorted = numbers.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
        const exact = sorted[Math.max(1, Math.ceil((p / 100) * sorted.length)) - 1] ?? 0n;
        expect(histogram.count).toBe(BigInt(numbers.length));
        expect(bucketOf(histogram.percentile(p))).toBe(bucketOf(exact));
        expect(histogram.percentile(p)).toBeGreaterThanOrEqual(exact);
        expect(histogram.percentile(100)).toBe(sorted.at(-1));
      }),
    );
  });

  it("counts exactly the values below a power of two", () => {
    const values = fc.array(fc.bigInt({ min: 0n, max: 2n ** 30n }), { maxLength: 100 });
    const powers = Array.from({ length: 34 }, (_, power) => 1n << BigInt(power));
    fc.assert(
      fc.property(values, (numbers) => {
        const words = new BigUint64Array(2 + 496);
        for (const value of numbers) {
          words[0] = (words[0] ?? 0n) + value;
          const at = 2 + bucketOf(value);
          words[at] = (words[at] ?? 0n) + 1n;
        }
        const histogram = decodeHistogram(words, precisionBits);
        const below = powers.map((edge) => BigInt(numbers.filter((value) => value < edge).length));
        expect(histogram.countsBelow(powers)).toEqual(below);
        expect(histogram.sum).toBe(numbers.reduce((total, value) => total + value, 0n));
      }),
      { numRuns: 50 },
    );
  });

  const counted = fc.array(fc.bigInt({ min: 0n, max: 4_000_000n }), { maxLength: 100 });
  const wordsOf = (numbers: readonly bigint[]): BigUint64Array => {
    const words = new BigUint64Array(2 + 496);
    for (const value of numbers) {
      words[0] = (words[0] ?? 0n) + value;
      if (value > (words[1] ?? 0n)) words[1] = value;
      const at = 2 + bucketOf(value);
      words[at] = (words[at] ?? 0n) + 1n;
    }
    return words;
  };

  it("returns the difference to an earlier state, and treats a smaller one as a restart", () => {
    fc.assert(
      fc.property(counted, counted, (before, after) => {
        const all = decodeHistogram(wordsOf([...before, ...after]), precisionBits);
        const earlier = decodeHistogram(wordsOf(before), precisionBits);
        const since = all.since(earlier);
        const exact = decodeHistogram(wordsOf(after), precisionBits);
        expect([since.count, since.mean]).toEqual([exact.count, exact.mean]);
        expect(bucketOf(since.max)).toBe(bucketOf(exact.max));
        expect(since.max).toBeGreaterThanOrEqual(exact.max);
        expect(since.bars()).toEqual(exact.bars());
        // The earlier states are unchanged.
        expect(all.count).toBe(BigInt(before.length + after.length));
        if (before.length > 0 && after.length === 0) {
          const decoded = decodeHistogram(wordsOf([]), precisionBits).since(earlier);
          expect(decoded.count).toBe(0n);
        }
      }),
    );
  });

  it("returns bars that contain everything, each a quarter to a half wider than the last", () => {
    fc.assert(
      fc.property(counted, (numbers) => {
        const bars = decodeHistogram(wordsOf(numbers), precisionBits).bars();
        const total = bars.reduce((sum, { count }) => sum + count, 0n);
        expect(total).toBe(BigInt(numbers.length));
        expect([bars[0]?.count, bars.at(-1)?.count]).not.toContain(0n);
        let from = -1n;
        for (const { upTo, count } of bars) {
          const inside = numbers.filter((value) => value > from && value <= upTo).length;
          if (from >= 0n) expect(inside).toBe(Number(count));
          if (from > 31n) {
            const growth = Number(upTo + 1n) / Number(from + 1n);
            expect(growth).toBeGreaterThanOrEqual(1.25);
            expect(growth).toBeLessThanOrEqual(1.5);
          }
          from = upTo;
        }
      }),
    );
  });

  it("is zero when empty", () => {
    const histogram = decodeHistogram(new BigUint64Array(20), precisionBits);
    expect([histogram.count, histogram.max, histogram.mean, histogram.percentile(50)]).toEqual([
      0n,
      0n,
      0,
      0n,
    ]);
  });
});

describe("LagHistogram", () => {
  it("has an error of at most 0.1 % at any size, and is exact below 2,048 ns", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -3e9, max: 3e9 }), { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 0, max: 100 }),
        (values, p) => {
          const histogram = new LagHistogram();
          for (const value of values) histogram.record(value);
          const exact = referencePercentile(
            values.toSorted((a, b) => a - b),
            p,
          );
          const got = histogram.percentile(p) ?? Number.NaN;
          const room = Math.abs(exact ?? 0) < 2048 ? 0 : Math.abs(exact ?? 0) / 1000;
          expect(Math.abs(got - (exact ?? 0))).toBeLessThanOrEqual(room);
        },
      ),
    );
  });
});
