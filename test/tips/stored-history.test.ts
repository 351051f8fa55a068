// The history of the tip statistics: refreshes, restarts and a failing store.

import { describe, expect, it } from "vitest";
import { minuteMs, of, Run, startMs } from "./statistics-run.ts";

describe("the history", () => {
  const shown = ({ statistics }: Run) =>
    statistics.history.last(24).map(({ timeMs, count }) => [(timeMs - startMs) / minuteMs, count]);

  it("has each refresh, continues after a restart, and has no entry for the time between", async () => {
    const run = await Run.open(minuteMs);
    run.landed("a", 7n);
    await run.clock.advance(14 * minuteMs); // the early snapshot has no entry
    expect(shown(run)).toEqual([[15, 1]]);
    await run.clock.advance(15 * minuteMs);
    expect(shown(run)).toEqual([
      [15, 1],
      [30, 0],
    ]);
    expect(run.statistics.history.last(24).map(({ percentiles }) => percentiles)).toEqual([
      of(7n),
      null,
    ]);
    await run.clock.advance(1000);
    await run.statistics.close();
    await run.clock.advance(35 * minuteMs);
    await run.restart();
    // The first refresh comes at once, but this process did not observe the quarter hour.
    await run.clock.advance(minuteMs);
    run.landed("b", 9n);
    await run.clock.advance(25 * minuteMs);
    expect(shown(run)).toEqual([
      [15, 1],
      [30, 0],
      [75, 1],
      [90, 0],
    ]);
    await run.clock.advance(2000);
    expect([...run.store.byQuarter.values()].map(({ count }) => count)).toEqual([1, 0, 1, 0]);
  });

  it("replaces the entry of a clock that was ahead when its quarter hour comes", async () => {
    const run = await Run.open(minuteMs);
    run.clock.aheadMs = 60 * minuteMs;
    run.landed("a", 7n);
    await run.clock.advance(14 * minuteMs + 1500); // stored as minutes 61 and 75
    expect(run.store.byQuarter.size).toBe(2);
    run.clock.aheadMs = 0;
    for (const names of ["b", "cd", "efg", "hijk"]) {
      for (const name of names) run.landed(name, 9n);
      await run.clock.advance(15 * minuteMs);
    }
    await run.clock.advance(2000);
    expect(shown(run)).toEqual([
      [30, 1],
      [45, 2],
      [60, 3],
      [75, 4],
    ]);
  });

  it("loses nothing while the store fails, and reads it as soon as it works", async () => {
    const run = await Run.open(minuteMs);
    const before = { quarter: Math.floor(startMs / (15 * minuteMs)) - 1, count: 4 };
    await run.store.keepQuarter({
      ...before,
      timeMs: startMs - 15 * minuteMs,
      percentiles: of(1n),
    });
    run.store.isFailing = true;
    await run.restart();
    for (const name of ["a", "b", "c"]) {
      run.landed(name, 7n);
      await run.clock.advance(15 * minuteMs);
    }
    expect(shown(run)).toEqual([
      [15, 1],
      [30, 1],
      [45, 1],
    ]);
    run.store.isFailing = false;
    run.landed("d", 7n);
    await run.clock.advance(15 * minuteMs + 2000);
    expect(shown(run).map(([minute]) => minute)).toEqual([-15, 15, 30, 45, 60]);
    expect(run.store.byQuarter.size).toBe(5);
  });
});
