// Warnings with a minimum interval.

import { expect, it } from "vitest";
import { RareWarning, WarningInterval } from "../../src/core/rare-warning.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";

it("logs a warning immediately, then once per interval, and creates its text only if needed", async () => {
  const clock = new ManualClock();
  const given: string[] = [];
  const log = { warn: (text: string): void => void given.push(text) };
  const warning = new RareWarning({ clock, log }, 1000);
  let created = 0;
  const give = (): void => warning.give(() => `text ${++created}`);
  give();
  await clock.advance(999);
  give();
  expect(given).toEqual(["text 1"]);
  await clock.advance(1);
  give();
  give();
  expect(given).toEqual(["text 1", "text 2"]);
  expect(created).toBe(2);
});

it("permits its owner one warning per interval, which begins with the warning", async () => {
  const clock = new ManualClock();
  const interval = new WarningInterval(clock, 1000);
  expect([interval.begin(), interval.begin()]).toEqual([true, false]);
  await clock.advance(1500);
  expect([interval.begin(), interval.begin()]).toEqual([true, false]);
  await clock.advance(999);
  expect(interval.begin()).toBe(false);
  await clock.advance(1);
  expect(interval.begin()).toBe(true);
});
