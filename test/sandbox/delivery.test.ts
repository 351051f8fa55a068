import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../src/core/seeded-random.ts";
import { Delivery, forge } from "../../src/sandbox/delivery.ts";

const packets = Array.from({ length: 320 }, (_, i) => ({
  packet: Buffer.alloc(1203, i),
  timeNs: i * 60_000,
}));
const quiet = { delayNs: 1000, jitterNs: 0, loss: 0, forged: 0 };

describe("Delivery", () => {
  it("only delays by default", () => {
    const plan = new Delivery(quiet, 1).plan(packets);
    expect(plan).toEqual(packets.map(({ packet, timeNs }) => ({ packet, timeNs: timeNs + 1000 })));
  });

  it("loses, jitters and forges the configured shares, in the order of time", () => {
    const delivery = new Delivery({ ...quiet, jitterNs: 500_000, loss: 0.2, forged: 0.3 }, 2);
    const plan = delivery.plan(packets);
    const times = plan.map(({ timeNs }) => timeNs);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    const originals = new Set<Uint8Array>(packets.map(({ packet }) => packet));
    const forged = plan.filter(({ packet }) => !originals.has(packet));
    expect(forged.length).toBeGreaterThan(60);
    expect(forged.length).toBeLessThan(130);
    expect(plan.length - forged.length).toBeGreaterThan(220);
    expect(plan.length - forged.length).toBeLessThan(290);
  });

  it("is repeatable for a seed, and accepts another profile at any time", () => {
    const profile = { ...quiet, jitterNs: 500_000, loss: 0.2, forged: 0.3 };
    const plan = new Delivery(profile, 5).plan(packets);
    expect(new Delivery(profile, 5).plan(packets)).toEqual(plan);
    expect(new Delivery(profile, 6).plan(packets)).not.toEqual(plan);
    const delivery = new Delivery(profile, 5);
    delivery.profile = { ...quiet, loss: 1 };
    expect(delivery.plan(packets)).toEqual([]);
  });

  it("forges copies that differ", () => {
    const random = new SeededRandom(3);
    for (const { packet } of packets.slice(0, 50)) {
      const before = new Uint8Array(packet); // slice of a Buffer would share its memory
      expect(Buffer.compare(forge(packet, random), before)).not.toBe(0);
      expect(Buffer.compare(packet, before)).toBe(0);
    }
  });
});
