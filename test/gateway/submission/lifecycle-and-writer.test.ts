// Independent classes of the pipeline: Lifecycle, the accounts of a transaction, TimerWheel and SubmissionWriter.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { TimerWheel } from "../../../src/core/timer-wheel.ts";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import { eventsMax, Lifecycle } from "../../../src/gateway/submission/lifecycle.ts";
import { SubmissionWriter } from "../../../src/gateway/submission/submission-writer.ts";
import {
  AccountTransaction,
  Submission,
  TrackedTransaction,
} from "../../../src/gateway/submission/tracked-transaction.ts";
import type { SubmissionRecord, TimelineEvent } from "../../../src/gateway/submission/types.ts";
import { makeFacts } from "./model.ts";

const received: TimelineEvent = { kind: "received", atNs: 0n, method: "sendTransaction" };
const landed: TimelineEvent = {
  kind: "landed",
  atNs: 9n,
  reason: "confirmed",
  slot: 7n,
  err: null,
};
const seen = (slot: bigint): TimelineEvent => ({ kind: "seen", atNs: slot, slot });

function submissionOf(facts: TransactionFacts, accountId: string): Submission {
  return new Submission({
    accountId,
    method: "sendTransaction",
    transactions: [facts],
    isBundle: false,
    options: { swqosOnly: false, mevProtect: false, revertProtection: false, resendsMax: null },
    receivedNs: 0n,
  });
}

describe("Lifecycle", () => {
  it("has one end; later events are counted", () => {
    const lifecycle = new Lifecycle();
    expect(lifecycle.add(received)).toBe(true);
    expect([lifecycle.state, lifecycle.slot]).toEqual(["open", null]);
    const early = lifecycle.events;
    lifecycle.add(seen(6n));
    expect(lifecycle.slot).toBe(6n);
    expect(lifecycle.add(landed)).toBe(true);
    expect(lifecycle.add({ ...landed, kind: "expired", slot: null })).toBe(false);
    expect(lifecycle.add(seen(8n))).toBe(false);
    expect([lifecycle.state, lifecycle.slot, lifecycle.late]).toEqual(["landed", 7n, 2]);
    expect(lifecycle.events).toEqual([received, seen(6n), landed]);
    expect(early).toEqual([received]); // a list that was read stays as it was
    expect(new Lifecycle(lifecycle.events).end).toEqual(landed);
  });

  it("keeps the first and last of many events", () => {
    const lifecycle = new Lifecycle();
    for (let i = 0; i < 1000; i++) lifecycle.add(seen(BigInt(i)));
    lifecycle.add(landed);
    const slots = lifecycle.events.map((event) => ("slot" in event ? event.slot : null));
    expect(slots.length).toBe(eventsMax);
    expect(slots.slice(0, 32)).toEqual(Array.from({ length: 32 }, (_, i) => BigInt(i)));
    expect(slots.slice(-2)).toEqual([999n, 7n]);
  });
});

describe("the accounts of a transaction", () => {
  it("are those of a map, in its order", () => {
    const random = new SeededRandom(3);
    const accountIds = ["ann", "ben", "cem"];
    const step = fc.record({ accountId: fc.constantFrom(...accountIds), isRemoved: fc.boolean() });
    const property = fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const facts = makeFacts(random, { lifetime: new Uint8Array(32) });
      const tracked = new TrackedTransaction(facts, 0);
      const model = new Map<string, AccountTransaction>();
      for (const { accountId, isRemoved } of steps) {
        const before = tracked.views.all;
        const beforeSize = before.length;
        const view = new AccountTransaction(tracked, submissionOf(facts, accountId));
        if (isRemoved) expect(tracked.views.delete(accountId)).toBe(model.delete(accountId));
        else tracked.views.set(view);
        if (!isRemoved) model.set(accountId, view);
        expect(before).toHaveLength(beforeSize);
        expect(tracked.views.size).toBe(model.size);
        expect([...tracked.views]).toEqual([...model.values()]);
        for (const id of accountIds) expect(tracked.views.get(id)).toBe(model.get(id));
        for (const id of accountIds) expect(tracked.views.has(id)).toBe(model.has(id));
      }
    });
    fc.assert(property, { numRuns: 200 });
  });
});

describe("TimerWheel", () => {
  it("returns every entry once, in order, after any moves and removals", () => {
    const step = fc.record({
      item: fc.nat(9),
      delayMs: fc.integer({ min: -100, max: 60_000 }),
      isRemoved: fc.boolean(),
      passMs: fc.constantFrom(0, 1, 24, 25, 26, 400, 13_000, 40_000),
    });
    const property = fc.property(
      fc.nat(10_000),
      fc.array(step, { maxLength: 80 }),
      (start, steps) => {
        const wheel = new TimerWheel<{ readonly name: number }>(25, start);
        const items = Array.from({ length: 10 }, (_, name) => ({ name }));
        const due = new Map<number, number>();
        let nowMs = start;
        for (const { item, delayMs, isRemoved, passMs } of steps) {
          const one = items[item] ?? { name: 0 };
          if (isRemoved) expect(wheel.delete(one)).toBe(due.delete(item));
          else wheel.set(one, nowMs + delayMs);
          if (!isRemoved) due.set(item, Math.max(nowMs + delayMs, nowMs));
          nowMs += passMs;
          for (const { name } of wheel.turn(nowMs)) {
            expect(due.get(name)).toBeLessThanOrEqual(nowMs);
            due.delete(name);
          }
          for (const atMs of due.values()) expect(atMs).toBeGreaterThan(nowMs - 50);
          expect(wheel.size).toBe(due.size);
        }
      },
    );
    fc.assert(property, { numRuns: 500 });
  });
});

describe("SubmissionWriter", () => {
  const random = new SeededRandom(5);
  function viewOf(accountId = "ann"): AccountTransaction {
    const facts = makeFacts(random, { lifetime: new Uint8Array(32) });
    const submission = submissionOf(facts, accountId);
    const view = new AccountTransaction(new TrackedTransaction(facts, 0), submission);
    view.lifecycle.add(received);
    return view;
  }

  /** A store whose writes the test completes. */
  class SlowStore {
    readonly puts: { records: readonly SubmissionRecord[]; end(error?: Error): void }[] = [];

    put(records: readonly SubmissionRecord[]): Promise<void> {
      return new Promise((resolve, reject) => {
        const end = (error?: Error) => (error ? reject(error) : resolve());
        this.puts.push({ records, end });
      });
    }

    add(records: readonly SubmissionRecord[]): Promise<boolean> {
      return this.put(records).then(() => true);
    }
  }

  const settle = async () => {
    for (let i = 0; i < 20; i++) await Promise.resolve();
  };

  it("writes one state after another, and the end immediately", async () => {
    const store = new SlowStore();
    const writer = new SubmissionWriter(store, () => {});
    const view = viewOf();
    const written = writer.persist([view]);
    await settle();
    view.lifecycle.add(seen(5n));
    writer.changed(view);
    writer.flush();
    view.lifecycle.add(landed);
    writer.ended(view);
    await settle();
    expect(store.puts.length).toBe(1); // the first write is running
    store.puts[0]?.end();
    await written;
    await settle();
    expect(store.puts.map(({ records }) => records[0]?.state)).toEqual(["open", "landed"]);
    expect(store.puts.map(({ records }) => records[0]?.wire === null)).toEqual([false, true]);
    store.puts[1]?.end();
    await settle();
    expect(writer.counts).toEqual({ dirty: 0, puts: 2n, failures: 0n });
  });

  it("repeats failed writes", async () => {
    const store = new SlowStore();
    const failures: unknown[] = [];
    const writer = new SubmissionWriter(store, (error) => failures.push(error));
    const view = viewOf();
    const written = writer.persist([view]);
    await settle();
    store.puts[0]?.end(new Error("full"));
    await expect(written).rejects.toThrow("full");
    expect([view.isPersisted, writer.counts.dirty]).toEqual([false, 1]);
    writer.flush();
    store.puts[1]?.end(new Error("still full"));
    await settle();
    expect(failures.length).toBe(1);
    writer.flush();
    store.puts[2]?.end();
    await settle();
    expect([view.isPersisted, writer.counts.dirty]).toEqual([true, 0]);
  });

  it("reports the first failure after a write that worked", async () => {
    const store = new SlowStore();
    let failing = 0;
    const writer = new SubmissionWriter(
      store,
      () => {},
      () => {
        failing++;
      },
    );
    const view = viewOf();
    writer.changed(view);
    const reported: number[] = [];
    for (const error of [new Error("a"), new Error("b"), undefined, new Error("c")]) {
      writer.changed(view);
      writer.flush();
      store.puts.at(-1)?.end(error);
      await settle();
      reported.push(failing);
    }
    expect(reported).toEqual([1, 1, 1, 2]);
  });

  it("fills a share with records that no write is in progress for", async () => {
    const store = new SlowStore();
    const writer = new SubmissionWriter(store, () => {});
    const [busy, free] = [viewOf(), viewOf()];
    void writer.persist([busy]);
    await settle();
    writer.changed(busy);
    writer.changed(free);
    writer.flush(1);
    expect(store.puts.map(({ records }) => records[0]?.signature)).toEqual([
      busy.record.signature,
      free.record.signature,
    ]);
  });

  it("writes nothing that was removed, and nothing before a query is answered", async () => {
    const store = new SlowStore();
    const writer = new SubmissionWriter(store, () => {});
    const view = viewOf();
    writer.changed(view);
    let answer = (): void => {};
    const question = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const after = writer.persistAfter([view], question);
    writer.flush();
    expect(store.puts).toEqual([]);
    answer();
    await after;
    writer.forget(view);
    writer.changed(view);
    writer.flush();
    await writer.persist([view]);
    expect([store.puts.length, writer.counts.dirty]).toEqual([0, 0]);
  });
});
