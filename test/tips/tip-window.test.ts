// The window compared with a sorted list, for any additions, settlements, removals and expiries.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../src/core/seeded-random.ts";
import { ranksOf, selectRanks } from "../../src/tips/percentiles.ts";
import { TipWindow, tipLamportsMax, type WindowPercentiles } from "../../src/tips/tip-window.ts";

const windowMs = 1000;

function run<T>(steps: Generator<void, T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

interface ReferenceTip {
  readonly signature: string;
  readonly lamports: bigint;
  readonly atMs: number;
  isLanded: boolean;
}

/** A reference implementation, as short as possible. */
class Reference {
  tips: ReferenceTip[] = [];

  add(signature: string, lamports: bigint, atMs: number, nowMs: number): boolean {
    this.expire(nowMs);
    if (atMs + windowMs <= nowMs || this.tips.some((tip) => tip.signature === signature)) {
      return false;
    }
    this.tips.push({ signature, lamports, atMs, isLanded: false });
    return true;
  }

  settle(signature: string): boolean {
    const tip = this.tips.find((each) => each.signature === signature);
    if (tip) tip.isLanded = true;
    return tip !== undefined;
  }

  remove(signature: string): boolean {
    const at = this.tips.findIndex((tip) => tip.signature === signature && !tip.isLanded);
    if (at >= 0) this.tips.splice(at, 1);
    return at >= 0;
  }

  expire(nowMs: number): void {
    this.tips = this.tips.filter(({ atMs }) => atMs + windowMs > nowMs);
  }

  percentiles(nowMs: number): WindowPercentiles | null {
    this.expire(nowMs);
    const sorted = this.tips.map(({ lamports }) => lamports).toSorted((a, b) => (a < b ? -1 : 1));
    const count = sorted.length;
    if (count === 0) return null;
    const at = (percent: number): bigint => {
      const value = sorted.find((_, i) => 100 * (i + 1) >= percent * count);
      if (value === undefined) throw new Error("expected a rank");
      return value;
    };
    const percentiles = { p25: at(25), p50: at(50), p75: at(75), p95: at(95), p99: at(99) };
    return { count, percentiles };
  }
}

const lamports = fc.oneof(
  fc.constant(10_000n),
  fc.bigInt(1n, 50n),
  fc.bigInt(1n, 10n ** 9n),
  fc.bigInt(tipLamportsMax - 3n, tipLamportsMax),
);
const step = fc.record({
  kind: fc.constantFrom("add", "add", "add", "settle", "remove", "ask"),
  name: fc.nat(12),
  lamports,
  lateMs: fc.constantFrom(0, 0, 0, 3, windowMs - 1, windowMs),
  passMs: fc.constantFrom(0, 0, 1, 40, 200, windowMs - 1, windowMs),
});

describe("the tip window", () => {
  it("has the count and percentiles of a sorted list at any time", () => {
    const property = fc.property(
      fc.array(step, { maxLength: 150, size: "max" }),
      fc.constantFrom(2, 8, 16_384),
      (steps, chunkTips) => {
        const window = new TipWindow({ windowMs, chunkTips });
        const reference = new Reference();
        let nowMs = 0;
        for (const { kind, name, lamports: paid, lateMs, passMs } of steps) {
          nowMs += passMs;
          const signature = `s${name}`;
          // Late ones may precede older ones: they leave the sum at their time.
          if (kind === "add") {
            expect(window.add(signature, paid, nowMs - lateMs, nowMs)).toBe(
              reference.add(signature, paid, nowMs - lateMs, nowMs),
            );
          } else if (kind === "ask") {
            expect(run(window.percentiles(nowMs))).toEqual(reference.percentiles(nowMs));
          } else {
            window.expire(nowMs);
            reference.expire(nowMs);
            expect(window[kind](signature)).toBe(reference[kind](signature));
          }
        }
        expect(run(window.percentiles(nowMs))).toEqual(reference.percentiles(nowMs));
      },
    );
    fc.assert(property, { numRuns: 150 });
  });

  it("counts a signature once, at its first observation", () => {
    const window = new TipWindow({ windowMs });
    expect(window.add("a", 5n, 0, 0)).toBe(true);
    expect(window.add("a", 9n, 500, 500)).toBe(false);
    expect(run(window.percentiles(999))).toMatchObject({ count: 1, percentiles: { p50: 5n } });
    expect(run(window.percentiles(1000))).toBeNull();
    expect(window.add("a", 9n, 1000, 1000)).toBe(true);
  });

  it("finds each of many, even behind others in its chain", () => {
    const window = new TipWindow({ windowMs, chunkTips: 1024 });
    const names = Array.from({ length: 20_000 }, (_, i) => `s${i}`);
    expect(names.filter((name) => window.add(name, 1n, 0, 0))).toHaveLength(20_000);
    expect(names.filter((name) => window.add(name, 1n, 0, 0))).toHaveLength(0);
    expect(names.filter((name) => window.remove(name))).toHaveLength(20_000);
  });

  it("withdraws a tip that is not final, and accepts it again at a new observation", () => {
    const window = new TipWindow({ windowMs });
    window.add("a", 5n, 0, 0);
    window.add("b", 6n, 0, 0);
    window.settle("b");
    expect([
      window.remove("a"),
      window.remove("a"),
      window.remove("b"),
      window.remove("c"),
    ]).toEqual([true, false, false, false]);
    expect(window.size).toBe(1);
    expect(window.add("a", 7n, 600, 600)).toBe(true);
    expect(run(window.percentiles(1100))).toMatchObject({ count: 1, percentiles: { p99: 7n } });
  });

  it("removes the oldest above its limit", () => {
    const window = new TipWindow({ windowMs, tipsMax: 64, chunkTips: 16 });
    for (let i = 0; i < 1000; i++) window.add(`s${i}`, BigInt(i + 1), i / 1000, 1);
    expect(window.size).toBeLessThanOrEqual(64);
    expect(window.size).toBeGreaterThan(40);
    expect(run(window.percentiles(1))).toMatchObject({ percentiles: { p99: 1000n } });
    expect(window.remove("s0")).toBe(false);
    expect(window.remove("s999")).toBe(true);
  });

  it("limits a tip to the largest exact float64", () => {
    const window = new TipWindow({ windowMs });
    window.add("a", 2n ** 64n - 1n, 0, 0);
    expect(run(window.percentiles(0))).toMatchObject({ percentiles: { p50: 2n ** 53n - 1n } });
  });

  it("yields during a computation, and tolerates changes meanwhile", () => {
    const window = new TipWindow({ windowMs, chunkTips: 64 });
    for (let i = 0; i < 1000; i++) window.add(`s${i}`, BigInt(1000 - i), i / 2, 500);
    const steps = window.percentiles(500);
    let stops = 0;
    let found: WindowPercentiles | null = null;
    for (;;) {
      const { done, value } = steps.next();
      if (done) {
        found = value;
        break;
      }
      // The first half expires, and twice as many are added.
      if (++stops === 3) window.expire(1250);
      for (let i = 0; i < 100; i++) window.add(`t${stops} ${i}`, 5000n, 1250, 1250);
    }
    expect(stops).toBeGreaterThan(5);
    expect(found?.count).toBeGreaterThanOrEqual(499);
    expect(found?.count).toBeLessThanOrEqual(1000);
    expect(found?.percentiles.p99).toBeLessThanOrEqual(1000n);
    expect(window.size).toBe(499 + 100 * stops);
  });
});

describe("ranks", () => {
  it("are nearest ranks, from the first on", () => {
    expect(ranksOf(1)).toEqual([0, 0, 0, 0, 0]);
    expect(ranksOf(4)).toEqual([0, 1, 2, 3, 3]);
    expect(ranksOf(5)).toEqual([1, 2, 3, 4, 4]);
    expect(ranksOf(100)).toEqual([24, 49, 74, 94, 98]);
    expect(ranksOf(101)).toEqual([25, 50, 75, 95, 99]);
    // Cases where a float64 product would be wrong (such as 1.1 * 100) do not occur.
    for (let count = 1; count < 2000; count++) {
      const exact = [25n, 50n, 75n, 95n, 99n].map((p) => (p * BigInt(count) + 99n) / 100n - 1n);
      expect(ranksOf(count).map(BigInt)).toEqual(exact);
    }
  });

  it("are selected as by sorting", () => {
    const values = fc.array(fc.oneof(fc.nat(3), fc.nat(1000), fc.maxSafeNat()), {
      minLength: 1,
      maxLength: 300,
    });
    const property = fc.property(values, fc.nat(), (list, seed) => {
      const sorted = list.toSorted((a, b) => a - b);
      const ranks = ranksOf(list.length);
      const selected = run(selectRanks(Float64Array.from(list), ranks, new SeededRandom(seed)));
      expect(selected).toEqual(ranks.map((rank) => sorted[rank]));
    });
    fc.assert(property, { numRuns: 200 });
  });

  it.each([
    ["equal", () => 10_000],
    ["ascending", (i: number) => i],
    ["descending", (i: number) => -i],
    ["a roof", (i: number) => Math.min(i, 60_000 - i)],
  ])("are selected in few steps when tips are %s", (_, tipAt) => {
    const list = Float64Array.from({ length: 60_000 }, (__, i) => tipAt(i));
    const sorted = list.toSorted();
    const ranks = ranksOf(list.length);
    let stops = 0;
    const steps = selectRanks(list, ranks, new SeededRandom(7));
    for (;;) {
      const { done, value } = steps.next();
      if (done) {
        expect(value).toEqual(ranks.map((rank) => sorted[rank]));
        break;
      }
      stops++;
    }
    // Each stop is about 16,000 steps; a quadratic algorithm would need 200,000 stops.
    expect(stops).toBeLessThan(100);
  });
});
