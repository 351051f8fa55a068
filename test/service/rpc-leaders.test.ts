import { describe, expect, it } from "vitest";
import { createLogger } from "../../src/core/log.ts";
import { pubkeyOf } from "../../src/core/primitives.ts";
import { coveredSlots, type LeaderSchedule, leaderOf } from "../../src/leaders/schedule.ts";
import { joinEpochs, RpcLeaders } from "../../src/service/rpc-leaders.ts";
import { ManualClock } from "../support/manual-clock.ts";

const keys = [1, 2, 3].map((byte) => new Uint8Array(32).fill(byte + 1));
const identities = keys.map((key) => String(pubkeyOf(key)));

/** A cluster of three leaders in turn; its node knows the present and the next epoch. */
class Node {
  readonly host = "node.test";
  slot = 5600n;
  knowsNextEpoch = true;
  fails = false;
  asked = 0;
  readonly epochSlots: bigint;
  constructor(epochSlots: bigint) {
    this.epochSlots = epochSlots;
  }
  async epochInfo() {
    this.asked++;
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
  const leaders = new RpcLeaders({
    node,
    clock,
    log: createLogger({ stream: { write: (line) => void lines.push(line) } }),
    publish: (schedule) => void published.push(schedule),
  });
  return { clock, node, lines, published, leaders };
}

describe("RpcLeaders", () => {
  it("joins two epochs so that every slot has its leader", async () => {
    const { published, leaders } = openLeaders();
    await leaders.start();
    expect(published.map(coveredSlots)).toEqual([{ first: 5000n, last: 6999n }]);
    const [schedule] = published;
    for (const slot of [5000n, 5001n, 5999n, 6000n, 6999n])
      expect(schedule && leaderOf(schedule, slot)).toEqual(leaderAt(slot));
    leaders.stop();
  });

  it("goes on without a gap from epoch to epoch, keeping the one whose shreds are under way", async () => {
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
    // Twice per epoch, not with every look: when it begins, and when the one before has ended for good.
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

  it("asks again when the next epoch is not known yet", async () => {
    const { clock, node, published, leaders } = openLeaders();
    node.knowsNextEpoch = false;
    await leaders.start();
    expect(published.map(coveredSlots)).toEqual([{ first: 5000n, last: 5999n }]);
    node.knowsNextEpoch = true;
    await clock.advance(20_000);
    expect(published.map(coveredSlots).at(-1)).toEqual({ first: 5000n, last: 6999n });
    leaders.stop();
  });

  it("keeps what it has while the node is away, and says so without flooding the log", async () => {
    const { clock, node, published, lines, leaders } = openLeaders();
    node.fails = true;
    await leaders.start();
    expect(leaders.hasSchedule).toBe(false);
    expect(lines.join()).toContain("SHREDS ARE DROPPED UNTIL THEN: no answer");
    await clock.advance(30_000);
    expect(node.asked).toBeGreaterThan(10);
    expect(lines.length).toBeLessThan(4);
    node.fails = false;
    await clock.advance(5000);
    expect(published.length).toBe(1);
    expect(lines.at(-1)).toContain("answers again");
    leaders.stop();
  });

  it("publishes nothing after it was stopped, and everything again after a new start", async () => {
    const { node, published, leaders } = openLeaders();
    const started = leaders.start();
    leaders.stop();
    await started;
    expect(published.length).toBe(0);
    await leaders.start();
    await leaders.start();
    expect(published.length).toBe(2);
    expect(node.asked).toBe(3);
    leaders.stop();
  });

  it("refuses epochs that overlap and keys that are none", () => {
    const span = { firstSlot: 10n, leaders: new Map([[identities[0] ?? "", [0, 1]]]) };
    const other = { firstSlot: 11n, leaders: new Map([[identities[1] ?? "", [0]]]) };
    expect(() => joinEpochs([span, other])).toThrow("two leaders");
    const bad = { firstSlot: 0n, leaders: new Map([["nobody", [0]]]) };
    expect(() => joinEpochs([bad])).toThrow("public key");
  });
});
