import { expect, it } from "vitest";
import { TipHistory } from "../../src/tips/tip-history.ts";
import type { TipSnapshot } from "../../src/tips/tip-types.ts";

const quarterMs = 15 * 60_000;

function snapshotAt(quarter: number, count = 1): TipSnapshot {
  const timeMs = quarter * quarterMs;
  const percentiles = { p25: 1n, p50: 2n, p75: 3n, p95: 4n, p99: 5n };
  const windowStartMs = timeMs - quarterMs;
  return { timeMs, percentiles, emaP50: 2n, count, windowStartMs, isStale: false };
}

function floor(first: TipSnapshot) {
  let listener: (snapshot: TipSnapshot) => void = () => undefined;
  const tips = {
    snapshot: first,
    onRefresh: (notifications: typeof listener) => {
      listener = notifications;
      return () => {
        listener = () => undefined;
      };
    },
  };
  return { tips, tell: (snapshot: TipSnapshot) => listener(snapshot) };
}

it("retains a day of quarter hours, oldest first, including those of an earlier process", () => {
  const { tips, tell } = floor(snapshotAt(1000));
  const history = new TipHistory(tips);
  expect(history.list.map(({ timeMs }) => timeMs / quarterMs)).toEqual([1000]);
  for (let quarter = 1001; quarter < 1200; quarter++) tell(snapshotAt(quarter));
  const quarters = history.list.map(({ timeMs }) => timeMs / quarterMs);
  expect([quarters.length, quarters[0], quarters.at(-1)]).toEqual([96, 1104, 1199]);
  // After a pause the old ones are removed.
  tell(snapshotAt(1400));
  expect(history.list.length).toBe(1);
  history.close();
  tell(snapshotAt(1401));
  expect(history.list.length).toBe(1);
});

it("stays in order after the clock was set back, and starts empty without tips", () => {
  const { tips, tell } = floor(snapshotAt(1000, 0));
  const history = new TipHistory(tips);
  expect(history.list).toEqual([]);
  for (const quarter of [1000, 1001, 1000, 1000, 1001]) tell(snapshotAt(quarter));
  expect(history.list.map(({ timeMs }) => timeMs / quarterMs)).toEqual([1000, 1001]);
});
