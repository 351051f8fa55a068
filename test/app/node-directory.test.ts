import { describe, expect, it } from "vitest";
import { NodeDirectory } from "../../src/app/node-directory.ts";
import { type NodeSettings, writeNodeSettings } from "../../src/app/node-settings.ts";
import type { StoredNode } from "../../src/platform/store/tables/node-store.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";

const settings: NodeSettings = {
  tiers: [["tier-1", 200_000_000]],
  regions: ["frankfurt", "new-york"],
  region: "frankfurt",
  shredAddresses: ["A"],
  historyHours: 48,
};

/** A shared database, in memory, and the locks of the nodes that run. */
class SharedNodes {
  readonly clock = new ManualClock();
  readonly rows = new Map<string, string>();
  readonly running = new Set<string>();
  readonly lines: string[] = [];
  readonly #listeners = new Set<() => void>();
  isAway = false;
  /** How far the nodes' clock is ahead of the database's. */
  aheadMs = 0;

  async open(node: string, changes: Partial<NodeSettings> = {}): Promise<NodeDirectory> {
    this.running.add(`node ${node}`);
    const log = (text: unknown) => void this.lines.push(`${node}: ${String(text)}`);
    return NodeDirectory.open(
      {
        store: {
          put: async ({ name, settings: text }: StoredNode) => {
            if (this.isAway) throw new Error("the database is away");
            this.rows.set(name, text);
            for (const listener of this.#listeners) listener();
          },
          all: async () => {
            if (this.isAway) throw new Error("the database is away");
            return [...this.rows].map(([name, text]) => ({ name, settings: text }));
          },
          databaseTimeMs: async () => Number(this.clock.nowNs() / 1_000_000n) - this.aheadMs,
          onForeignChange: (listener) => {
            this.#listeners.add(listener);
            return () => void this.#listeners.delete(listener);
          },
        },
        locks: {
          tryLock: async (name) =>
            this.running.has(name) ? null : { release: () => Promise.resolve() },
        },
        node,
        clock: this.clock,
        log: { info: log, warn: log },
      },
      { ...settings, ...changes },
    );
  }
}

describe("the node directory", () => {
  it("reports a clock that differs from the database's, once, until it agrees again", async () => {
    const shared = new SharedNodes();
    shared.aheadMs = 300_000;
    const fra = await shared.open("fra");
    const text = "the clock of this node is 300.0 s ahead of the clock of the database";
    expect(fra.differences.join()).toContain(text);
    for (const aheadMs of [300_040, 299_960, 300_100]) {
      shared.aheadMs = aheadMs;
      await fra.refresh();
    }
    expect(shared.lines.filter((line) => line.includes("the clock of this node"))).toHaveLength(1);
    shared.aheadMs = -5000;
    await fra.refresh();
    expect(fra.differences.join()).toContain("5.0 s behind");
    shared.aheadMs = 20;
    await fra.refresh();
    expect(fra.differences).toEqual([]);
    await fra.close();
  });

  it("offers a new address only when every running node has it", async () => {
    const shared = new SharedNodes();
    const fra = await shared.open("fra");
    const nyc = await shared.open("nyc", { region: "new-york" });
    await shared.clock.advance(1);
    const offered = () => [fra, nyc].map((node) => [node.isOffered("A"), node.isOffered("B")]);
    nyc.replace({ ...settings, region: "new-york", shredAddresses: ["A", "B"] });
    await shared.clock.advance(1);
    expect(offered()[1]).toEqual([true, false]);
    // A tip to it counts at once, wherever its registration is decided.
    expect(fra.knownShredAddresses()).toEqual(["A", "B"]);
    expect(nyc.differences.join()).toContain(
      "tips.shredAddresses differs from node fra: only this",
    );
    fra.replace({ ...settings, shredAddresses: ["A", "B"] });
    await shared.clock.advance(1);
    expect(offered()).toEqual([
      [true, true],
      [true, true],
    ]);
    expect([fra.differences, nyc.differences]).toEqual([[], []]);
    expect(shared.lines.at(-1)).toContain("all running nodes are configured alike");
    for (const node of [fra, nyc]) await node.close();
    expect(shared.clock.pending).toBe(0);
  });

  it("names a region without a running node", async () => {
    const shared = new SharedNodes();
    const nyc = await shared.open("nyc", { region: "new-york" });
    const fra = await shared.open("fra");
    expect(["frankfurt", "new-york"].map((one) => fra.regionProblem(one))).toEqual([null, null]);
    expect(["frankfurt", "new-york"].map((one) => fra.isServedElsewhere(one))).toEqual([
      false,
      true,
    ]);
    shared.running.delete("node nyc");
    await nyc.close();
    await fra.refresh();
    expect(fra.isServedElsewhere("new-york")).toBe(false);
    expect(fra.regionProblem("new-york")).toBe("no node of region new-york is running");
    expect(fra.regionProblem("frankfurt")).toBeNull();
    await fra.close();
  });

  it("does not wait for a node that has stopped, but still counts tips to its addresses", async () => {
    const shared = new SharedNodes();
    await (await shared.open("nyc", { region: "new-york", shredAddresses: ["C"] })).close();
    const fra = await shared.open("fra");
    expect([fra.isOffered("A"), fra.differences.length]).toEqual([false, 1]);
    shared.running.delete("node nyc");
    await shared.clock.advance(5_000);
    expect([fra.isOffered("A"), fra.differences]).toEqual([true, []]);
    expect(fra.knownShredAddresses()).toEqual(["C"]);
    await fra.close();
  });

  it.each<[string, Partial<NodeSettings>, string]>([
    ["thresholds", { tiers: [["tier-1", 1]] }, "tiers.thresholdLamports differs from node fra"],
    ["the same region", { region: "frankfurt" }, "customers receive each shred twice"],
    ["regions", { regions: ["new-york"] }, "delivery.regions differs from node fra"],
  ])("refuses a start and a reload with other %s", async (_, changes, message) => {
    const shared = new SharedNodes();
    const fra = await shared.open("fra");
    const wanted = { ...settings, region: "new-york", ...changes };
    await expect(shared.open("nyc", wanted)).rejects.toMatchObject({
      reason: "config_invalid",
      message: expect.stringContaining(message),
    });
    expect([...shared.rows.keys()]).toEqual(["fra"]); // a refused node writes nothing
    shared.running.delete("node nyc");
    const nyc = await shared.open("nyc", { region: "new-york" });
    expect(() => nyc.check(wanted)).toThrow(message);
    shared.running.delete("node fra");
    await shared.clock.advance(5_000);
    nyc.check(wanted); // the other node has stopped
    for (const node of [fra, nyc]) await node.close();
  });

  it("reads again after a change during a read", async () => {
    const shared = new SharedNodes();
    const fra = await shared.open("fra");
    shared.running.add("node nyc");
    const reading = fra.refresh();
    shared.rows.set("nyc", writeNodeSettings({ ...settings, region: null, historyHours: 1 }));
    void fra.refresh(); // the notification of that change
    await reading;
    expect(fra.differences.length).toBe(1);
    await fra.close();
  });

  it("keeps its last knowledge while the database is away, and ignores unreadable rows", async () => {
    const shared = new SharedNodes();
    shared.rows.set("old", "not JSON");
    shared.rows.set("nyc", writeNodeSettings({ ...settings, region: null, historyHours: 1 }));
    shared.running.add("node nyc");
    const fra = await shared.open("fra");
    expect(fra.differences.length).toBe(1);
    shared.isAway = true;
    await shared.clock.advance(30_000);
    expect(fra.differences.length).toBe(1);
    expect(shared.lines.filter((line) => line.includes("could not compare")).length).toBe(1);
    await fra.close();
  });
});
