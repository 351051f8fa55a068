import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { defaultPacketsPerSecond, gapMaxNs, Pacer } from "../../../src/tools/replay/pacer.ts";
import { makeCopies, type TimedPacket } from "../../../src/tools/replay/packet-copies.ts";
import {
  windowNsMax,
  windowPacketsMax,
  windowsOf,
} from "../../../src/tools/replay/packet-windows.ts";

function numbered(count: number, gapNs = 1000): TimedPacket[] {
  return Array.from({ length: count }, (_, i) => ({
    packet: Buffer.of(i & 0xff, i >> 8, 7, 7),
    timeNs: i * gapNs,
  }));
}

const numberOf = ({ packet }: TimedPacket) => (packet[0] ?? 0) + ((packet[1] ?? 0) << 8);
const counts = () => ({ dropped: 0, corrupted: 0 });

describe("makeCopies", () => {
  it("sends every packet as often as requested, in any order", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 200 }),
        fc.integer({ min: 1, max: 5 }),
        fc.boolean(),
        fc.nat(),
        (length, copies, shuffle, seed) => {
          const created = makeCopies(
            numbered(length),
            { copies, shuffle, drop: 0, corrupt: 0 },
            new SeededRandom(seed),
            counts(),
          );
          const sent = created.map(numberOf).toSorted((a, b) => a - b);
          expect(sent).toEqual(
            Array.from({ length: length * copies }, (_, i) => Math.floor(i / copies)),
          );
          for (let i = 1; i < created.length; i++)
            expect(created[i]?.timeNs).toBeGreaterThanOrEqual(created[i - 1]?.timeNs ?? 0);
        },
      ),
    );
  });

  it("is deterministic for a seed and shuffles every copy differently", () => {
    const options = { copies: 2, shuffle: true, drop: 0.1, corrupt: 0.1 };
    const make = (seed: number) =>
      makeCopies(numbered(500), options, new SeededRandom(seed), counts());
    expect(make(7)).toEqual(make(7));
    expect(make(7)).not.toEqual(make(8));
    const orders = makeCopies(
      numbered(100),
      { ...options, drop: 0, corrupt: 0 },
      new SeededRandom(1),
      counts(),
    ).map(numberOf);
    expect(orders.filter((_, i) => i % 2 === 0)).not.toEqual(orders.filter((_, i) => i % 2 === 1));
  });

  it("counts dropped and altered copies and alters exactly one byte of a copy", () => {
    const window = numbered(2000);
    const seen = counts();
    const options = { copies: 1, shuffle: false, drop: 0.25, corrupt: 0.5 };
    const created = makeCopies(window, options, new SeededRandom(5), seen);
    expect(created.length).toBe(2000 - seen.dropped);
    expect(seen.dropped).toBeGreaterThan(400);
    const altered = created.filter(({ packet, timeNs }) =>
      packet.some((byte, i) => byte !== window[timeNs / 1000]?.packet[i]),
    );
    expect(altered.length).toBe(seen.corrupted);
    for (const { packet, timeNs } of altered) {
      const original = window[timeNs / 1000]?.packet ?? packet;
      expect(packet.filter((byte, i) => byte !== original[i]).length).toBe(1);
    }
    expect(window).toEqual(numbered(2000)); // the originals are untouched
    expect(
      makeCopies(
        [{ packet: new Uint8Array(), timeNs: 0 }],
        { ...options, drop: 0, corrupt: 1 },
        new SeededRandom(1),
        counts(),
      ).length,
    ).toBe(1);
  });
});

describe("Pacer", () => {
  it("preserves the gaps of the capture, scaled", () => {
    const pacer = new Pacer({ speed: 2 });
    expect([1000n, 3000n, 3000n, 9000n].map((stamp) => pacer.next(stamp))).toEqual([
      0, 1000, 1000, 4000,
    ]);
  });

  it("continues without delay after a backward clock step and between files", () => {
    const pacer = new Pacer({ speed: 1 });
    expect([5000n, 4000n, 4500n].map((stamp) => pacer.next(stamp))).toEqual([0, 0, 500]);
    pacer.nextFile();
    expect(pacer.next(900_000n)).toBe(500);
    expect(pacer.next(900_100n)).toBe(600);
  });

  it("shortens long gaps for any times and counts them", () => {
    const pacer = new Pacer({ speed: 2 });
    const stamps = [0n, gapMaxNs, 2n * gapMaxNs + 1n, 2n ** 63n, 2n ** 63n + 2n];
    const gap = Number(gapMaxNs) / 2;
    expect(stamps.map((stamp) => pacer.next(stamp))).toEqual([
      0,
      gap,
      2 * gap,
      3 * gap,
      3 * gap + 1,
    ]);
    expect(pacer.shortenedGaps).toBe(2);
  });

  it("spaces packets evenly at a rate and for captures without times", () => {
    const pacer = new Pacer({ packetsPerSecond: 1e6 });
    expect([null, 5n, 1_000_000_000n].map((stamp) => pacer.next(stamp))).toEqual([0, 1000, 2000]);
    const untimed = new Pacer({ speed: 1 });
    expect([untimed.next(null), untimed.next(null)]).toEqual([0, 1e9 / defaultPacketsPerSecond]);
  });
});

describe("windowsOf", () => {
  it("bounds windows by number and by time and loses no packets", () => {
    const many = [...windowsOf(numbered(windowPacketsMax * 2 + 10))];
    expect(many.map((window) => window.length)).toEqual([windowPacketsMax, windowPacketsMax, 10]);
    const slow = [...windowsOf(numbered(10, windowNsMax / 2))];
    expect(slow.flat()).toEqual(numbered(10, windowNsMax / 2));
    expect(Math.max(...slow.map((window) => window.length))).toBe(3);
    expect([...windowsOf([])]).toEqual([]);
  });

  it("yields the packets before an error, then the error", () => {
    const windows: number[] = [];
    expect(() => {
      function* broken() {
        yield* numbered(3);
        throw new Error("cut off");
      }
      for (const window of windowsOf(broken())) windows.push(window.length);
    }).toThrow("cut off");
    expect(windows).toEqual([3]);
  });
});
