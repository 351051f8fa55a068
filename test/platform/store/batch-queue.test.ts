// The batch queue of both database drivers: its limits, the order, and its counts.

import { expect, it } from "vitest";
import {
  BatchQueue,
  batchMax,
  transactionEndOf,
  waitingMax,
} from "../../../src/platform/store/batch-queue.ts";
import { StoreCounts } from "../../../src/platform/store/store-counts.ts";

it("returns batches in the order of the jobs, and counts their sizes", () => {
  const counts = new StoreCounts(() => 0n);
  const queue = new BatchQueue<number>("a.db", counts);
  for (let i = 0; i < batchMax + 5; i++) queue.add(i);
  expect(queue.nextBatch()).toEqual(Array.from({ length: batchMax }, (_, i) => i));
  expect(queue.isEmpty).toBe(false);
  expect(queue.nextBatch()).toEqual([0, 1, 2, 3, 4].map((i) => batchMax + i));
  expect(queue.isEmpty).toBe(true);
  expect(queue.nextBatch()).toEqual([]); // counts nothing
  expect(counts.numbers().batchSizes).toMatchObject({ count: 2 });
});

it("rejects jobs above its limit, and accepts again below it", () => {
  const queue = new BatchQueue<number>("a.db", undefined);
  for (let i = 0; i < waitingMax; i++) queue.add(i);
  expect(() => queue.add(0)).toThrow(
    "a.db: the queue of the database is full: expected at most 100000 waiting changes",
  );
  expect(queue.nextBatch().length).toBe(batchMax);
  queue.add(7);
  expect(queue.takeAll().at(-1)).toBe(7);
  expect(queue.isEmpty).toBe(true);
});

it("takes the oldest jobs up to the first retained one", () => {
  const queue = new BatchQueue<number>("a.db", undefined);
  for (const job of [1, 2, 5, 3]) queue.add(job);
  expect(queue.takeUntil((job) => job > 4)).toEqual([1, 2]);
  expect(queue.takeUntil((job) => job > 4)).toEqual([]);
  expect(queue.takeUntil((job) => job > 9)).toEqual([5, 3]);
  expect(queue.isEmpty).toBe(true);
});

it("detects a transaction that its last statement rolled back", () => {
  expect(transactionEndOf([2, 0])).toEqual({ isCommitted: true, changes: [2, 0] });
  expect(transactionEndOf([2, -1])).toEqual({ isCommitted: false, changes: [2] });
  expect(transactionEndOf([])).toEqual({ isCommitted: true, changes: [] });
});
