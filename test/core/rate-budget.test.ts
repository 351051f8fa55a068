import { describe, expect, it } from "vitest";
import { RateBudget } from "../../src/core/rate-budget.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";

describe("RateBudget", () => {
  it("gives turns in the order of the callers, at its rate", async () => {
    const clock = new ManualClock();
    const budget = new RateBudget({ perSecond: 10, burst: 2 }, clock);
    expect(budget.isFull).toBe(true);
    budget.spend(1);
    expect([budget.isFull, budget.isOpen]).toEqual([false, true]);
    budget.spend(11); // the cost of the last one may exceed the balance
    expect(budget.isOpen).toBe(false);
    const turns: string[] = [];
    const wait = (name: string) =>
      budget.wait(() => {
        turns.push(name);
        budget.spend(1);
      });
    wait("a");
    const cancel = wait("b");
    wait("c");
    await clock.advance(1000);
    expect(turns).toEqual([]);
    cancel();
    await clock.advance(10);
    expect(turns).toEqual(["a"]);
    expect(budget.isOpen).toBe(false); // another one waits
    await clock.advance(100);
    expect(turns).toEqual(["a", "c"]);
    expect(clock.pending).toBe(0);
    await clock.advance(10_000);
    expect(budget.isFull).toBe(true);
  });
});
