// Failover of submissions of dead nodes: schedule and failures.

import { expect, it } from "vitest";
import { SubmissionFailover } from "../../../src/gateway/submission/submission-failover.ts";
import type { SubmissionRecord } from "../../../src/gateway/submission/types.ts";
import { recordOf } from "../../platform/store/files.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";

const second = 1000;

class Stage {
  readonly clock = new ManualClock();
  /** Open records by node. */
  readonly open = new Map<string, SubmissionRecord[]>();
  readonly alive = new Set<string>();
  readonly held = new Set<string>();
  readonly steps: string[] = [];
  readonly taken: string[] = [];
  readonly warnings: string[] = [];
  readonly infos: unknown[] = [];
  queryMs = 10;
  isAway = false;
  failsToTake = false;
  readonly watch = new SubmissionFailover({
    clock: this.clock,
    log: {
      info: (what: unknown) => void this.infos.push(what),
      warn: (text: unknown) => void this.warnings.push(String(text)),
    },
    store: {
      open: () => this.#step("open", () => this.open.get("own") ?? []),
      openNodes: () =>
        this.#step("openNodes", () => [...this.open.keys()].filter((node) => node !== "own")),
      adopt: (node) =>
        this.#step(`adopt ${node}`, () => {
          const records = this.open.get(node) ?? [];
          this.open.delete(node);
          this.open.set("own", [...(this.open.get("own") ?? []), ...records]);
          return records;
        }),
    },
    locks: {
      tryLock: (name) =>
        this.#step(`lock ${name}`, () => {
          if (this.alive.has(name) || this.held.has(name)) return null;
          this.held.add(name);
          return {
            release: async () => {
              this.held.delete(name);
            },
          };
        }),
    },
    resume: async (records) => {
      if (this.failsToTake) throw new Error("not taken");
      const fresh = records
        .map(({ signature }) => signature)
        .filter((s) => !this.taken.includes(s));
      this.taken.push(...fresh);
      return fresh.length;
    },
  });

  async #step<T>(name: string, work: () => T): Promise<T> {
    this.steps.push(name);
    await this.clock.sleep(this.queryMs);
    if (this.isAway) throw new Error("the database is away");
    return work();
  }
}

it("checks every ten seconds, adopts from nodes whose lock is free twice, and releases the lock", async () => {
  const stage = new Stage();
  stage.open.set("gone", [recordOf("s1"), recordOf("s2")]).set("there", [recordOf("s3")]);
  stage.alive.add("node there");
  stage.watch.start();
  await stage.clock.advance(9 * second);
  expect(stage.steps).toEqual([]);
  await stage.clock.advance(2 * second);
  // After a database restart, all locks are free for a short time.
  expect(stage.steps).toEqual(["openNodes", "lock node gone", "lock node there"]);
  expect(stage.held.size).toBe(0);
  await stage.clock.advance(10 * second);
  expect(stage.steps.slice(3)).toEqual([
    "openNodes",
    "lock node gone",
    "adopt gone",
    "lock node there",
  ]);
  expect(stage.taken).toEqual(["s1", "s2"]);
  expect(stage.infos).toEqual([{ node: "gone", transactions: 2 }]);
  expect(stage.held.size).toBe(0);
  stage.alive.clear();
  await stage.clock.advance(20 * second);
  expect(stage.taken).toEqual(["s1", "s2", "s3"]);
});

it("also checks the lock of records without a node name, which may have been moved", async () => {
  const stage = new Stage();
  stage.open.set("", [recordOf("s1")]);
  stage.alive.add("node ");
  stage.watch.start();
  await stage.clock.advance(31 * second);
  expect(stage.taken).toEqual([]);
  stage.alive.clear();
  await stage.clock.advance(20 * second);
  expect(stage.taken).toEqual(["s1"]);
});

it("resets a node whose lock is held at the next check", async () => {
  const stage = new Stage();
  stage.open.set("back", [recordOf("s1")]);
  stage.watch.start();
  await stage.clock.advance(11 * second);
  stage.alive.add("node back");
  await stage.clock.advance(10 * second);
  stage.alive.clear();
  await stage.clock.advance(10 * second);
  expect(stage.taken).toEqual([]);
});

it("logs a database failure once, does not query concurrently, and recovers", async () => {
  const stage = new Stage();
  stage.open.set("gone", [recordOf("s1")]);
  stage.isAway = true;
  stage.queryMs = 25 * second;
  stage.watch.start();
  await stage.clock.advance(100 * second);
  expect(stage.steps.length).toBe(4);
  expect(stage.warnings.length).toBe(1);
  stage.isAway = false;
  stage.queryMs = 10;
  await stage.clock.advance(50 * second);
  expect(stage.taken).toEqual(["s1"]);
});

it("rechecks its own records after an adoption with unknown result", async () => {
  const stage = new Stage();
  stage.open.set("gone", [recordOf("s1")]);
  stage.failsToTake = true;
  stage.watch.start();
  await stage.clock.advance(21 * second);
  expect([stage.taken, stage.held.size]).toEqual([[], 0]);
  stage.failsToTake = false;
  await stage.clock.advance(10 * second);
  expect(stage.taken).toEqual(["s1"]);
  await stage.clock.advance(10 * second);
  expect(stage.steps.filter((step) => step === "open").length).toBe(1);
});

it("adopts nothing after close, and waits for a running adoption", async () => {
  const stage = new Stage();
  stage.open.set("gone", [recordOf("s1")]).set("gone, too", [recordOf("s2")]);
  stage.queryMs = 100;
  stage.watch.start();
  await stage.clock.advance(20 * second + 150);
  let isClosed = false;
  const closing = stage.watch.close().finally(() => {
    isClosed = true;
  });
  await stage.clock.advance(100);
  expect([isClosed, stage.steps.at(-1)]).toEqual([false, "adopt gone"]);
  await stage.clock.advance(second);
  await closing;
  expect(stage.taken).toEqual(["s1"]); // the store already lists it as this node's
  expect([stage.held.size, stage.clock.pending]).toEqual([0, 0]);
});
