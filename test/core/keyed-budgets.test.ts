import { describe, expect, it } from "vitest";
import { KeyedBudgets } from "../../src/core/keyed-budgets.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";

const limit = { perSecond: 1, burst: 2 };

function take(budgets: KeyedBudgets, key: string): boolean {
  const budget = budgets.open(key);
  budget?.spend(1);
  return budget !== null;
}

describe("KeyedBudgets", () => {
  it("has a rate for each key", async () => {
    const clock = new ManualClock();
    const budgets = new KeyedBudgets(limit, clock);
    expect(["a", "a", "a", "b"].map((key) => take(budgets, key))).toEqual([
      true,
      true,
      false,
      true,
    ]);
    await clock.advance(1000);
    expect([take(budgets, "a"), take(budgets, "a")]).toEqual([true, false]);
  });

  it("forgets a key on request only with a whole burst", async () => {
    const clock = new ManualClock();
    const budgets = new KeyedBudgets(limit, clock);
    take(budgets, "a");
    take(budgets, "a");
    budgets.forgetFull("a");
    expect(take(budgets, "a")).toBe(false);
    await clock.advance(2000);
    budgets.forgetFull("a");
    budgets.forgetFull("unknown");
    expect(take(budgets, "a")).toBe(true);
  });

  it("forgets the oldest key above its limit", () => {
    const budgets = new KeyedBudgets({ perSecond: 1, burst: 1 }, new ManualClock(), 2);
    expect(["a", "b", "a"].map((key) => take(budgets, key))).toEqual([true, true, false]);
    expect(["c", "b", "a"].map((key) => take(budgets, key))).toEqual([true, false, true]);
  });
});
