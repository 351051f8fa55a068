// Budget of the landing benchmark: random rounds never exceed it.

import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { Budget } from "../../../src/tools/land/budget.ts";

describe("a budget", () => {
  it("counts the most expensive transaction of each group, and never more than its limit", () => {
    const random = new SeededRandom(3);
    for (let run = 0; run < 50; run++) {
      const limit = BigInt(random.below(2000));
      const budget = new Budget(limit);
      const most = new Map<string, bigint>();
      for (let i = 0; i < 40; i++) {
        const round = Array.from({ length: 1 + random.below(3) }, () => ({
          group: String(random.below(20)),
          lamports: BigInt(random.below(200)),
        }));
        const isAllowed = budget.allows(round);
        const before = budget.reservedLamports;
        if (isAllowed) {
          budget.reserve(round);
          for (const { group, lamports } of round) {
            const known = most.get(group) ?? 0n;
            most.set(group, lamports > known ? lamports : known);
          }
        } else {
          expect(() => budget.reserve(round)).toThrow(`budget: expected at most ${limit} lamports`);
          expect(budget.reservedLamports).toBe(before);
        }
        const sum = [...most.values()].reduce((total, lamports) => total + lamports, 0n);
        expect(budget.reservedLamports).toBe(sum);
        expect(sum).toBeLessThanOrEqual(limit);
      }
    }
  });
});
