import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../src/core/seeded-random.ts";
import { leaderOf } from "../../src/leaders/schedule.ts";
import { Delivery, forge } from "../../src/sandbox/delivery.ts";
import { DemoFeed, type Player } from "../../src/sandbox/demo-feed.ts";
import { makeEntryBatch, tickBytes } from "../../src/sandbox/entries.ts";
import { ShredTraffic } from "../../src/sandbox/shred-traffic.ts";
import { type DataShred, parseShred } from "../../src/shred/parse-shred.ts";
import { ManualClock } from "../support/manual-clock.ts";

/** Reads a batch as a validator does: every length must fit, nothing may be left. */
function readBatch(bytes: Uint8Array): { ticks: number; transactions: number } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const u64 = () => {
    at += 8;
    return Number(view.getBigUint64(at - 8, true));
  };
  const u8 = () => view.getUint8(at++);
  const skip = (count: number) => {
    at += count;
  };
  const compact = () => {
    const low = u8();
    return low < 0x80 ? low : (low & 0x7f) | (u8() << 7);
  };
  let ticks = 0;
  let transactions = 0;
  for (let entries = u64(); entries > 0; entries--) {
    expect(u64()).toBeGreaterThan(0); // hashes
    skip(32);
    const count = u64();
    if (count === 0) ticks++;
    for (let i = 0; i < count; i++, transactions++) {
      skip(64 * compact() + 3);
      skip(32 * compact() + 32);
      for (let instructions = compact(); instructions > 0; instructions--) {
        u8();
        skip(compact());
        skip(compact());
      }
    }
  }
  expect(at).toBe(bytes.length);
  return { ticks, transactions };
}

describe("makeEntryBatch", () => {
  it("decodes to the last byte, and nearly fills its room", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1000, max: 62_000 }),
        fc.integer({ min: 1, max: 8 }),
        fc.nat(),
        (bytesMax, ticks, seed) => {
          const batch = makeEntryBatch(bytesMax, ticks, new SeededRandom(seed));
          const read = readBatch(batch);
          expect(read.ticks).toBe(ticks);
          expect(batch.length).toBeLessThanOrEqual(bytesMax);
          if (bytesMax > 8 + ticks * tickBytes + 600)
            expect(batch.length).toBeGreaterThan(bytesMax - 600);
        },
      ),
    );
  });
});

const options = {
  seed: 7,
  leaders: 3,
  firstSlot: 5000n,
  shredVersion: 42,
  fecSetsPerSlot: 5,
  slotNs: 100_000_000,
};

describe("ShredTraffic", () => {
  it("makes whole slots: sets of 64, numbered, marked at their end, within the slot's time", () => {
    const traffic = new ShredTraffic(options);
    for (const slotNumber of [5000n, 5001n, 5002n]) {
      const { slot, packets } = traffic.completeSlot();
      expect(slot).toBe(slotNumber);
      expect(packets.length).toBe(5 * 64);
      const data: DataShred[] = [];
      for (const { packet, timeNs } of packets) {
        const parsed = parseShred(packet);
        if (!parsed.ok) throw new Error(`refused: ${JSON.stringify(parsed)}`);
        expect(parsed.shred.slot).toBe(slotNumber);
        expect(parsed.shred.version).toBe(42);
        expect(timeNs).toBeLessThan(options.slotNs);
        if (parsed.shred.type === "data") data.push(parsed.shred);
      }
      expect(data.map(({ index }) => index)).toEqual(Array.from({ length: 160 }, (_, i) => i));
      expect(data.at(-1)?.lastInSlot).toBe(true);
      let batch: Uint8Array[] = [];
      for (const shred of data) {
        batch.push(shred.payload);
        if (!shred.dataComplete) continue;
        readBatch(Buffer.concat(batch));
        batch = [];
      }
      expect(batch).toEqual([]);
    }
  });

  it("is the same for a seed, and names a leader for every slot, four slots each", () => {
    const first = new ShredTraffic(options).completeSlot();
    expect(new ShredTraffic(options).completeSlot()).toEqual(first);
    const schedule = new ShredTraffic(options).schedule(4992n, 24);
    const leaders = Array.from({ length: 24 }, (_, i) =>
      schedule.keys.indexOf(leaderOf(schedule, 4992n + BigInt(i)) ?? new Uint8Array()),
    );
    expect(new Set(leaders)).toEqual(new Set([0, 1, 2]));
    expect(leaders.slice(0, 4).every((leader) => leader === leaders[0])).toBe(true);
    expect(leaders[4]).not.toBe(leaders[0]);
  });
});

describe("Delivery", () => {
  const slot = new ShredTraffic(options).completeSlot();
  const quiet = { delayNs: 1000, jitterNs: 0, loss: 0, forged: 0 };

  it("only delays when nothing else is asked", () => {
    const plan = new Delivery(quiet, 1).plan(slot);
    expect(plan.packets).toEqual(slot.packets.map(({ packet }) => packet));
    expect(plan.timesNs[0]).toBe(BigInt((slot.packets[0]?.timeNs ?? 0) + 1000));
  });

  it("loses, jitters and forges in the asked shares, in the order of time", () => {
    const delivery = new Delivery({ ...quiet, jitterNs: 500_000, loss: 0.2, forged: 0.3 }, 2);
    const plan = delivery.plan(slot);
    expect([...plan.timesNs]).toEqual([...plan.timesNs].toSorted((a, b) => Number(a - b)));
    const originals = new Set(slot.packets.map(({ packet }) => packet));
    const forged = plan.packets.filter((packet) => !originals.has(packet));
    expect(forged.length).toBeGreaterThan(60);
    expect(forged.length).toBeLessThan(130);
    expect(plan.packets.length - forged.length).toBeGreaterThan(220);
    expect(plan.packets.length - forged.length).toBeLessThan(290);
  });

  it("forges copies that differ", () => {
    const random = new SeededRandom(3);
    for (const { packet } of slot.packets.slice(0, 50)) {
      const before = new Uint8Array(packet); // slice of a Buffer would share its memory
      expect(Buffer.compare(forge(packet, random), before)).not.toBe(0);
      expect(Buffer.compare(packet, before)).toBe(0);
    }
  });
});

describe("DemoFeed", () => {
  class Recorder implements Player {
    lists: { packets: number; first: bigint }[] = [];
    queued = 0n;
    closed = false;
    enqueue(packets: readonly Uint8Array[], timesNs: BigUint64Array): void {
      // A slot comes as a few packets and the rest.
      const begun = this.lists.at(-1);
      if (begun && begun.packets < 320) begun.packets += packets.length;
      else this.lists.push({ packets: packets.length, first: timesNs[0] ?? 0n });
    }
    counts() {
      return { sent: 0n, failed: 0n, refused: 0n, lateMaxNs: 0n, queued: this.queued };
    }
    close(): void {
      this.closed = true;
    }
  }

  it("hands over one slot per slot time to every source, and none while one still plays", async () => {
    const clock = new ManualClock();
    const players = [new Recorder(), new Recorder()];
    const feed = new DemoFeed({
      traffic: new ShredTraffic(options),
      sources: players.map((player, i) => ({
        name: `s${i}`,
        profile: { delayNs: 0, jitterNs: 0, loss: 0, forged: 0 },
        player,
      })),
      clock,
      slotNs: options.slotNs,
      seed: 1,
    });
    const ticking = clock.every(5, () => feed.tick());
    await clock.advance(1000);
    expect(players.map(({ lists }) => lists.length)).toEqual([11, 11]);
    expect(players[0]?.lists.every(({ packets }) => packets === 320)).toBe(true);
    // Handed over ahead of the slot's start, by what was left until then.
    expect(players[0]?.lists.every(({ first }) => first <= 20_000_000n)).toBe(true);

    const [first, second] = players;
    if (first) first.queued = 5n;
    await clock.advance(1000);
    expect(first?.lists.length).toBe(11);
    expect(second?.lists.length).toBeGreaterThanOrEqual(13);
    if (first) first.queued = 0n;
    await clock.advance(2000);
    expect(first?.lists.length).toBeGreaterThanOrEqual(20);
    ticking.cancel();
    feed.close();
    expect(players.every(({ closed }) => closed)).toBe(true);
  });
});
