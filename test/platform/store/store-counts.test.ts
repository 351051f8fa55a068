import { expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
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

it("reports a failed write until another one succeeds", async () => {
  const clock = new ManualClock();
  const counts = new StoreCounts(() => clock.monotonicNs());
  const failed = async (kind: "query" | "transaction", code: string) => {
    const details = { path: "a.db", code };
    const error = new ShredwayError("store_failed", "no", { details });
    await expect(counts.watch(kind, Promise.reject(error))).rejects.toBe(error);
  };
  await counts.watch("query", Promise.resolve());
  expect(counts.numbers()).toMatchObject({ isReachable: true, isWriteFailing: false });
  await failed("query", "SQLITE_IOERR");
  expect(counts.numbers()).toMatchObject({ isReachable: false, isWriteFailing: false });
  await failed("transaction", "SQLITE_FULL");
  await counts.watch("query", Promise.resolve());
  expect(counts.numbers()).toMatchObject({ isReachable: true, isWriteFailing: true });
  await counts.watch("transaction", Promise.resolve());
  // The database works; only the values of this change were refused.
  await failed("transaction", "SQLITE_CONSTRAINT_UNIQUE");
  expect(counts.numbers()).toMatchObject({ isReachable: true, isWriteFailing: false });
});
