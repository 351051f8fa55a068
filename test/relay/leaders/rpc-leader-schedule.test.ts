import { describe, expect, it } from "vitest";
import { createLogger } from "../../../src/core/log.ts";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import { joinEpochs, RpcLeaderSchedule } from "../../../src/relay/leaders/rpc-leader-schedule.ts";
import {
  coveredSlots,
  type LeaderSchedule,
  leaderOf,
} from "../../../src/relay/leaders/schedule.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";

const keys = [1, 2, 3].map((byte) => new Uint8Array(32).fill(byte + 1));
const identities = keys.map((key) => String(pubkeyOf(key)));

/** A cluster of three alternating leaders; its node knows the current and the next epoch. */
class Node {
  readonly host = "node.test";
  slot = 5600n;
  knowsNextEpoch = true;
  fails = false;
  requests = 0;
  readonly epochSlots: bigint;
  constructor(epochSlots: bigint) {
    this.epochSlots = epochSlots;
  }
  async epochInfo() {
    this.requests++;
    if (this.fails) throw new Error("no answer");
    const { epochSlots } = this;
    return {
      epoch: this.slot / epochSlots,
      absoluteSlot: this.slot,
      slotIndex: this.slot % epochSlots,
      slotsInEpoch: epochSlots,
    };
  }
  async leaderSchedule(slot: bigint) {
    const { epochSlots } = this;
    const epoch = slot / epochSlots;
    const newest = this.slot / epochSlots + (this.knowsNextEpoch ? 1n : 0n);
    if (epoch > newest) return null;
    const leaders = new Map(identities.map((identity) => [identity, [] as number[]]));
    for (let i = 0; i < Number(epochSlots); i++)
      leaders.get(identities[(i + Number(epoch)) % 3] ?? "")?.push(i);
    return leaders;
  }
}

function leaderAt(slot: bigint, epochSlots = 1000n): Uint8Array | undefined {
  return keys[Number(((slot % epochSlots) + slot / epochSlots) % 3n)];
}

function openLeaders(epochSlots = 1000n) {
  const clock = new ManualClock();
  const node = new Node(epochSlots);
  const lines: string[] = [];
  const published: LeaderSchedule[] = [];
  const leaders = new RpcLeaderSchedule({
    node,
    clock,
    log: createLogger({ stream: { write: (line) => void lines.push(line) } }),
    publish: (schedule) => void published.push(schedule),
  });
  return { clock, node, lines, published, leaders };
}

describe("RpcLeaderSchedule", () => {
  it("joins two epochs so that every slot has its leader", async () => {
    const { published, leaders } = openLeaders();
    await leaders.start();
    expect(published.map(coveredSlots)).toEqual([{ first: 5000n, last: 6999n }]);
    const [schedule] = published;
    for (const slot of [5000n, 5001n, 5999n, 6000n, 6999n])
      expect(schedule && leaderOf(schedule, slot)).toEqual(leaderAt(slot));
    leaders.stop();
  });

  it("continues without a gap between epochs, and retains the previous one while its shreds arrive", async () => {
    const { clock, node, published, leaders } = openLeaders();
    await leaders.start();
    for (; node.slot < 9000n; node.slot += 50n) {
      await clock.advance(20_000);
      const newest = published.at(-1);
      if (!newest) throw new Error("nothing published");
      const { first, last } = coveredSlots(newest);
      expect(first).toBeLessThanOrEqual(node.slot - 400n);
      expect(last).toBeGreaterThan(node.slot + 400n);
    }
    // Twice per epoch, not with every check: when it begins, and when the previous one has ended.
    expect(published.length).toBeLessThanOrEqual(8);
    leaders.stop();
    expect(clock.pending).toBe(0);
  });

  it.each([32n, 256n, 512n, 513n, 8192n])(
    "has a leader for every slot of the window with epochs of %s slots",
    async (epochSlots) => {
      const { clock, node, published, leaders } = openLeaders(epochSlots);
      await leaders.start();
      for (let step = 0; step < 400; step++) {
        node.slot += 5n; // 400 ms slots
        await clock.advance(2000);
        const schedule = published.at(-1);
        if (!schedule) throw new Error("nothing published");
        for (const slot of [node.slot - 500n, node.slot - 1n, node.slot, node.slot + 1n])
          expect(leaderOf(schedule, slot)).toEqual(leaderAt(slot, epochSlots));
      }
      leaders.stop();
    },
  );

  it("knows the first slot of each epoch", async () => {
    const { node, published, leaders } = openLeaders(32n);
    node.slot = 5000n;
    await leaders.start();
    const firsts = published[0]?.epochFirstSlots ?? [];
    expect(firsts).toEqual(firsts.map((_, i) => (firsts[0] ?? 0n) + 32n * BigInt(i)));
    expect(firsts.length).toBeGreaterThan(10);
    expect(firsts[0]).toBe(published[0]?.firstSlot);
    leaders.stop();
    const [b = "", a = ""] = identities;
    const spans = [a, b].map((identity, i) => ({
      firstSlot: 96n - 32n * BigInt(i),
      leaders: new Map([[identity, [0, 1]]]),
    }));
    expect(joinEpochs(spans).epochFirstSlots).toEqual([64n, 96n]);
  });

  it("loads the next epoch as soon as the shreds of the previous one have arrived", async () => {
    const { clock, node, published, leaders } = openLeaders(10_000n);
    node.slot = 20_100n;
    await leaders.start();
    node.slot = 20_511n;
    await clock.advance(20_000);
    expect(published.map((one) => one.epochFirstSlots)).toEqual([[10_000n, 20_000n]]);
    node.slot = 20_512n;
    await clock.advance(20_000);
    expect(published.at(-1)?.epochFirstSlots).toEqual([20_000n, 30_000n]);
    leaders.stop();
  });

  describe("RpcLeaderSchedule, while the epoch length changes", () => {
    // Like a new cluster: 32 slots, then twice as many each time; then shorter ones again.
    const lengths = [32, 64, 128, 256, 512, 1024, 2048, 600, 300, 600, 2000, 32, 32, 2000, 2000];
    const firsts = lengths.map((_, i) => BigInt(lengths.slice(0, i).reduce((a, b) => a + b, 0)));
    const end = (firsts.at(-1) ?? 0n) - 2000n;
    const at = (slot: bigint) => {
      const number = firsts.findLastIndex((first) => first <= slot);
      return { first: firsts[number] ?? 0n, length: lengths[number] ?? 0 };
    };
    /** A different order in each epoch. */
    const numberAt = (place: bigint, first: bigint) => Number((place + first) % 3n);

    function open() {
      const opened = openLeaders();
      const { node } = opened;
      node.epochInfo = async () => {
        const { first, length } = at(node.slot);
        const [absoluteSlot, slotIndex] = [node.slot, node.slot - first];
        return { epoch: 0n, absoluteSlot, slotIndex, slotsInEpoch: BigInt(length) };
      };
      node.leaderSchedule = async (slot) => {
        const { first, length } = at(slot);
        const leaders = new Map(identities.map((identity) => [identity, [] as number[]]));
        for (let i = 0; i < length; i++) {
          leaders.get(identities[numberAt(BigInt(i), first)] ?? "")?.push(i);
        }
        return leaders;
      };
      return opened;
    }

    function check(schedule: LeaderSchedule | undefined, present: bigint): void {
      for (const back of [511n, 100n, 1n, 0n, -1n, -100n]) {
        const slot = present - back;
        if (slot < 0n) continue;
        const { first } = at(slot);
        const leader = schedule && leaderOf(schedule, slot);
        const wanted = keys[numberAt(slot - first, first)];
        if (!leader || !wanted || Buffer.compare(leader, wanted) !== 0)
          throw new Error(`in slot ${present} another leader of ${slot}`);
      }
      expect(firsts).toEqual(expect.arrayContaining([...(schedule?.epochFirstSlots ?? [0])]));
    }

    it("has a leader for every slot", async () => {
      const { clock, node, published, leaders } = open();
      node.slot = 10n;
      await leaders.start();
      for (; node.slot < end; node.slot += 5n) {
        await clock.advance(2000);
        check(published.at(-1), node.slot);
      }
      leaders.stop();
    });

    it("has a leader from the start, at any slot", async () => {
      const { node, published, leaders } = open();
      for (node.slot = 0n; node.slot < end; node.slot += 90n) {
        await leaders.start();
        check(published.at(-1), node.slot);
      }
      leaders.stop();
    });
  });

  it("queries again if the next epoch is unknown", async () => {
    const { clock, node, published, leaders } = openLeaders();
    node.knowsNextEpoch = false;
    await leaders.start();
    expect(published.map(coveredSlots)).toEqual([{ first: 5000n, last: 5999n }]);
    node.knowsNextEpoch = true;
    await clock.advance(20_000);
    expect(published.map(coveredSlots).at(-1)).toEqual({ first: 5000n, last: 6999n });
    leaders.stop();
  });

  it("retains its schedule while the node is unreachable, and logs that without flooding", async () => {
    const { clock, node, published, lines, leaders } = openLeaders();
    node.fails = true;
    await leaders.start();
    expect(leaders.hasSchedule).toBe(false);
    expect(lines.join()).toContain("SHREDS ARE DROPPED UNTIL THEN: no answer");
    await clock.advance(30_000);
    expect(node.requests).toBeGreaterThan(10);
    expect(lines.length).toBeLessThan(4);
    node.fails = false;
    await clock.advance(5000);
    expect(published.length).toBe(1);
    expect(lines.at(-1)).toContain("responds again");
    leaders.stop();
  });

  it("publishes nothing after stop, and everything again after a new start", async () => {
    const { node, published, leaders } = openLeaders();
    const started = leaders.start();
    leaders.stop();
    await started;
    expect(published.length).toBe(0);
    await leaders.start();
    await leaders.start();
    expect(published.length).toBe(2);
    expect(node.requests).toBe(3);
    leaders.stop();
  });

  it("rejects overlapping epochs and invalid keys", () => {
    const span = { firstSlot: 10n, leaders: new Map([[identities[0] ?? "", [0, 1]]]) };
    const other = { firstSlot: 11n, leaders: new Map([[identities[1] ?? "", [0]]]) };
    expect(() => joinEpochs([span, other])).toThrow("two leaders");
    const bad = { firstSlot: 0n, leaders: new Map([["nobody", [0]]]) };
    expect(() => joinEpochs([bad])).toThrow("public key");
  });
});
