// Window limits: no second holds more calls than allowed.

import fc from "fast-check";
import { expect, it } from "vitest";
import { WindowLimits } from "../../../src/gateway/accounts/window-limits.ts";

const secondNs = 1_000_000_000n;

it("allows at most ten calls in any second, and each call that keeps to this", () => {
  const gapsNs = fc.array(fc.bigInt(0n, secondNs / 4n), { maxLength: 200 });
  fc.assert(
    fc.property(gapsNs, (gaps) => {
      const limits = new WindowLimits(10, 100);
      const allowed: bigint[] = [];
      let nowNs = 7n;
      for (const gap of gaps) {
        nowNs += gap;
        const recent = allowed.filter((atNs) => nowNs - atNs < secondNs).length;
        const verdict = limits.take("a", nowNs);
        expect(verdict.allowed).toBe(recent < 10);
        expect(verdict.remaining).toBe(verdict.allowed ? 9 - recent : 0);
        if (verdict.allowed) allowed.push(nowNs);
      }
    }),
  );
});

it("keeps callers apart, and drops the least recently active one above its bound", () => {
  const limits = new WindowLimits(1, 2);
  const isAllowed = (caller: string) => limits.take(caller, 1n).allowed;
  expect([isAllowed("a"), isAllowed("b"), isAllowed("a"), isAllowed("b")]).toEqual([
    true,
    true,
    false,
    false,
  ]);
  expect(isAllowed("c")).toBe(true);
  expect(limits.size).toBe(2);
  expect(isAllowed("a")).toBe(true);
});
