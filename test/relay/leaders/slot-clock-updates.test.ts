import { describe, expect, it } from "vitest";
import type { Clock } from "../../../src/core/clock.ts";
import { createLogger } from "../../../src/core/log.ts";
import { u64Max } from "../../../src/core/primitives.ts";
import type { SlotBounds } from "../../../src/relay/data-plane/relay.ts";
import type { SlotSnapshot } from "../../../src/relay/data-plane/snapshot.ts";
import { SlotClockUpdates } from "../../../src/relay/leaders/slot-clock-updates.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";

const noBounds = { lowest: 0n, highest: u64Max, isConfirmed: false, untilNs: 0n };

function rowOf(slot: bigint, firstSeenNs: bigint): SlotSnapshot {
  return {
    slot,
    firstSeenNs,
    lastSeenNs: firstSeenNs,
    data: 1,
    code: 0,
    highestDataIndex: 0,
    lastDataIndex: null,
  };
}

/** A relay that receives slot after slot, 300 ms each, and records its slot bounds. */
function openWatch(node?: { slot: () => Promise<bigint> }) {
  const clock = new ManualClock();
  const startNs = clock.nowNs();
  const extra: bigint[] = [];
  const bounds: SlotBounds[] = [];
  const lines: string[] = [];
  const relay = {
    slots: () => {
      const passed = (clock.nowNs() - startNs) / 300_000_000n;
      const rows = Array.from({ length: Number(passed < 40n ? passed : 40n) }, (_, i) => {
        const number = passed - BigInt(i) - 1n;
        return rowOf(5000n + number, startNs + number * 300_000_000n);
      });
      return [...rows.toReversed(), ...extra.map((slot) => rowOf(slot, clock.nowNs()))];
    },
    setSlotBounds: (given: SlotBounds) => void bounds.push(given),
  };
  const log = createLogger({ stream: { write: (line) => void lines.push(line) } });
  const watch = new SlotClockUpdates({ relay, ...(node && { node }), clock, log });
  return { clock, watch, extra, bounds, lines };
}

describe("SlotClockUpdates", () => {
  it("measures slots on the relay's first arrivals and bounds the accepted slots", async () => {
    const { clock, watch, bounds } = openWatch();
    await clock.advance(200);
    // Nothing is known yet.
    expect(bounds.at(-1)).toEqual(noBounds);
    await clock.advance(30_000);
    const now = watch.slotClock.now(clock.nowNs());
    expect(now).toMatchObject({ source: "shreds" });
    expect(Number(now?.slot)).toBeGreaterThan(5098);
    expect(Number(now?.slot)).toBeLessThan(5103);
    expect(Number(now?.slotNs) / 1e6).toBeCloseTo(300, 0);
    const last = bounds.at(-1);
    expect(last?.lowest).toBe((now?.slot ?? 0n) - 512n);
    expect(Number((last?.highest ?? 0n) - (now?.slot ?? 0n))).toBeLessThan(40);
    expect(last?.untilNs).toBeLessThanOrEqual(clock.nowNs() + 1_000_000_000n);
    watch.close();
    expect(clock.pending).toBe(0);
  });

  it("is not moved by a leader that sends its own future slots", async () => {
    const { clock, watch, extra, bounds } = openWatch();
    await clock.advance(30_000);
    for (let slot = 5200n; slot < 5204n; slot++) extra.push(slot);
    await clock.advance(3000);
    const now = watch.slotClock.now(clock.nowNs())?.slot ?? 0n;
    expect(Number(now)).toBeLessThan(5115);
    expect(Number(bounds.at(-1)?.highest)).toBeLessThan(5200);
    watch.close();
  });

  it("queries the node as the second source, and logs a failure once", async () => {
    let fails = true;
    const { clock, watch, lines } = openWatch({
      slot: async () => {
        if (fails) throw new Error("no answer");
        return 5100n;
      },
    });
    await clock.advance(15_000);
    expect(lines.filter((line) => line.includes("did not return the current slot")).length).toBe(1);
    fails = false;
    await clock.advance(15_000);
    expect(watch.slotClock.now(clock.nowNs())?.source).toBe("shreds");
    watch.close();
  });

  it("trusts the node until its next answer is overdue", async () => {
    const clock = new ManualClock();
    let answers = true;
    const bounds: SlotBounds[] = [];
    const watch = new SlotClockUpdates({
      relay: { slots: () => [], setSlotBounds: (given) => void bounds.push(given) },
      node: {
        slot: async () => {
          if (!answers) throw new Error("no answer");
          return 5000n + clock.nowNs() / 400_000_000n;
        },
      },
      clock,
      log: createLogger({ level: "silent" }),
    });
    await clock.advance(1000);
    bounds.length = 0;
    await clock.advance(20_000);
    for (const { lowest, highest } of bounds) expect(highest - lowest).toBeLessThan(512 + 32 + 60);
    expect(bounds.at(-1)?.isConfirmed).toBe(false); // without shreds
    answers = false;
    await clock.advance(10_000);
    expect(bounds.at(-1)).toEqual(noBounds);
    watch.close();
  });

  it("asks the node each second until it knows the slot duration and after a failure, otherwise each five seconds", async () => {
    const clock = new ManualClock();
    const askedMs: number[] = [];
    let answers = true;
    const watch = new SlotClockUpdates({
      relay: { slots: () => [], setSlotBounds: () => undefined },
      node: {
        slot: async () => {
          askedMs.push(Number(clock.monotonicNs() / 1_000_000n));
          if (!answers) throw new Error("no answer");
          return 5000n + clock.nowNs() / 400_000_000n;
        },
      },
      clock,
      log: createLogger({ level: "silent" }),
    });
    const beganMs = askedMs[0] ?? Number.NaN;
    await clock.advance(30_000);
    const intervals = askedMs.slice(1).map((ms, i) => ms - (askedMs[i] ?? beganMs));
    expect(intervals.slice(0, 4)).toEqual([1000, 1000, 1000, 1000]);
    expect(intervals.slice(-3)).toEqual([5000, 5000, 5000]);
    // The slot is right as soon as there is a duration.
    const now = watch.slotClock.now(clock.nowNs());
    expect(
      Math.abs(Number((now?.slot ?? 0n) - (5000n + clock.nowNs() / 400_000_000n))),
    ).toBeLessThan(3);
    answers = false;
    await clock.advance(8000);
    expect(askedMs.slice(-3).map((ms) => ms - (askedMs.at(-1) ?? 0))).toEqual([-2000, -1000, 0]);
    watch.close();
  });

  it("confirms the bounds while shreds and the node agree", async () => {
    const slots = { ahead: 0n };
    const { clock, watch, bounds } = openWatch({
      slot: async () => 5000n + (clock.nowNs() - watchedFromNs) / 300_000_000n + slots.ahead,
    });
    const watchedFromNs = clock.nowNs();
    await clock.advance(20_000);
    expect(bounds.at(-1)?.isConfirmed).toBe(true);
    slots.ahead = -100n; // a node that has fallen behind does not exclude the shreds
    await clock.advance(20_000);
    expect(bounds.at(-1)?.isConfirmed).toBe(false);
    expect(watch.slotClock.now(clock.nowNs())?.source).toBe("shreds");
    watch.close();
  });

  it.each([-3600, -29, -20, -8, -5, -2, -1.5, -1, 1.5, 8, 29, 3600])(
    "keeps the current slot when the clock is set by %s s",
    async (stepSeconds) => {
      const clock = new ManualClock();
      const startNs = clock.monotonicNs();
      const trueSlot = () => 5000n + (clock.monotonicNs() - startNs) / 300_000_000n;
      let stepNs = 0n;
      const seen = new Map<bigint, bigint>();
      const wallClock: Clock = {
        nowNs: () => clock.nowNs() + stepNs,
        monotonicNs: () => clock.monotonicNs(),
        after: (delayMs, action) => clock.after(delayMs, action),
        every: (periodMs, action) => clock.every(periodMs, action),
        sleep: (delayMs, signal) => clock.sleep(delayMs, signal),
      };
      let bounds: SlotBounds = noBounds;
      const relay = {
        slots: () => {
          // The relay does not see slots outside the bounds.
          const slot = trueSlot();
          const holds = bounds.untilNs > wallClock.nowNs();
          const isInside = !holds || (slot >= bounds.lowest && slot <= bounds.highest);
          if (isInside && !seen.has(slot)) seen.set(slot, wallClock.nowNs());
          return [...seen].slice(-64).map(([number, firstSeenNs]) => rowOf(number, firstSeenNs));
        },
        setSlotBounds: (given: SlotBounds) => {
          bounds = given;
        },
      };
      const log = createLogger({ level: "silent" });
      const watch = new SlotClockUpdates({ relay, clock: wallClock, log });
      await clock.advance(30_000);
      stepNs = BigInt(stepSeconds * 1e9);
      const before = seen.size;
      for (let i = 0; i < 60; i++) {
        await clock.advance(1_000);
        const slot = watch.slotClock.now(wallClock.nowNs())?.slot ?? 0n;
        expect(Math.abs(Number(slot - trueSlot()))).toBeLessThanOrEqual(1);
      }
      // 200 slots in 60 s; at most those between the step and the next update were rejected.
      expect(seen.size - before).toBeGreaterThan(198);
      expect(watch.slotClock.now(wallClock.nowNs())?.slot).toBe(trueSlot());
      watch.close();
    },
  );
});
