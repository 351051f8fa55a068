import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../src/core/seeded-random.ts";

describe("SeededRandom", () => {
  it("gives the same numbers for the same seed, and others for another", () => {
    const draw = (seed: bigint) => {
      const random = new SeededRandom(seed);
      return Array.from({ length: 8 }, () => random.u32());
    };
    fc.assert(
      fc.property(fc.bigInt(0n, 2n ** 64n - 1n), fc.bigInt(0n, 2n ** 32n - 1n), (seed, other) => {
        expect(draw(seed)).toEqual(draw(seed));
        // The upper half is folded in, so flip a bit of the lower half only.
        expect(draw(seed)).not.toEqual(draw(seed ^ (other | 1n)));
      }),
      { numRuns: 50 },
    );
  });

  it("is distributed evenly", () => {
    const random = new SeededRandom(1);
    const counts = Array.from({ length: 16 }, () => 0);
    for (let i = 0; i < 16_000; i++) {
      const at = random.below(16);
      counts[at] = (counts[at] ?? 0) + 1;
    }
    for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(200);
  });

  it("permutes every number once", () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 0, max: 300 }), (seed, length) => {
        const order = new SeededRandom(seed).permutation(length);
        expect([...order].toSorted((a, b) => a - b)).toEqual(Array.from({ length }, (_, i) => i));
      }),
    );
    expect(new SeededRandom(3).shuffled(["a", "b", "c"]).toSorted()).toEqual(["a", "b", "c"]);
  });

  it("respects probabilities and bounds", () => {
    const random = new SeededRandom(2);
    let happened = 0;
    for (let i = 0; i < 10_000; i++) if (random.happens(0.25)) happened++;
    expect(happened).toBeGreaterThan(2200);
    expect(happened).toBeLessThan(2800);
    expect(random.happens(0)).toBe(false);
    expect(random.happens(1)).toBe(true);
    for (let i = 0; i < 1000; i++) expect(random.exponential(10, 50)).toBeLessThanOrEqual(50);
  });

  it("fills bytes of any length", () => {
    for (const length of [0, 1, 2, 3, 4, 5, 63]) {
      expect(new SeededRandom(9).fillBytes(new Uint8Array(length)).length).toBe(length);
    }
    const bytes = new SeededRandom(9).fillBytes(new Uint8Array(4096));
    expect(new Set(bytes).size).toBe(256);
  });
});
