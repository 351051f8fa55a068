// The slot clock with answers of a node, alone and against recordings of old shreds.

import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { SlotClock } from "../../../src/relay/leaders/slot-clock.ts";
import { firstSlot, startNs } from "./simulated-slots.ts";

const msNs = 1_000_000n;
const second = 1_000_000_000n;

describe("RPC", () => {
  it("provides the slot without shreds, at first without a duration", () => {
    const clock = new SlotClock();
    clock.noteRpc(firstSlot, startNs);
    expect(clock.now(startNs + 3n * second)).toEqual({
      slot: firstSlot + 6n,
      source: "rpc",
      ageNs: 3n * second,
      slotNs: null,
    });
    expect(clock.timeOf(firstSlot + 1n)).toBeNull();
    for (let i = 1n; i <= 10n; i++) {
      clock.noteRpc(firstSlot + i * 4n, startNs + i * second);
    }
    const now = clock.now(startNs + 20n * second);
    expect(now?.slotNs).toBe(250n * msNs);
    expect(now?.slot).toBe(firstSlot + 80n);
    expect(clock.timeOf(firstSlot + 100n)).toBe(startNs + 25n * second);
    expect(clock.ceiling(startNs + 20n * second)).toBe(firstSlot + 80n + 32n);
    expect(clock.ceiling(startNs + 60n * second)).toBeNull();
  });

  it.each([1n, 2n, 5n, 20n])(
    "continues if the node answers no more after %s s, with a duration or without",
    (answeringS) => {
      const clock = new SlotClock();
      const slotAfter = (ns: bigint): bigint => firstSlot + ns / (400n * msNs);
      for (let atS = 0n; atS < answeringS; atS++) {
        const behind = atS % 3n; // one of several nodes answers
        clock.noteRpc(slotAfter(atS * second) - behind, startNs + atS * second);
      }
      for (let afterS = answeringS; afterS < answeringS + 10n; afterS++) {
        const late = slotAfter(afterS * second) - (clock.slotAt(startNs + afterS * second) ?? 0n);
        expect(Number(late)).toBeLessThanOrEqual(6);
        expect(Number(late)).toBeGreaterThanOrEqual(-5);
      }
      const { slotNs } = clock.now(startNs + answeringS * second) ?? {};
      if (answeringS <= 2n) expect(slotNs).toBeNull();
    },
  );

  it("does not run away from a cluster that has stopped", () => {
    const clock = new SlotClock();
    for (let i = 0n; i < 60n; i++) {
      clock.noteRpc(firstSlot, startNs + i * second);
      expect(clock.slotAt(startNs + i * second + 900n * msNs)).toBeLessThanOrEqual(firstSlot + 2n);
    }
  });

  it("ranks after shreds, and before them after a long silence", () => {
    const clock = new SlotClock();
    for (let i = 0n; i < 100n; i++) {
      clock.noteShreds(firstSlot + i, startNs + i * 300n * msNs);
      clock.noteRpc(firstSlot + i - 1n, startNs + i * 300n * msNs);
    }
    const lastNs = startNs + 99n * 300n * msNs;
    for (let i = 1n; i <= 60n; i++) {
      // Slots of 200 ms from the time at which the feed became silent.
      clock.noteRpc(firstSlot + 98n + i * 5n, lastNs + i * second);
      // After about 20 s, the node is more than 32 slots ahead of the line.
      const source = clock.now(lastNs + i * second)?.source;
      if (i < 20n || i > 24n) expect(source).toBe(i < 20n ? "shreds" : "rpc");
    }
    const now = clock.now(lastNs + 60n * second);
    expect(Math.abs(Number(now?.slot ?? 0n) - Number(firstSlot + 398n))).toBeLessThanOrEqual(1);
    expect(now?.slotNs).toBe(200n * msNs);
  });

  it.each([0, 1, 3, 6])(
    "has the duration within a half behind an address with nodes that are up to %s slots behind",
    (behindMax) => {
      for (let seed = 1; seed <= 50; seed++) {
        const random = new SeededRandom(seed);
        const clock = new SlotClock();
        let dueS = 0n;
        for (let atS = 0n; atS < 60n; atS++) {
          const atNs = startNs + atS * second;
          const present = firstSlot + (atS * second) / (400n * msNs);
          if (atS >= dueS) {
            clock.noteRpc(present - BigInt(random.below(behindMax + 1)), atNs);
            dueS = atS + (clock.now(atNs)?.slotNs === null ? 1n : 5n);
          }
          const { slot, slotNs } = clock.now(atNs) ?? { slot: 0n, slotNs: null };
          expect(Math.abs(Number(slot - present))).toBeLessThanOrEqual(behindMax + 6);
          if (slotNs !== null)
            expect(Math.abs(Number(slotNs) / 400e6 - 1)).toBeLessThanOrEqual(0.5);
          else expect(atS).toBeLessThan(30n);
        }
      }
    },
  );

  it("has the duration of slots soon after a cluster that had stopped", () => {
    const clock = new SlotClock();
    for (let i = 0n; i < 20n; i++) clock.noteRpc(firstSlot, startNs + i * second);
    const beginNs = startNs + 20n * second;
    clock.noteRpc(firstSlot - 2n, beginNs); // of a node that lags
    const slotAfter = (ns: bigint): bigint => firstSlot + ns / (400n * msNs);
    // Each second until there is a duration, and seldom then.
    for (const afterS of [1n, 2n, 3n, 4n, 5n, 10n, 15n, 20n]) {
      const afterNs = afterS * second;
      clock.noteRpc(slotAfter(afterNs), beginNs + afterNs);
      if (afterS < 5n) continue;
      const laterNs = afterNs + 4n * second;
      const now = clock.now(beginNs + laterNs);
      expect(Math.abs(Number((now?.slot ?? 0n) - slotAfter(laterNs)))).toBeLessThanOrEqual(2);
    }
  });

  it("has it soon after a long stop as well, if many slots are skipped first", () => {
    const clock = new SlotClock();
    for (let i = 0n; i < 700n; i++) clock.noteRpc(firstSlot, startNs + i * second);
    const beginNs = startNs + 700n * second;
    const slotAfter = (ns: bigint): bigint => firstSlot + 12n + ns / (400n * msNs);
    for (const afterS of [0n, 5n, 6n])
      clock.noteRpc(slotAfter(afterS * second), beginNs + afterS * second);
    const now = clock.now(beginNs + 9n * second);
    expect(Math.abs(Number((now?.slot ?? 0n) - slotAfter(9n * second)))).toBeLessThanOrEqual(2);
  });

  it("keeps the duration of slots while a node alone has stopped", () => {
    const clock = new SlotClock();
    const slotAfter = (ns: bigint): bigint => firstSlot + ns / (400n * msNs);
    for (let i = 0n; i < 16n; i++) {
      const afterNs = i * 5n * second;
      clock.noteRpc(slotAfter(afterNs), startNs + afterNs);
    }
    const stoppedNs = 75n * second;
    for (const afterS of [80n, 85n, 90n])
      clock.noteRpc(slotAfter(stoppedNs), startNs + afterS * second);
    clock.noteRpc(slotAfter(95n * second), startNs + 95n * second);
    const slotNs = Number(clock.now(startNs + 99n * second)?.slotNs);
    expect(slotNs / 400e6).toBeCloseTo(1, 1);
  });

  it("ends a recording of old slots at its first answer, and lets 12 arrivals set the clock", () => {
    const clock = new SlotClock();
    const at = (i: bigint) => startNs + i * 300n * msNs;
    // A recording of old slots, then the current ones in addition.
    for (let i = 0n; i < 100n; i++) clock.noteShreds(firstSlot + i, at(i));
    const ahead = 5_000n;
    clock.noteRpc(firstSlot + ahead + 98n, at(100n));
    expect(clock.now(at(100n))).toMatchObject({ slot: firstSlot + ahead + 98n, source: "rpc" });
    expect(clock.ceiling(at(100n))).toBe(firstSlot + ahead + 98n + 32n);
    expect(clock.isConfirmed(at(100n))).toBe(false);
    for (let i = 100n; i < 112n; i++) {
      clock.noteShreds(firstSlot + i, at(i));
      clock.noteShreds(firstSlot + ahead + i, at(i));
    }
    expect(clock.slotAt(at(112n))).toBe(firstSlot + ahead + 112n);
    expect(clock.isConfirmed(at(112n))).toBe(true);
  });

  it.each([40n, 400n])(
    "takes no line from a recording replayed at %s ms per slot, before or after its first answer",
    (paceMs) => {
      for (const replayedBefore of [0n, 60n]) {
        const clock = new SlotClock();
        const old = firstSlot - 100_000n;
        for (let i = 0n; i < 1500n; i++) {
          const timeNs = startNs + i * paceMs * msNs;
          const current = firstSlot + (i * paceMs) / 400n;
          clock.noteShreds(old + i, timeNs);
          if (i < replayedBefore) continue;
          if ((i * paceMs) % 4800n === 0n || i === replayedBefore) clock.noteRpc(current, timeNs);
          const distance = Number((clock.slotAt(timeNs) ?? 0n) - current);
          expect(Math.abs(distance)).toBeLessThanOrEqual(13); // an answer is up to 5 s old
        }
      }
    },
  );

  it("yields to shreds that are ahead of it, because nodes fall behind or stop", () => {
    const clock = new SlotClock();
    const at = (i: bigint) => startNs + i * 400n * msNs;
    for (let i = 0n; i < 100n; i++) {
      if (i % 12n === 0n) clock.noteRpc(firstSlot, at(i));
      clock.noteShreds(firstSlot + 1000n + i, at(i));
    }
    expect(clock.now(at(99n))).toMatchObject({ slot: firstSlot + 1099n, source: "shreds" });
    expect(clock.isConfirmed(at(99n))).toBe(false);
  });

  it("makes the change from a recording to the current slot faster, but is not required for it", () => {
    const clock = new SlotClock();
    const at = (i: bigint) => startNs + i * 300n * msNs;
    const ahead = 5_000n;
    for (let i = 0n; i < 60n; i++) clock.noteShreds(firstSlot + i, at(i));
    for (let i = 60n; i < 97n; i++) {
      clock.noteShreds(firstSlot + i, at(i));
      clock.noteShreds(firstSlot + ahead + i, at(i));
    }
    expect(clock.slotAt(at(97n))).toBe(firstSlot + 97n);
    clock.noteShreds(firstSlot + ahead + 97n, at(97n));
    expect(clock.slotAt(at(97n))).toBe(firstSlot + ahead + 97n);
    // And the recording does not move it back.
    for (let i = 98n; i < 300n; i++) {
      clock.noteShreds(firstSlot + i, at(i));
      clock.noteShreds(firstSlot + ahead + i, at(i));
    }
    expect(clock.slotAt(at(300n))).toBe(firstSlot + ahead + 300n);
  });
});
