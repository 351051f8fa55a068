import { expect, it } from "vitest";
import { StoreCounts } from "../../../src/platform/store/store-counts.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";

it("reports a database that leaves an operation unanswered as unreachable", async () => {
  const clock = new ManualClock();
  const counts = new StoreCounts(() => clock.monotonicNs());
  await counts.watch("query", Promise.resolve());
  let answer = () => {};
  const hanging = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const watched = counts.watch("transaction", hanging);
  expect(counts.numbers()).toMatchObject({ isReachable: true, underWay: 1 });
  await clock.advance(3001);
  expect(counts.numbers().isReachable).toBe(false);
  // Single answers do not hide it.
  await counts.watch("query", Promise.resolve());
  expect(counts.numbers().isReachable).toBe(false);
  answer();
  await watched;
  expect(counts.numbers()).toMatchObject({ isReachable: true, underWay: 0 });
});
