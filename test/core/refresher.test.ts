import { expect, it } from "vitest";
import { Refresher } from "../../src/core/refresher.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";

/** A store, its copy in memory, and reads that take time. */
class StoreHarness {
  readonly clock = new ManualClock();
  readonly failures: unknown[] = [];
  stored = 0;
  inMemory = 0;
  readings = 0;
  readingMs = 30;
  isDown = false;
  readonly refresher = new Refresher({
    clock: this.clock,
    read: async () => {
      this.readings++;
      const read = this.stored;
      await this.clock.sleep(this.readingMs);
      if (this.isDown) throw new Error("down");
      this.inMemory = read;
    },
    failed: (error) => this.failures.push(error),
  });

  change(): void {
    this.stored++;
    this.refresher.notifyChange();
  }
}

it("reads immediately, and reads again after changes during a read", async () => {
  const harness = new StoreHarness();
  harness.change();
  expect(harness.readings).toBe(1);
  await harness.clock.advance(10);
  harness.change();
  harness.change();
  await harness.clock.advance(20);
  expect(harness.inMemory).toBe(1); // the result is applied although more changes follow
  await harness.clock.advance(30);
  expect(harness.inMemory).toBe(3);
  expect(harness.readings).toBe(2);
  expect(harness.clock.pending).toBe(0);
});

it("applies results during continuous changes, and reads no more often than needed", async () => {
  const harness = new StoreHarness();
  const every = harness.clock.every(1, () => harness.change());
  await harness.clock.advance(3000);
  expect(harness.stored - harness.inMemory).toBeLessThanOrEqual(61);
  expect(harness.readings).toBeLessThanOrEqual(101);
  every.cancel();
  await harness.clock.advance(60);
  expect(harness.inMemory).toBe(harness.stored);
});

it("lets a caller wait for a read that began after the call", async () => {
  const harness = new StoreHarness();
  const first = harness.refresher.refresh();
  await harness.clock.advance(10);
  harness.stored = 5;
  let isDone = false;
  const second = harness.refresher.refresh().finally(() => {
    isDone = true;
  });
  await harness.clock.advance(20);
  await first;
  expect([isDone, harness.inMemory]).toEqual([false, 0]);
  await harness.clock.advance(30);
  await second;
  expect(harness.inMemory).toBe(5);
});

it("retries a failed read until it succeeds, and rejects the caller's promise", async () => {
  const harness = new StoreHarness();
  harness.isDown = true;
  const refreshing = expect(harness.refresher.refresh()).rejects.toThrow("down");
  for (let i = 0; i < 10; i++) harness.change();
  await harness.clock.advance(60);
  await refreshing;
  expect(harness.failures.length).toBe(1);
  await harness.clock.advance(5000);
  expect([harness.readings, harness.failures.length]).toEqual([6, 1]);
  harness.isDown = false;
  await harness.clock.advance(1100);
  expect(harness.inMemory).toBe(10);
  expect(harness.clock.pending).toBe(0);
});

it("leaves no timer behind when it is closed", async () => {
  const harness = new StoreHarness();
  harness.isDown = true;
  harness.change();
  await harness.clock.advance(50);
  expect(harness.clock.pending).toBe(1);
  harness.refresher.close();
  harness.change();
  expect(harness.clock.pending).toBe(0);
  expect(harness.readings).toBe(1);
});
