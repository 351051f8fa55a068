// Failover of submissions of dead nodes: schedule and failures.

import { expect, it } from "vitest";
import { SubmissionFailover } from "../../../src/gateway/submission/submission-failover.ts";
import type { SubmissionRecord } from "../../../src/gateway/submission/types.ts";
import { recordOf } from "../../platform/store/files.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";

const second = 1000;

class FailoverHarness {
  readonly clock = new ManualClock();
  /** Open records by node. */
  readonly open = new Map<string, SubmissionRecord[]>();
  readonly alive = new Set<string>();
  readonly held = new Set<string>();
  readonly steps: string[] = [];
  readonly adopted: string[] = [];
  readonly warnings: string[] = [];
  readonly infos: unknown[] = [];
  loseConnection = () => {};
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
    node: "own",
    locks: {
      tryLock: (name, onLost) =>
        this.#step(`lock ${name}`, () => {
          if (this.alive.has(name) || this.held.has(name)) return null;
          if (name === "failover by own") this.loseConnection = onLost;
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
        .filter((s) => !this.adopted.includes(s));
      this.adopted.push(...fresh);
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

it("checks every second, adopts from nodes whose lock is free for two, and releases the lock", async () => {
  const harness = new FailoverHarness();
  harness.open.set("gone", [recordOf("s1"), recordOf("s2")]).set("there", [recordOf("s3")]);
  harness.alive.add("node there");
  harness.watch.start();
  await harness.clock.advance(2.5 * second);
  const check = ["openNodes", "lock node gone", "lock node there"];
  expect(harness.steps).toEqual(["lock failover by own", ...check, ...check]);
  expect([...harness.held]).toEqual(["failover by own"]);
  await harness.clock.advance(second);
  expect(harness.steps.slice(7)).toEqual([
    "openNodes",
    "lock node gone",
    "adopt gone",
    "lock node there",
  ]);
  expect(harness.adopted).toEqual(["s1", "s2"]);
  expect(harness.infos).toEqual([{ node: "gone", transactions: 2 }]);
  harness.alive.clear();
  await harness.clock.advance(4 * second);
  expect(harness.adopted).toEqual(["s1", "s2", "s3"]);
});

it("waits longer after it lost its own connection, because all locks are free then", async () => {
  const harness = new FailoverHarness();
  harness.open.set("there", [recordOf("s1")]);
  harness.alive.add("node there");
  harness.watch.start();
  await harness.clock.advance(2 * second);
  harness.alive.clear();
  harness.held.clear();
  harness.loseConnection();
  await harness.clock.advance(9 * second);
  harness.alive.add("node there"); // it has connected again
  await harness.clock.advance(3 * second);
  harness.alive.clear();
  await harness.clock.advance(7 * second);
  expect(harness.adopted).toEqual([]);
  await harness.clock.advance(4 * second);
  expect(harness.adopted).toEqual(["s1"]);
});

it("also checks the lock of records without a node name, which may have been moved", async () => {
  const harness = new FailoverHarness();
  harness.open.set("", [recordOf("s1")]);
  harness.alive.add("node ");
  harness.watch.start();
  await harness.clock.advance(31 * second);
  expect(harness.adopted).toEqual([]);
  harness.alive.clear();
  await harness.clock.advance(20 * second);
  expect(harness.adopted).toEqual(["s1"]);
});

it("resets a node whose lock is held at the next check", async () => {
  const harness = new FailoverHarness();
  harness.open.set("back", [recordOf("s1")]);
  harness.watch.start();
  await harness.clock.advance(2.5 * second);
  harness.alive.add("node back");
  await harness.clock.advance(second);
  harness.alive.clear();
  await harness.clock.advance(2 * second);
  expect(harness.adopted).toEqual([]);
});

it("logs a database failure once, does not query concurrently, and recovers", async () => {
  const harness = new FailoverHarness();
  harness.open.set("gone", [recordOf("s1")]);
  harness.isAway = true;
  harness.queryMs = 25 * second;
  harness.watch.start();
  await harness.clock.advance(100 * second);
  expect(harness.steps.length).toBe(4);
  expect(harness.warnings.length).toBe(1);
  harness.isAway = false;
  harness.queryMs = 10;
  await harness.clock.advance(50 * second);
  expect(harness.adopted).toEqual(["s1"]);
});

it("rechecks its own records after an adoption with unknown result", async () => {
  const harness = new FailoverHarness();
  harness.open.set("gone", [recordOf("s1")]);
  harness.failsToTake = true;
  harness.watch.start();
  await harness.clock.advance(21 * second);
  expect([harness.adopted, [...harness.held]]).toEqual([[], ["failover by own"]]);
  harness.failsToTake = false;
  await harness.clock.advance(10 * second);
  expect(harness.adopted).toEqual(["s1"]);
  await harness.clock.advance(10 * second);
  const questions = () => harness.steps.filter((step) => step === "open").length;
  const before = questions();
  await harness.clock.advance(10 * second);
  expect([before > 0, questions()]).toEqual([true, before]);
});

it("adopts nothing after close, and waits for a running adoption", async () => {
  const harness = new FailoverHarness();
  harness.open.set("gone", [recordOf("s1")]).set("gone, too", [recordOf("s2")]);
  harness.queryMs = 100;
  harness.watch.start();
  await harness.clock.advance(3 * second + 250);
  let isClosed = false;
  const closing = harness.watch.close().finally(() => {
    isClosed = true;
  });
  await harness.clock.advance(20);
  expect([isClosed, harness.steps.at(-1)]).toEqual([false, "adopt gone"]);
  await harness.clock.advance(second);
  await closing;
  expect(harness.adopted).toEqual(["s1"]); // the store already lists it as this node's
  expect([harness.held.size, harness.clock.pending]).toEqual([0, 0]);
});
