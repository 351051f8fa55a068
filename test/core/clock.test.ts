import { describe, expect, it } from "vitest";
import { systemClock, WallClock } from "../../src/core/clock.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";

describe("manual clock", () => {
  it("runs timers at their own times, in order", async () => {
    const clock = new ManualClock(1_000n);
    const seen: string[] = [];
    const note = (name: string) => () => seen.push(`${name}@${clock.monotonicNs() / 1_000_000n}`);
    clock.after(20, note("late"));
    clock.after(10, note("first"));
    clock.after(10, note("second"));
    const every = clock.every(8, note("tick"));
    await clock.advance(20);
    expect(seen).toEqual(["tick@8", "first@10", "second@10", "tick@16", "late@20"]);
    every.cancel();
    await clock.advance(100);
    expect(seen.length).toBe(5);
    expect(clock.pending).toBe(0);
    expect(clock.nowNs()).toBe(1_000n + 120_000_000n);
  });

  it("wakes all sleepers, including repeated sleeps", async () => {
    const clock = new ManualClock();
    const seen: bigint[] = [];
    const sleeper = (async () => {
      for (let i = 0; i < 3; i++) {
        await clock.sleep(5);
        seen.push(clock.monotonicNs());
      }
    })();
    await clock.advance(15);
    await sleeper;
    expect(seen).toEqual([5_000_000n, 10_000_000n, 15_000_000n]);
  });

  it("ends a sleep when its signal aborts, and leaves no timer", async () => {
    const clock = new ManualClock();
    const abort = new AbortController();
    const sleep = clock.sleep(1000, abort.signal);
    expect(clock.pending).toBe(1);
    abort.abort();
    await sleep;
    await clock.sleep(1000, abort.signal);
    expect(clock.pending).toBe(0);
  });
});

describe("wall clock", () => {
  it("finds the time between milliseconds, and follows changes of the clock", () => {
    let wallNs = 1_000_000_000_000_700n;
    let monotonicNs = 5n;
    const clock = new WallClock(
      () => Number(wallNs / 1_000_000n),
      () => monotonicNs,
    );
    const pass = (ns: bigint): bigint => {
      wallNs += ns;
      monotonicNs += ns;
      return wallNs - clock.nowNs();
    };
    let last = 0n;
    for (let i = 0; i < 3000; i++) {
      const behindNs = pass(1_700n);
      expect(behindNs).toBeGreaterThanOrEqual(0n);
      expect(behindNs).toBeLessThan(1_000_000n);
      last = behindNs;
    }
    expect(last).toBeLessThanOrEqual(1_700n); // a time just after the tick was among them
    wallNs -= 3_600_000_000_000n;
    for (let i = 0; i < 3000; i++) last = pass(1_700n);
    expect(last >= 0n && last <= 1_700n).toBe(true);
    wallNs += 10_000_000n;
    for (let i = 0; i < 3000; i++) last = pass(1_700n);
    expect(last >= 0n && last <= 1_700n).toBe(true);
  });

  it("does not go back because of a delay between its readings", () => {
    let nowNs = 1_000_000_000_000_000n;
    const pauses: bigint[] = [];
    const reading = (): bigint => {
      const readNs = nowNs;
      nowNs += pauses.shift() ?? 0n;
      return readNs;
    };
    const clock = new WallClock(() => Number(reading() / 1_000_000n), reading);
    let lastNs = clock.nowNs();
    const delays = [[2_490_000n], [9_999_999n], [0n, 40_000_000n], Array(30).fill(5_000_001n)];
    for (const each of delays) {
      pauses.push(...each);
      while (pauses.length > 0) {
        const reportedNs = clock.nowNs();
        expect(reportedNs).toBeLessThanOrEqual(nowNs);
        expect(reportedNs).toBeGreaterThanOrEqual(lastNs);
        lastNs = reportedNs;
      }
      expect(clock.nowNs()).toBe(nowNs);
    }
  });

  it("returns no future time after a delay between its readings", () => {
    let nowNs = 1_000_000_000_000_000n;
    let pausedNs = 0n;
    // The second reading is later, whichever clock it is.
    const reading = (): bigint => {
      const readNs = nowNs;
      nowNs += pausedNs;
      return readNs;
    };
    const clock = new WallClock(() => Number(reading() / 1_000_000n), reading);
    expect(clock.nowNs()).toBe(nowNs);
    for (pausedNs of [1_500_000n, 0n, 50_000_000n, 0n]) {
      const beforeNs = nowNs;
      const reportedNs = clock.nowNs();
      expect(reportedNs >= beforeNs && reportedNs <= nowNs).toBe(true);
    }
  });
});

describe("system clock", () => {
  it("is within a millisecond of the system clock, with a finer resolution", () => {
    const times = Array.from({ length: 1000 }, () => systemClock.nowNs());
    expect(new Set(times.map((ns) => ns % 1_000_000n)).size).toBeGreaterThan(10);
    const beforeMs = Date.now();
    const nowMs = Number(systemClock.nowNs() / 1_000n) / 1e3;
    // The time is between the two readings, for any delay of the machine.
    expect(nowMs).toBeGreaterThan(beforeMs - 3);
    expect(nowMs).toBeLessThan(Date.now() + 3);
  });

  it("returns a time after 2026 and never goes back", () => {
    expect(systemClock.nowNs()).toBeGreaterThan(1_767_225_600_000_000_000n);
    const before = systemClock.monotonicNs();
    expect(systemClock.monotonicNs()).toBeGreaterThanOrEqual(before);
  });
});
