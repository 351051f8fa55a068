// When address lookup tables are read from a node, and when they are read again.

import { describe, expect, it } from "vitest";
import {
  LookupTableQueue,
  type WaitingTable,
} from "../../../src/relay/streams/lookup-table-queue.ts";
import { accountOf } from "../../support/streams/stream-relay.ts";

const needed = (number: number, slot = 100n) => ({
  table: accountOf(number),
  slot,
  isChange: false,
});
const changed = (number: number, slot = 100n) => ({
  table: accountOf(number),
  slot,
  isChange: true,
});
const tables = (waiting: readonly WaitingTable[]) =>
  waiting.map(({ table }) => new DataView(table.buffer).getUint32(0, true));

function only(waiting: readonly WaitingTable[]): WaitingTable {
  const [first, ...others] = waiting;
  if (!first || others.length > 0) throw new Error(`expected one table, got ${waiting.length}`);
  return first;
}

describe("LookupTableQueue", () => {
  it("returns needed tables at once and changed ones later, needed ones first", () => {
    const queue = new LookupTableQueue();
    queue.add(changed(1), 0);
    queue.add(needed(2), 0);
    queue.add(needed(3), 0);
    expect(tables(queue.due(20, 0))).toEqual([2, 3]);
    expect(tables(queue.due(20, 400))).toEqual([2, 3, 1]);
    expect(tables(queue.due(2, 400))).toEqual([2, 3]);
    queue.add(needed(1), 0);
    expect(tables(queue.due(20, 0))).toEqual([1, 2, 3]);
  });

  it("reads a changed table until the node has confirmed its newest change", () => {
    const queue = new LookupTableQueue();
    queue.add(changed(1, 100n), 0);
    queue.read(only(queue.due(20, 400)), { confirmedSlot: 99n, isFound: true }, 400);
    expect(queue.due(20, 799)).toEqual([]);
    queue.add(changed(1, 102n), 500);
    queue.read(only(queue.due(20, 800)), { confirmedSlot: 101n, isFound: true }, 800);
    expect(queue.due(20, 1599)).toEqual([]);
    queue.read(only(queue.due(20, 1600)), { confirmedSlot: 102n, isFound: false }, 1600);
    expect(queue.size).toBe(0);
  });

  it("reads a needed table until it exists, at most seven times", () => {
    const queue = new LookupTableQueue();
    queue.add(needed(1, 100n), 0);
    queue.read(only(queue.due(20, 0)), { confirmedSlot: 98n, isFound: true }, 0);
    expect(queue.size).toBe(0);
    queue.add(needed(2, 100n), 0);
    let nowMs = 0;
    let reads = 0;
    for (; queue.size > 0 && reads < 100; reads++) {
      while (queue.due(20, nowMs).length === 0) nowMs += 100;
      queue.read(only(queue.due(20, nowMs)), { confirmedSlot: 98n, isFound: false }, nowMs);
    }
    expect(reads).toBe(7);
    expect(nowMs).toBe(18_800);
  });

  it("pauses longer and longer for a table that stays unknown, until it changes", () => {
    const queue = new LookupTableQueue();
    const fails = (nowMs: number) =>
      queue.read(only(queue.due(20, nowMs)), { confirmedSlot: 100n, isFound: false }, nowMs);
    let nowMs = 0;
    const waits: number[] = [];
    for (let round = 0; round < 9; round++) {
      queue.add(needed(1), nowMs);
      fails(nowMs);
      const failedMs = nowMs;
      while (queue.size === 0) {
        nowMs += 500;
        queue.add(needed(1), nowMs);
      }
      waits.push(nowMs - failedMs);
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
    fails(nowMs);
    queue.add(changed(1), nowMs);
    expect(queue.size).toBe(1);
    fails(nowMs + 400);
    // A long silence ends the growth.
    queue.add(needed(2), 0);
    fails(0);
    queue.add(needed(2), 70_000);
    fails(70_000);
    queue.add(needed(2), 71_000);
    expect(queue.size).toBe(1);
  });

  it("drops and counts reports beyond 4,096 tables", () => {
    const queue = new LookupTableQueue();
    for (let i = 0; i < 4100; i++) queue.add(needed(i), 0);
    expect(queue).toMatchObject({ size: 4096, dropped: 4 });
  });
});
