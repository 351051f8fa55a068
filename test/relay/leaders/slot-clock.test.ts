import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nearSlots, SlotClock } from "../../../src/relay/leaders/slot-clock.ts";
import { firstSlot, type Network, SimulatedSlots, startNs } from "./simulated-slots.ts";

const msNs = 1_000_000n;
const second = 1_000_000_000n;

const base = fc.record({
  seed: fc.integer({ min: 0 }),
  slotMs: fc.integer({ min: 150, max: 450 }),
  skipShare: fc.double({ min: 0, max: 0.3, noNaN: true }),
  jitterMs: fc.integer({ min: 0, max: 120 }),
});

/**
 * The limits below are the worst of many random networks plus a margin, so that every run passes.
 */
const seed = 20_261_121;

interface ClockReading {
  readonly place: number;
  /** Error of `now` in slots; null: unknown. */
  readonly error: number | null;
  /** Distance of `ceiling` above the true slot. */
  readonly margin: number | null;
  readonly slotNs: number | null;
}

/** Runs the clock over the network and checks it at each of `places`. */
function run(slots: SimulatedSlots, from = 0, clock = new SlotClock()): ClockReading[] {
  const readings: ClockReading[] = [];
  let next = 0;
  for (let place = 0; place < slots.network.slots; place++) {
    const timeNs = slots.timeOf(place);
    for (; next < slots.seen.length; next++) {
      const seen = slots.seen[next];
      if (!seen || seen.timeNs > timeNs) break;
      clock.noteShreds(seen.slot, seen.timeNs);
    }
    if (place < from) continue;
    const now = clock.now(timeNs);
    const ceiling = clock.ceiling(timeNs);
    const actual = Number(firstSlot) + place;
    readings.push({
      place,
      error: now && Number(now.slot) - actual,
      margin: ceiling === null ? null : Number(ceiling) - actual,
      slotNs: now?.slotNs === null || now === null ? null : Number(now.slotNs),
    });
  }
  return readings;
}

function worst(readings: readonly ClockReading[]): number {
  return Math.max(...readings.map(({ error }) => (error === null ? Infinity : Math.abs(error))));
}

function checkMargin(readings: readonly ClockReading[], least: number, most: number): void {
  const margins = readings.map(({ margin }) => margin ?? Number.NaN);
  expect(Math.min(...margins)).toBeGreaterThanOrEqual(least);
  expect(Math.max(...margins)).toBeLessThanOrEqual(most);
}

describe("a steady network", () => {
  it("determines the slot within one and the duration within 3 %, for any duration", () => {
    fc.assert(
      fc.property(base, (options) => {
        const readings = run(new SimulatedSlots({ ...options, slots: 400 }), 100);
        expect(worst(readings)).toBeLessThanOrEqual(1);
        checkMargin(readings, nearSlots - 1, nearSlots + 6);
        for (const { slotNs } of readings) {
          expect(Math.abs((slotNs ?? 0) / 1e6 / options.slotMs - 1)).toBeLessThan(0.03);
        }
      }),
      { numRuns: 14, seed },
    );
  });

  it("predicts the time of a slot 200 ahead", () => {
    fc.assert(
      fc.property(base, (options) => {
        const slots = new SimulatedSlots({ ...options, slots: 200 });
        const clock = new SlotClock();
        run(slots, 0, clock);
        const predicted = clock.timeOf(firstSlot + 400n);
        const errorNs = Math.abs(Number((predicted ?? 0n) - slots.timeOf(400)));
        expect(errorNs / 1e6 / options.slotMs).toBeLessThan(6);
        expect(clock.slotAt(predicted ?? 0n)).toSatisfy(
          (slot: bigint) => slot >= firstSlot + 399n && slot <= firstSlot + 400n,
        );
      }),
      { numRuns: 14, seed },
    );
  });

  it("is unknown before 12 arrivals, and with four slots of one leader only", () => {
    const clock = new SlotClock();
    expect(clock.now(startNs)).toBeNull();
    for (let i = 0n; i < 11n; i++) clock.noteShreds(firstSlot + i, startNs + i * 300n * msNs);
    expect(clock.now(startNs + 4n * second)).toBeNull();
    expect(clock.ceiling(startNs + 4n * second)).toBeNull();
    expect(clock.timeOf(firstSlot)).toBeNull();
    expect(clock.skipShare()).toBeNull();
    clock.noteShreds(firstSlot + 11n, startNs + 11n * 300n * msNs);
    expect(clock.now(startNs + 12n * 300n * msNs)).toEqual({
      slot: firstSlot + 12n,
      source: "shreds",
      ageNs: 300n * msNs,
      slotNs: 300n * msNs,
    });
  });

  it("ignores a burst", () => {
    const clock = new SlotClock();
    for (let i = 0n; i < 500n; i++) clock.noteShreds(firstSlot + i, startNs + i * 10_000n);
    expect(clock.now(startNs)).toBeNull();
  });

  it("fits no line to arrivals that are not linear, or before the last arrival fits", () => {
    const scattered = new SlotClock();
    const early = new SlotClock();
    const at = (i: number) => startNs + BigInt(i) * 300n * msNs;
    // Every third is four slots late.
    for (let i = 0; i < 12; i++) {
      const late = i % 3 === 1 ? 800n : 0n;
      scattered.noteShreds(firstSlot + BigInt(i), startNs + (BigInt(i) * 200n + late) * msNs);
    }
    expect(scattered.now(at(12))).toBeNull();
    for (let i = 0; i < 11; i++) early.noteShreds(firstSlot + BigInt(i), at(i));
    early.noteShreds(firstSlot + 15n, at(10));
    expect(early.now(at(11))).toBeNull();
    early.noteShreds(firstSlot + 11n, at(11));
    expect(early.slotAt(at(11))).toBe(firstSlot + 11n);
  });

  it("uses the earlier of two reports of one slot, in any order", () => {
    fc.assert(
      fc.property(base, fc.integer({ min: 1, max: 6 }), (options, distance) => {
        const slots = new SimulatedSlots({ ...options, slots: 300 });
        const ordered = new SlotClock();
        const shuffled = new SlotClock();
        const seen = [...slots.seen];
        for (const { slot, timeNs } of seen) ordered.noteShreds(slot, timeNs);
        // Reports of several workers: slightly late, and repeated.
        for (let i = 0; i < seen.length; i += distance) {
          for (const { slot, timeNs } of seen.slice(i, i + distance).toReversed()) {
            shuffled.noteShreds(slot, timeNs + 5n * msNs);
            shuffled.noteShreds(slot, timeNs);
          }
        }
        const timeNs = slots.timeOf(300);
        const slotOf = (clock: SlotClock) => Number(clock.slotAt(timeNs) ?? 0n);
        expect(Math.abs(slotOf(shuffled) - slotOf(ordered))).toBeLessThanOrEqual(1);
      }),
      { numRuns: 10, seed },
    );
  });
});

describe("a changing network", () => {
  it.each([
    [0.75, 1, 8],
    [1, 1.34, 10],
    [0.5, 0.75, 15],
    [1.34, 2, 60],
  ])("follows slots of %f to %f of the duration, without excluding one", (least, most, bound) => {
    const factor = fc.double({ min: least, max: most, noNaN: true });
    fc.assert(
      fc.property(base, factor, (options, change) => {
        const later = { laterSlotMs: options.slotMs * change, changeAt: 200 };
        const readings = run(new SimulatedSlots({ ...options, ...later, slots: 420 }), 100);
        expect(worst(readings)).toBeLessThanOrEqual(bound);
        for (const { margin } of readings) expect(margin ?? 0).toBeGreaterThanOrEqual(0);
        expect(worst(readings.filter(({ place }) => place >= 340))).toBeLessThanOrEqual(1);
      }),
      { numRuns: 10, seed },
    );
  });

  it.each([
    [650, 400],
    [700, 400],
    [650, 250],
    [1000, 400],
  ])("excludes no slot when slots of %i ms catch up to %i ms", (slotMs, laterSlotMs) => {
    const options = fc.record({
      seed: fc.integer({ min: 0 }),
      skipShare: fc.double({ min: 0, max: 0.1, noNaN: true }),
      jitterMs: fc.integer({ min: 0, max: 120 }),
    });
    fc.assert(
      fc.property(options, (network) => {
        const slots = { slotMs, laterSlotMs, changeAt: 200, slots: 420 };
        for (const { margin } of run(new SimulatedSlots({ ...network, ...slots }), 100)) {
          expect(margin ?? 0).toBeGreaterThanOrEqual(0);
        }
      }),
      { numRuns: 10, seed },
    );
  });

  it("excludes no slot of a burst after a stall", () => {
    const clock = new SlotClock();
    const at = (ms: number) => startNs + BigInt(ms) * msNs;
    for (let i = 0; i < 100; i++) clock.noteShreds(firstSlot + BigInt(i), at(i * 650));
    // Twelve seconds without a slot; then the chain makes up for the slots of 400 ms at once.
    const afterMs = 99 * 650 + 12_000;
    for (let i = 100; i < 130; i++) {
      const slot = firstSlot + BigInt(i);
      expect((clock.ceiling(at(afterMs + i)) ?? slot) >= slot).toBe(true);
      clock.noteShreds(slot, at(afterMs + i));
    }
  });

  it("continues through an outage of minutes", () => {
    fc.assert(
      fc.property(base, (options) => {
        const loss = [200, 1000] as const;
        const readings = run(new SimulatedSlots({ ...options, loss, slots: 1100 }), 150);
        // A duration with an error of 1 % after 800 slots.
        expect(worst(readings)).toBeLessThanOrEqual(10);
        expect(worst(readings.filter(({ place }) => place >= 1060))).toBeLessThanOrEqual(1);
        for (const { place, margin } of readings) {
          const silentMs = (place - 200) * options.slotMs;
          if (silentMs > 35_000 && place < 999) expect(margin).toBeNull();
        }
      }),
      { numRuns: 10, seed },
    );
  });

  it("finds the slot again if the duration changed during the outage", () => {
    const later = fc.integer({ min: 150, max: 450 });
    fc.assert(
      fc.property(base, later, (options, laterSlotMs) => {
        const network: Network = {
          ...options,
          laterSlotMs,
          changeAt: 300,
          loss: [200, 1000],
          slots: 1200,
        };
        const readings = run(new SimulatedSlots(network), 1080);
        expect(worst(readings)).toBeLessThanOrEqual(2);
        checkMargin(readings, nearSlots - 2, nearSlots + 6);
      }),
      { numRuns: 14, seed },
    );
  });

  it.each([-3600, -20, -7, 7, 20, 3600])("follows a clock that is set by %i s", (stepSeconds) => {
    const slots = new SimulatedSlots({
      seed: 5,
      slotMs: 300,
      skipShare: 0.1,
      jitterMs: 60,
      slots: 500,
    });
    const clock = new SlotClock();
    const stepNs = BigInt(stepSeconds) * second;
    let lastNs = 0n;
    for (const { slot, timeNs } of slots.seen) {
      lastNs = slot < firstSlot + 300n ? timeNs : timeNs + stepNs;
      clock.noteShreds(slot, lastNs);
      if (slot < firstSlot + 450n) continue;
      const error = Number(clock.slotAt(lastNs) ?? 0n) - Number(slot);
      expect(Math.abs(error)).toBeLessThanOrEqual(1);
    }
  });
});

describe("a silent feed", () => {
  const at = (i: number) => startNs + BigInt(i) * 300n * msNs;
  const steadyClock = (): SlotClock => {
    const clock = new SlotClock();
    for (let i = 0; i < 100; i++) clock.noteShreds(firstSlot + BigInt(i), at(i));
    return clock;
  };

  it("finds a clock that was set back by the 12th slot", () => {
    const clock = steadyClock();
    const backNs = 8n * second;
    for (let i = 100; i < 112; i++) clock.noteShreds(firstSlot + BigInt(i), at(i) - backNs);
    expect(clock.slotAt(at(112) - backNs)).toBe(firstSlot + 112n);
  });

  it("is not taken back by a recording of old slots for 30 s", () => {
    const clock = steadyClock();
    for (let i = 120; i < 198; i++) {
      clock.noteShreds(firstSlot - 1000n + BigInt(i), at(i));
      expect(clock.slotAt(at(i))).toBe(firstSlot + BigInt(i));
    }
    for (let i = 198; i < 220; i++) clock.noteShreds(firstSlot - 1000n + BigInt(i), at(i));
    expect(clock.slotAt(at(220))).toBe(firstSlot - 1000n + 220n);
  });
});

describe("a leader that sends its slots too early", () => {
  const hostile = fc.record({
    hostileShare: fc.double({ min: 0.01, max: 0.04, noNaN: true }),
    aheadSlots: fc.constantFrom(8, 16, 64, 128, 5000),
  });

  it("moves neither the current slot nor the ceiling", () => {
    fc.assert(
      fc.property(base, hostile, (options, attack) => {
        const network: Network = { ...options, ...attack, slots: 800 };
        const readings = run(
          new SimulatedSlots({ ...network, skipShare: options.skipShare / 2 }),
          200,
        );
        // A leader with two consecutive windows moves nothing (below); the third adds a few slots.
        expect(worst(readings)).toBeLessThanOrEqual(8);
        checkMargin(readings, nearSlots - 2, nearSlots + 10);
        const exact = readings.filter(({ error }) => Math.abs(error ?? Infinity) <= 1);
        expect(exact.length / readings.length).toBeGreaterThan(0.95);
      }),
      { numRuns: 16, seed },
    );
  });

  it("moves nothing with two consecutive windows, anywhere within the 16 slots", () => {
    for (let early = 1; early <= nearSlots; early++) {
      const clock = new SlotClock();
      const timeOf = (place: number) => startNs + BigInt(place) * 200n * msNs;
      for (let place = 0; place < 140; place++) {
        for (let own = 100; own < 108; own++) {
          if (own - early === place) clock.noteShreds(firstSlot + BigInt(own), timeOf(place));
        }
        if (place < 100 || place >= 108) clock.noteShreds(firstSlot + BigInt(place), timeOf(place));
        if (place < 60) continue;
        const slot = Number(clock.slotAt(timeOf(place)) ?? 0n) - Number(firstSlot);
        expect(Math.abs(slot - place)).toBeLessThanOrEqual(1);
        const margin = Number(clock.ceiling(timeOf(place)) ?? 0n) - Number(firstSlot) - place;
        expect(margin).toBeLessThanOrEqual(nearSlots + 1);
      }
    }
  });

  it("does not move the clock away while only its shreds arrive", () => {
    const clock = new SlotClock();
    const at = (place: number) => startNs + BigInt(place) * 200n * msNs;
    for (let place = 0; place < 100; place++)
      clock.noteShreds(firstSlot + BigInt(place), at(place));
    let next = 112;
    for (let place = 101; place < 900; place++) {
      const now = Number((clock.slotAt(at(place)) ?? 0n) - firstSlot);
      expect(Math.abs(now - place)).toBeLessThanOrEqual(1);
      // The leader has every fourth window, and sends each slot as early as it is accepted.
      for (; next <= now + nearSlots - 1; next += next % 16 === 3 ? 13 : 1) {
        clock.noteShreds(firstSlot + BigInt(next), at(place));
      }
    }
  });

  it("moves nothing while only its shreds arrive for minutes", () => {
    fc.assert(
      fc.property(base, hostile, (options, attack) => {
        const network: Network = { ...options, ...attack, loss: [250, 1000], slots: 1200 };
        const readings = run(new SimulatedSlots(network), 200);
        expect(worst(readings.filter(({ place }) => place < 1000))).toBeLessThanOrEqual(20);
        expect(worst(readings.filter(({ place }) => place >= 1100))).toBeLessThanOrEqual(2);
      }),
      { numRuns: 14, seed },
    );
  });

  it("moves nothing with a flood of ten thousand slots, even before the first line", () => {
    const slots = new SimulatedSlots({
      seed: 3,
      slotMs: 250,
      skipShare: 0.2,
      jitterMs: 80,
      slots: 300,
    });
    const clock = new SlotClock();
    let flooded = 0n;
    for (const { slot, timeNs } of slots.seen) {
      // Windows of four, every twentieth: a leader with 5 %.
      for (let i = 0; i < 40; i++, flooded++) {
        const own = (flooded / 4n) * 80n + (flooded % 4n);
        clock.noteShreds(firstSlot + 500n + own, timeNs);
      }
      clock.noteShreds(slot, timeNs);
      if (slot < firstSlot + 60n) continue;
      expect(Math.abs(Number(clock.slotAt(timeNs) ?? 0n) - Number(slot))).toBeLessThanOrEqual(1);
      expect(Number(clock.ceiling(timeNs) ?? 0n) - Number(slot)).toBeLessThanOrEqual(nearSlots + 1);
    }
  });

  it("may use impossible slot numbers", () => {
    const clock = new SlotClock();
    const slot = fc.bigInt({ min: -1n, max: 2n ** 64n });
    const time = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n });
    fc.assert(
      fc.property(slot, time, (s, t) => {
        clock.noteShreds(s, t);
        clock.noteRpc(s, t);
        clock.now(t);
        clock.timeOf(s);
        clock.ceiling(t);
        clock.skipped(s, s + 5n);
        clock.skipShare();
      }),
    );
  });
});

describe("skipped slots", () => {
  it("are the slots without a shred", () => {
    fc.assert(
      fc.property(base, (options) => {
        // More would create runs that look like an outage.
        const skipShare = options.skipShare / 2;
        const slots = new SimulatedSlots({ ...options, skipShare, slots: 600 });
        const clock = new SlotClock();
        run(slots, 0, clock);
        const from = firstSlot + 100n;
        const to = firstSlot + 550n;
        const actual = slots.skipped.filter((slot) => slot >= from && slot <= to);
        expect(clock.skipped(from, to)).toEqual(actual);
        const share = clock.skipShare();
        const settled = firstSlot + 600n - 8n;
        expect(share?.slots).toBeLessThanOrEqual(256);
        expect(share?.slots).toBeGreaterThan(240);
        const recent = slots.skipped.filter((slot) => slot >= settled - 256n && slot < settled);
        expect(Math.abs((share?.skipped ?? 0) - recent.length)).toBeLessThanOrEqual(8);
      }),
      { numRuns: 10, seed },
    );
  });

  it("exclude slots of an outage and early or late slots", () => {
    const clock = new SlotClock();
    const at = (i: bigint) => startNs + i * 300n * msNs;
    for (let i = 0n; i < 400n; i++) {
      if (i === 250n) clock.noteShreds(firstSlot + 300n, at(i)); // 50 slots early
      if (i === 330n) clock.noteShreds(firstSlot + 320n, at(i)); // ten late
      const isOutage = i >= 100n && i < 180n;
      if (!isOutage && ![200n, 201n, 300n, 320n].includes(i)) {
        clock.noteShreds(firstSlot + i, at(i));
      }
    }
    expect(clock.skipped(firstSlot, firstSlot + 399n)).toEqual([
      firstSlot + 200n,
      firstSlot + 201n,
    ]);
    expect(clock.skipShare()).toEqual({ skipped: 2, slots: 391 - 179 });
  });
});
