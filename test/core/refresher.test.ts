import { expect, it } from "vitest";
import { Refresher } from "../../src/core/refresher.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";

/** A store, its copy in memory, and reads that take time. */
class Stage {
  readonly clock = new ManualClock();
  readonly failures: unknown[] = [];
  kept = 0;
  inMemory = 0;
  readings = 0;
  readingMs = 30;
  isDown = false;
  readonly refresher = new Refresher({
    clock: this.clock,
    read: async () => {
      this.readings++;
      const read = this.kept;
      await this.clock.sleep(this.readingMs);
      if (this.isDown) throw new Error("down");
      this.inMemory = read;
    },
    failed: (error) => this.failures.push(error),
  });

  change(): void {
    this.kept++;
    this.refresher.notifyChange();
  }
}

it("reads immediately, and reads again after changes during a read", async () => {
  const stage = new Stage();
  stage.change();
  expect(stage.readings).toBe(1);
  await stage.clock.advance(10);
  stage.change();
  stage.change();
  await stage.clock.advance(20);
  expect(stage.inMemory).toBe(1); // the result is applied although more changes follow
  await stage.clock.advance(30);
  expect(stage.inMemory).toBe(3);
  expect(stage.readings).toBe(2);
  expect(stage.clock.pending).toBe(0);
});

it("is not starved by continuous changes, and reads no more often than needed", async () => {
  const stage = new Stage();
  const every = stage.clock.every(1, () => stage.change());
  await stage.clock.advance(3000);
  expect(stage.kept - stage.inMemory).toBeLessThanOrEqual(61);
  expect(stage.readings).toBeLessThanOrEqual(101);
  every.cancel();
  await stage.clock.advance(60);
  expect(stage.inMemory).toBe(stage.kept);
});

it("lets a caller wait for a read that began after the call", async () => {
  const stage = new Stage();
  const first = stage.refresher.refresh();
  await stage.clock.advance(10);
  stage.kept = 5;
  let isDone = false;
  const second = stage.refresher.refresh().finally(() => {
    isDone = true;
  });
  await stage.clock.advance(20);
  await first;
  expect([isDone, stage.inMemory]).toEqual([false, 0]);
  await stage.clock.advance(30);
  await second;
  expect(stage.inMemory).toBe(5);
});

it("retries a failed read until it succeeds, and rejects the caller's promise", async () => {
  const stage = new Stage();
  stage.isDown = true;
  const asked = expect(stage.refresher.refresh()).rejects.toThrow("down");
  for (let i = 0; i < 10; i++) stage.change();
  await stage.clock.advance(60);
  await asked;
  expect(stage.failures.length).toBe(1);
  await stage.clock.advance(5000);
  expect([stage.readings, stage.failures.length]).toEqual([6, 1]);
  stage.isDown = false;
  await stage.clock.advance(1100);
  expect(stage.inMemory).toBe(10);
  expect(stage.clock.pending).toBe(0);
});

it("leaves no timer behind when it is closed", async () => {
  const stage = new Stage();
  stage.isDown = true;
  stage.change();
  await stage.clock.advance(50);
  expect(stage.clock.pending).toBe(1);
  stage.refresher.close();
  stage.change();
  expect(stage.clock.pending).toBe(0);
  expect(stage.readings).toBe(1);
});
