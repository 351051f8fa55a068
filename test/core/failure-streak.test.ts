// The failures of a streak that are logged.

import { expect, it } from "vitest";
import { FailureStreak } from "../../src/core/failure-streak.ts";

it("logs each kind of failure once, and every nth of the streak", () => {
  const failures = new FailureStreak(3);
  const logged = (...messages: string[]): boolean[] =>
    messages.map((message) => failures.add(message));
  expect(failures.isFailing).toBe(false);
  expect(logged("away", "away", "away", "away", "away", "slow", "slow")).toEqual([
    true,
    false,
    false,
    true,
    false,
    true,
    true,
  ]);
  expect(failures.isFailing).toBe(true);
  failures.end();
  expect(failures.isFailing).toBe(false);
  expect(logged("slow", "slow")).toEqual([true, false]);
});
