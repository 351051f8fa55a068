// Snapshots on a clock that is advanced, set, and continued by the next process.

import { describe, expect, it } from "vitest";
import type { LandedTips } from "../../src/gateway/submission/types.ts";
import { minuteMs, of, Run, startMs } from "./statistics-run.ts";

describe("the time of a snapshot", () => {
  it.each([
    [3_000, 15 * minuteMs],
    [10_000, 15 * minuteMs],
    [300_000, 20 * minuteMs],
  ])("is the quarter hour, unless the refresh is late: by %i ms", async (lateMs, expectedMs) => {
    const run = await Run.open();
    run.landed("a", 7n);
    await run.clock.advance(15 * minuteMs - 20_000);
    run.clock.aheadMs = 10_000 + lateMs;
    await run.clock.advance(10_000);
    expect(run.snapshot).toMatchObject({
      count: 1,
      timeMs: startMs + expectedMs,
      windowStartMs: startMs + expectedMs - 15 * minuteMs,
    });
  });
});

describe("the first snapshot", () => {
  it("is published ten seconds after the first landed tip, the next one on the quarter hour", async () => {
    const run = await Run.open(minuteMs);
    expect(run.snapshot).toMatchObject({ count: 0 });
    run.landed("a", 20_000n);
    run.seen("failed", 5n);
    run.statistics.retracted("failed");
    await run.clock.advance(9_999);
    expect(run.snapshot).toMatchObject({ count: 0 });
    await run.clock.advance(1);
    const early = { count: 1, percentiles: of(20_000n), isStale: false };
    expect(run.snapshot).toMatchObject({ ...early, timeMs: startMs + 70_000 });
    run.landed("b", 40_000n);
    await run.clock.advance(13 * minuteMs);
    expect(run.notifications.length).toBe(1);
    // It is not stored: the next process publishes another early one.
    await run.restart();
    await run.clock.advance(10_000);
    expect(run.snapshot).toMatchObject({ count: 2, timeMs: startMs + 14 * minuteMs + 20_000 });
    await run.clock.advance(minuteMs);
    // The early ones do not count for the average.
    expect(run.snapshot).toMatchObject({
      count: 2,
      timeMs: startMs + 15 * minuteMs,
      emaP50: run.snapshot.percentiles.p50,
    });
  });

  it("waits for a tip that stays", async () => {
    const run = await Run.open(minuteMs);
    run.seen("failed", 5n);
    run.statistics.retracted("failed");
    await run.clock.advance(60_000);
    expect(run.notifications).toEqual([]);
    run.landed("a", 7n);
    await run.clock.advance(10_000);
    expect(run.snapshot).toMatchObject({ count: 1 });
  });
});

describe("refreshes of the tip statistics", () => {
  it("happen at minutes 00, 15, 30 and 45 of wall time", async () => {
    const run = await Run.open(7 * minuteMs + 123);
    await run.clock.advance(45 * minuteMs);
    const minutes = run.notifications.map(({ timeMs }) => (timeMs - startMs) / minuteMs);
    expect(minutes).toEqual([15, 30, 45]);
  });

  it("cover exactly the previous 15 minutes", async () => {
    const run = await Run.open(1);
    run.seen("first", 1n);
    await run.clock.advance(15 * minuteMs - 1);
    expect(run.snapshot).toEqual({
      timeMs: startMs + 15 * minuteMs,
      percentiles: of(1n),
      emaP50: 1n,
      count: 1,
      windowStartMs: startMs,
      isStale: false,
    });
    run.seen("at the refresh", 3n);
    await run.clock.advance(15 * minuteMs);
    // It landed at 15:00.000 and expires at 30:00.000.
    expect(run.snapshot).toMatchObject({ percentiles: of(1n), count: 1, isStale: true });
  });

  it("use nearest-rank percentiles", async () => {
    const run = await Run.open();
    for (let i = 1; i <= 101; i++) run.landed(`s${i}`, BigInt(i * 1000));
    await run.clock.advance(15 * minuteMs - 1);
    run.landed("one more", 1n);
    await run.clock.advance(1);
    expect(run.snapshot).toMatchObject({ count: 1 });
    for (let i = 1; i <= 101; i++) run.landed(`t${i}`, BigInt(i * 1000));
    await run.clock.advance(14 * minuteMs);
    for (let i = 1; i <= 101; i++) run.landed(`u${i}`, BigInt(i * 1000));
    await run.clock.advance(minuteMs);
    expect(run.snapshot.percentiles).toEqual({
      p25: 26_000n,
      p50: 51_000n,
      p75: 76_000n,
      p95: 96_000n,
      p99: 100_000n,
    });
  });

  it("block the event loop for a few milliseconds at most", async () => {
    const run = await Run.open();
    await run.clock.advance(14 * minuteMs);
    for (let i = 0; i < 40_000; i++) run.seen(`s${i}`, BigInt(i + 1));
    run.clock.lookNs = 3_000_000n;
    await run.clock.advance(minuteMs);
    expect(run.clock.turns).toBeGreaterThan(3);
    expect(run.notifications).toHaveLength(2); // the early one, and that of the quarter hour
    expect(run.snapshot).toMatchObject({ count: 40_000, percentiles: { p50: 20_000n } });
  });

  it("retain the last snapshot while no tip lands, and mark it as stale", async () => {
    const run = await Run.open();
    expect(run.snapshot).toMatchObject({ percentiles: of(0n), count: 0, emaP50: 0n });
    await run.clock.advance(15 * minuteMs);
    expect(run.snapshot).toMatchObject({ percentiles: of(0n), count: 0, isStale: true });
    run.landed("a", 10_000n);
    await run.clock.advance(15 * minuteMs - 1);
    run.landed("b", 20_000n);
    await run.clock.advance(1);
    const good = run.snapshot;
    expect(good).toMatchObject({ count: 1, percentiles: of(20_000n), isStale: false });
    await run.clock.advance(45 * minuteMs);
    expect(run.snapshot).toEqual({ ...good, isStale: true });
    expect(run.notifications).toHaveLength(6); // with the early one
    run.landed("c", 30_000n);
    await run.clock.advance(14 * minuteMs);
    expect(run.snapshot.isStale).toBe(true);
    await run.clock.advance(minuteMs - 1);
    run.landed("d", 30_000n);
    await run.clock.advance(1);
    expect(run.snapshot).toMatchObject({ percentiles: of(30_000n), isStale: false });
  });

  it("move the average of the medians by a fifth, and not without a median", async () => {
    const run = await Run.open();
    const quarter = async (name: string, lamports: bigint | null) => {
      await run.clock.advance(minuteMs);
      if (lamports !== null) run.landed(name, lamports);
      await run.clock.advance(14 * minuteMs);
      return run.snapshot.emaP50;
    };
    expect(await quarter("a", 1000n)).toBe(1000n);
    expect(await quarter("b", 2000n)).toBe(1200n);
    expect(await quarter("none", null)).toBe(1200n);
    expect(await quarter("c", 1203n)).toBe(1201n); // 1200.6
    expect(await quarter("d", 1n)).toBe(961n);
  });

  it("notify all listeners, even if one of them throws", async () => {
    const run = await Run.open();
    const notifications: number[] = [];
    run.statistics.onRefresh(() => {
      throw new Error("no ear");
    });
    const stop = run.statistics.onRefresh(({ count }) => notifications.push(count));
    await run.clock.advance(15 * minuteMs);
    stop();
    await run.clock.advance(15 * minuteMs);
    expect(notifications).toEqual([0]);
    expect(run.warnings.join()).toContain("no ear");
  });
});

describe("counted tips", () => {
  it("count at the first observation, until they are withdrawn", async () => {
    const run = await Run.open();
    const tips: LandedTips = run.statistics;
    const atNs = run.clock.nowNs() + 1n;
    tips.observed("a", 5n, atNs);
    tips.observed("a", 6n, atNs);
    tips.landed("a", 7n, atNs);
    tips.retracted("a"); // landed finally
    tips.observed("b", 100n, atNs);
    tips.retracted("b");
    tips.retracted("unknown");
    tips.observed("zero", 0n, atNs);
    await run.clock.advance(10 * minuteMs);
    run.seen("b", 9n);
    run.seen("c", 11n, 10_000);
    expect(run.statistics.size).toBe(3);
    await run.clock.advance(5 * minuteMs);
    // A tip at the very start of the window is expired.
    expect(run.snapshot).toMatchObject({ count: 2, percentiles: { p25: 9n, p99: 11n } });
  });

  it("use the time of the observation, not of the report", async () => {
    const run = await Run.open(minuteMs);
    run.seen("late", 5n, 30_000);
    await run.clock.advance(14 * minuteMs);
    expect(run.snapshot.count).toBe(1);
    await run.clock.advance(30_000 - 1);
    expect(run.statistics.size).toBe(1);
    await run.clock.advance(1);
    expect(run.statistics.size).toBe(0);
    run.seen("much too late", 5n, 15 * minuteMs);
    expect(run.statistics.size).toBe(0);
  });
});

describe("a wall clock that is set", () => {
  it("forward: causes one refresh, soon, with the same tips", async () => {
    const run = await Run.open(2 * minuteMs);
    run.landed("a", 5n);
    run.clock.aheadMs = 3 * 60 * minuteMs;
    await run.clock.advance(10_000);
    expect(run.notifications).toHaveLength(1);
    expect(run.snapshot).toMatchObject({ count: 1, isStale: false });
    await run.clock.advance(13 * minuteMs);
    expect(run.notifications).toHaveLength(2);
    expect(run.snapshot).toMatchObject({ count: 1, timeMs: startMs + 195 * minuteMs });
  });

  it("back: causes no refresh for past times, the next at the next quarter hour", async () => {
    const run = await Run.open(2 * minuteMs);
    run.landed("a", 5n);
    run.clock.aheadMs = -3 * 60 * minuteMs;
    await run.clock.advance(12 * minuteMs);
    expect(run.notifications).toHaveLength(1); // the early one
    await run.clock.advance(minuteMs);
    expect(run.snapshot).toMatchObject({ count: 1, timeMs: startMs - 165 * minuteMs });
    await run.clock.advance(15 * minuteMs);
    expect(run.notifications).toHaveLength(3);
    expect(run.snapshot).toMatchObject({ count: 1, isStale: true });
  });

  it("back over a refreshed quarter hour: causes no second refresh", async () => {
    const run = await Run.open();
    await run.clock.advance(15 * minuteMs);
    // Noticed ten seconds later, five before the same quarter hour returns.
    run.clock.aheadMs = -15_000;
    await run.clock.advance(minuteMs);
    expect(run.notifications).toHaveLength(1);
    await run.clock.advance(14 * minuteMs + 15_000);
    expect(run.notifications).toHaveLength(2);
  });
});

describe("the next process", () => {
  it("restores the window and the last snapshot", async () => {
    const run = await Run.open();
    await run.clock.advance(10 * minuteMs);
    run.landed("a", 5n);
    run.seen("b", 7n);
    run.seen("c", 9n);
    run.statistics.retracted("c");
    await run.clock.advance(5 * minuteMs + 1000);
    const before = run.snapshot;
    expect(before.count).toBe(2);
    await run.restart();
    expect(run.snapshot).toEqual(before);
    expect(run.statistics.size).toBe(2);
    run.seen("a", 6n);
    run.statistics.retracted("b"); // it failed: its outcome was unknown before
    expect(run.statistics.size).toBe(1);
    await run.clock.advance(10 * minuteMs);
    expect(run.statistics.size).toBe(0);
    expect([...run.store.tips.keys()]).toEqual(["a"]);
  });

  it("catches up on a missed refresh, and deletes expired tips", async () => {
    const run = await Run.open();
    run.landed("old", 1n);
    await run.clock.advance(14 * minuteMs);
    run.landed("a", 5n);
    await run.clock.advance(minuteMs + 1000);
    await run.statistics.close();
    await run.clock.advance(16 * minuteMs);
    run.notifications.length = 0;
    await run.restart();
    expect(run.snapshot).toMatchObject({ count: 1, isStale: true });
    await run.clock.advance(2000);
    expect(run.store.tips.size).toBe(0);
  });

  it("that starts just before a quarter hour also refreshes then", async () => {
    const run = await Run.open();
    run.landed("a", 5n);
    await run.clock.advance(15 * minuteMs + 1000);
    await run.statistics.close();
    await run.clock.advance(29 * minuteMs + 30_000);
    run.notifications.length = 0;
    await run.restart();
    await run.clock.advance(minuteMs);
    expect(run.notifications).toMatchObject([{ isStale: true, timeMs: startMs + 10_000 }]);
  });

  it("loses at most a second of tips, and none after close", async () => {
    const run = await Run.open();
    run.landed("a", 5n);
    await run.clock.advance(1000);
    run.landed("b", 6n);
    expect([...run.store.tips.keys()]).toEqual(["a"]);
    await run.statistics.close();
    expect([...run.store.tips.keys()]).toEqual(["a", "b"]);
    expect(run.clock.pending).toBe(0);
  });

  it("reads any number of tips", async () => {
    const run = await Run.open();
    for (let i = 0; i < 4500; i++) run.landed(`s${i}`, BigInt(i + 1));
    await run.clock.advance(1000);
    await run.restart();
    expect(run.statistics.size).toBe(4500);
    expect(run.store.writes).toBeLessThan(5);
  });

  it("ignores tips with a time of a clock far ahead", async () => {
    const run = await Run.open();
    run.clock.aheadMs = 24 * 60 * minuteMs;
    run.landed("a", 5n);
    await run.clock.advance(1000);
    run.clock.aheadMs = 0;
    run.landed("b", 5n);
    await run.clock.advance(1000);
    await run.restart();
    expect(run.statistics.size).toBe(1);
  });
});

describe("a failing store", () => {
  it("is logged without other effects", async () => {
    const run = await Run.open();
    run.store.isFailing = true;
    run.landed("a", 5n);
    run.seen("b", 7n);
    await run.clock.advance(5 * minuteMs);
    run.statistics.retracted("b");
    run.landed("c", 9n);
    await run.clock.advance(10 * minuteMs);
    expect(run.snapshot).toMatchObject({ count: 1, percentiles: of(9n) });
    expect(run.warnings.length).toBeGreaterThan(10);
    expect(run.warnings.length).toBeLessThanOrEqual(91); // one in ten seconds
    run.store.isFailing = false;
    await run.clock.advance(1000);
    expect(run.store.tips.has("b")).toBe(false);
    expect(run.store.tips.has("c")).toBe(true);
    expect(run.store.last).toMatchObject({ count: 1 });
  });

  it("does not prevent startup", async () => {
    const run = new Run();
    run.store.isFailing = true;
    await run.restart();
    expect(run.snapshot).toMatchObject({ count: 0 });
    expect(run.warnings).toHaveLength(1);
    run.landed("a", 5n);
    await run.clock.advance(14 * minuteMs);
    run.landed("b", 5n);
    await run.clock.advance(minuteMs);
    expect(run.snapshot).toMatchObject({ count: 1 });
    expect(run.statistics.size).toBe(1);
  });

  it("stores the last state of a tip that was withdrawn during a failed write", async () => {
    const run = await Run.open();
    let release = (): void => undefined;
    run.store.held = new Promise((resolve) => {
      release = resolve;
    });
    run.seen("a", 5n);
    await run.clock.advance(1000);
    run.statistics.retracted("a");
    run.store.isFailing = true;
    release();
    await run.clock.advance(0);
    run.store.isFailing = false;
    await run.clock.advance(1000);
    expect(run.store.writes).toBe(1);
    expect(run.store.tips.size).toBe(0);
  });

  it("stores the last state of a tip that was added and withdrawn meanwhile", async () => {
    const run = await Run.open();
    run.seen("a", 5n);
    await run.clock.advance(1000);
    run.store.isFailing = true;
    run.statistics.retracted("a");
    await run.clock.advance(5000);
    run.seen("a", 6n);
    await run.clock.advance(1000);
    run.seen("b", 7n);
    await run.clock.advance(1000);
    run.statistics.retracted("b");
    run.store.isFailing = false;
    await run.clock.advance(1000);
    expect([...run.store.tips.values()]).toEqual([
      { signature: "a", lamports: 6n, landedMs: startMs + 6000 },
    ]);
  });
});
