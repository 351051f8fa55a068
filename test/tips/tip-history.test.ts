import { expect, it } from "vitest";
import { TipHistory } from "../../src/tips/tip-history.ts";
import type { TipQuarter } from "../../src/tips/tip-types.ts";

const quarterMs = 15 * 60_000;

function tipsOf(quarter: number, count = 1): TipQuarter {
  const percentiles = count > 0 ? { p25: 1n, p50: 2n, p75: 3n, p95: 4n, p99: 5n } : null;
  return { quarter, timeMs: quarter * quarterMs, count, percentiles };
}

class Run {
  quarter = 1000;
  readonly history = new TipHistory(() => this.quarter * quarterMs);

  shown(hours: number): number[] {
    return this.history.last(hours).map(({ quarter }) => quarter);
  }
}

it("has seven days of quarter hours, oldest first, and missing ones stay missing", () => {
  const run = new Run();
  for (run.quarter = 1000; run.quarter < 2000; run.quarter++) {
    if (run.quarter % 10 !== 3) run.history.add(tipsOf(run.quarter));
  }
  run.quarter = 1999;
  const week = run.shown(168);
  expect([week[0], week.at(-1)]).toEqual([1328, 1999]);
  expect(week).toEqual(
    Array.from({ length: 672 }, (_, i) => 1328 + i).filter((quarter) => quarter % 10 !== 3),
  );
  const day = run.shown(24);
  expect([day[0], day.at(-1)]).toEqual([1904, 1999]);
  // Time alone ends them.
  run.quarter = 1999 + 672;
  expect(run.shown(168)).toEqual([]);
});

it("has the first refresh of a quarter hour, unless the database has another one", async () => {
  const run = new Run();
  run.history.add(tipsOf(999, 3));
  run.history.add(tipsOf(999, 4));
  run.history.add(tipsOf(1000, 0));
  expect(run.history.last(24)).toEqual([tipsOf(999, 3), tipsOf(1000, 0)]);
  const asked: number[][] = [];
  const quarters = async (...range: [number, number]) => {
    asked.push(range);
    return [tipsOf(998, 8), tipsOf(999, 9)];
  };
  const { generation, isLoaded } = run.history;
  expect(isLoaded).toBe(false);
  await run.history.load({ quarters });
  expect(asked).toEqual([[329, 1000]]);
  expect(run.history.last(24)).toEqual([tipsOf(998, 8), tipsOf(999, 9), tipsOf(1000, 0)]);
  expect(run.history.isLoaded).toBe(true);
  expect(run.history.generation).toBeGreaterThan(generation);
});

it("is bounded and shows no future while the clock is set back and forth", () => {
  const run = new Run();
  for (const quarter of [1000, 1500, 1000, 90_000, 1001, 5, 1002]) {
    run.quarter = quarter;
    run.history.add(tipsOf(quarter));
  }
  expect(run.shown(168)).toEqual([1002]);
  run.quarter = 1001;
  run.history.add(tipsOf(1001));
  expect(run.shown(168)).toEqual([1001]);
});
