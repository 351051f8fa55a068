import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RateLimits } from "../../../src/gateway/accounts/rate-limits.ts";

const secondNs = 1_000_000_000n;

/** A slow reference model: exact integers, one bucket per caller, never dropped. */
class SlowModel {
  readonly #buckets = new Map<string, { level: bigint; atNs: bigint }>();

  take(caller: string, rate: bigint, burst: bigint, nowNs: bigint) {
    const full = burst * secondNs;
    const bucket = this.#buckets.get(caller) ?? { level: full, atNs: nowNs };
    const level = bucket.level + (nowNs - bucket.atNs) * rate;
    const filled = level > full ? full : level;
    const allowed = filled >= secondNs;
    const left = allowed ? filled - secondNs : filled;
    this.#buckets.set(caller, { level: left, atNs: nowNs });
    const secondsUntil = (goal: bigint): number =>
      left >= goal ? 0 : Number((goal - left + rate * secondNs - 1n) / (rate * secondNs));
    return {
      allowed,
      limit: Number(burst),
      remaining: Number(left / secondNs),
      retryAfterSeconds: allowed ? 0 : secondsUntil(secondNs),
      resetSeconds: secondsUntil(full),
    };
  }
}

describe("a token bucket", () => {
  const gap = fc.oneof(fc.bigInt(0n, 5n), fc.bigInt(0n, 3n * secondNs), fc.bigInt(0n, 2n ** 62n));
  const count = fc.oneof(fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 1_000_000 }));

  it("equals the slow model to the nanosecond", () => {
    const calls = fc.array(fc.tuple(fc.constantFrom("a", "b"), gap), { maxLength: 60 });
    fc.assert(
      fc.property(count, count, calls, (requestsPerSecond, burst, given) => {
        const limits = new RateLimits(10);
        const model = new SlowModel();
        let nowNs = 12_345n;
        for (const [caller, gapNs] of given) {
          nowNs += gapNs;
          const expected = model.take(caller, BigInt(requestsPerSecond), BigInt(burst), nowNs);
          expect(limits.take(caller, { requestsPerSecond, burst }, nowNs)).toEqual(expected);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("allows a caller at exactly the rate, and returns the retry time to a faster one", () => {
    const limits = new RateLimits(10);
    const limit = { requestsPerSecond: 10, burst: 1 };
    for (let i = 0n; i < 50n; i++) {
      expect(limits.take("a", limit, i * (secondNs / 10n)).allowed).toBe(true);
    }
    const last = 49n * (secondNs / 10n);
    expect(limits.take("a", limit, last + secondNs / 10n - 1n)).toEqual({
      allowed: false,
      limit: 1,
      remaining: 0,
      retryAfterSeconds: 1,
      resetSeconds: 1,
    });
    expect(limits.take("a", limit, last + secondNs / 10n).allowed).toBe(true);
  });

  it("applies a lowered limit immediately", () => {
    const limits = new RateLimits(10);
    limits.take("a", { requestsPerSecond: 1, burst: 100 }, 0n);
    const lowered = limits.take("a", { requestsPerSecond: 1, burst: 2 }, 0n);
    expect(lowered).toMatchObject({ allowed: true, remaining: 1 });
  });

  it("rejects invalid limits", () => {
    const limits = new RateLimits(10);
    for (const value of [0, -1, 1.5, Number.NaN, 1e9]) {
      expect(() => limits.take("a", { requestsPerSecond: value, burst: 1 }, 0n)).toThrow("limit:");
      expect(() => limits.take("a", { requestsPerSecond: 1, burst: value }, 0n)).toThrow("limit:");
    }
    expect(limits.size).toBe(0);
  });
});

describe("the table", () => {
  it("is bounded and drops the least recently active caller", () => {
    const limits = new RateLimits(3);
    const limit = { requestsPerSecond: 1, burst: 1 };
    const ask = (caller: string) => limits.take(caller, limit, 0n).allowed;
    expect(["a", "b", "c"].map(ask)).toEqual([true, true, true]);
    expect(ask("a")).toBe(false); // active again: b is the oldest now
    expect(ask("d")).toBe(true);
    expect([ask("a"), ask("c"), ask("d")]).toEqual([false, false, false]);
    expect(ask("b")).toBe(true);
    for (let i = 0; i < 1000; i++) ask(`x${i}`);
    expect(limits.size).toBe(3);
  });
});
