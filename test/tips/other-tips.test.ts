// One tip floor of several nodes: each reports the landings through all of them.

import { describe, expect, it } from "vitest";
import { TipStatistics } from "../../src/tips/tip-statistics.ts";
import type { LandedTip, LandedTipStore } from "../../src/tips/tip-types.ts";
import { MemoryStore } from "../shreds/registrations/memory-store.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";

const second = 1000;
const minute = 60 * second;

/** One node's view of the store: its reads are separate, and it can be disconnected. */
class StoreView implements LandedTipStore {
  readonly #store: MemoryStore;
  readonly readings: number[] = [];
  isAway = false;
  held: Promise<void> | null = null;

  constructor(store: MemoryStore) {
    this.#store = store;
  }

  async #openStore(): Promise<MemoryStore> {
    await this.held;
    if (this.isAway) throw new Error("the database is away");
    return this.#store;
  }

  async write(...given: Parameters<LandedTipStore["write"]>): Promise<void> {
    return (await this.#openStore()).write(...given);
  }

  async since(...given: Parameters<LandedTipStore["since"]>): Promise<LandedTip[]> {
    if (given[1] === null) this.readings.push(given[0]);
    return (await this.#openStore()).since(...given);
  }

  async forgetBefore(ms: number): Promise<void> {
    return (await this.#openStore()).forgetBefore(ms);
  }

  async keepSnapshot(...given: Parameters<LandedTipStore["keepSnapshot"]>): Promise<void> {
    return (await this.#openStore()).keepSnapshot(...given);
  }

  async lastSnapshot() {
    return (await this.#openStore()).lastSnapshot();
  }

  async keepQuarter(...given: Parameters<LandedTipStore["keepQuarter"]>): Promise<void> {
    return (await this.#openStore()).keepQuarter(...given);
  }

  async quarters(...given: Parameters<LandedTipStore["quarters"]>) {
    return (await this.#openStore()).quarters(...given);
  }
}

interface Node {
  readonly view: StoreView;
  readonly tips: TipStatistics;
  readonly notifications: number[];
}

class Nodes {
  readonly clock = new ManualClock();
  readonly store = new MemoryStore();
  readonly startMs = this.wallMs;

  get wallMs(): number {
    return Number(this.clock.nowNs() / 1_000_000n);
  }

  async open(isShared = true): Promise<Node> {
    const { clock } = this;
    const view = new StoreView(this.store);
    const log = { warn: () => {} };
    const tips = await TipStatistics.open({ clock, log, store: view, isShared });
    const notifications: number[] = [];
    // The early snapshot before the first quarter hour contains only the node's own tips.
    tips.onRefresh(() => {
      const atMs = this.wallMs - this.startMs;
      if (atMs % (15 * minute) === 0) notifications.push(atMs);
    });
    return { view, tips, notifications };
  }

  /** Advances the time to this long after the start of the quarter hour. */
  to(ms: number): Promise<void> {
    return this.clock.advance(this.startMs + ms - this.wallMs);
  }

  landed(node: Node, signature: string, lamports: bigint): void {
    node.tips.landed(signature, lamports, this.clock.nowNs());
  }
}

function numbersOf({ tips }: Node) {
  const { count, percentiles, emaP50, isStale } = tips.snapshot;
  return { count, percentiles, emaP50, isStale };
}

describe("the tip floor of several nodes", () => {
  it("is the same on each of them, and on time", async () => {
    const nodes = new Nodes();
    const [a, b] = [await nodes.open(), await nodes.open()];
    for (let at = 1; at <= 29; at++) {
      await nodes.to(at * 30 * second);
      nodes.landed(at % 3 === 0 ? a : b, `s${at}`, BigInt(at * 1000));
    }
    await nodes.to(15 * minute - 4 * second);
    nodes.landed(b, "late", 1n);
    await nodes.to(15 * minute);
    expect(numbersOf(a)).toMatchObject({
      count: 30,
      percentiles: { p50: 14_000n },
      isStale: false,
    });
    expect(numbersOf(b)).toEqual(numbersOf(a));
    expect([a.notifications, b.notifications]).toEqual([[15 * minute], [15 * minute]]);
    await nodes.to(45 * minute);
    expect(numbersOf(a)).toEqual(numbersOf(b));
    expect(a.notifications).toEqual([15 * minute, 30 * minute, 45 * minute]);
  });

  it("counts a transaction once that landed through two", async () => {
    const nodes = new Nodes();
    const [a, b] = [await nodes.open(), await nodes.open()];
    await nodes.to(second);
    nodes.landed(a, "both", 5n);
    await nodes.to(3 * second);
    nodes.landed(b, "both", 5n);
    nodes.landed(b, "one", 7n);
    await nodes.to(15 * minute - second);
    nodes.landed(a, "one", 7n); // known by then
    await nodes.to(15 * minute);
    expect([numbersOf(a).count, numbersOf(b).count]).toEqual([2, 2]);
    expect(nodes.store.tips.size).toBe(2);
  });

  it("contains landings through another node before this one started", async () => {
    const nodes = new Nodes();
    const a = await nodes.open();
    nodes.landed(a, "before", 5n);
    await nodes.to(5 * minute);
    const b = await nodes.open();
    expect(b.tips.size).toBe(1);
    await nodes.to(15 * minute - 1);
    expect(b.tips.size).toBe(1);
    await nodes.to(15 * minute);
    expect(b.tips.size).toBe(0);
  });

  it("excludes tips that failed shortly after their observation, on either node", async () => {
    const nodes = new Nodes();
    const [a, b] = [await nodes.open(), await nodes.open()];
    const seen = (signature: string) => a.tips.observed(signature, 9n, nodes.clock.nowNs());
    await nodes.to(14 * minute - 2 * second);
    seen("failed there"); // stored when the other one reads
    await nodes.to(14 * minute + second);
    a.tips.retracted("failed there");
    await nodes.to(15 * minute - 4 * second);
    seen("failed here");
    await nodes.to(15 * minute - 2500);
    a.tips.retracted("failed here"); // still stored when this one reads
    a.view.held = nodes.clock.sleep(900);
    await nodes.to(15 * minute);
    expect([a.notifications, b.notifications]).toEqual([[15 * minute], [15 * minute]]);
    expect(a.tips.size).toBe(0);
    expect(numbersOf(b).count).toBe(1); // it failed after the other one's last read
    await nodes.to(30 * minute);
    expect([numbersOf(a).count, b.tips.size]).toEqual([0, 0]);
  });

  it("is read twice per quarter hour, the second time only new tips", async () => {
    const nodes = new Nodes();
    const { view } = await nodes.open();
    view.readings.length = 0;
    await nodes.to(30 * minute);
    const ms = (ago: number, sinceAgo: number) => nodes.startMs + ago - sinceAgo;
    expect(view.readings).toEqual([
      ms(14 * minute, 15 * minute),
      ms(14 * minute, 30 * second),
      ms(29 * minute, 15 * minute),
      ms(29 * minute, 30 * second),
    ]);
  });

  it("of a disconnected node uses its own tips on time, and later all tips again", async () => {
    const nodes = new Nodes();
    const [a, b] = [await nodes.open(), await nodes.open()];
    await nodes.to(second);
    nodes.landed(a, "early", 5n);
    await nodes.to(13 * minute);
    b.view.isAway = true;
    nodes.landed(b, "own", 7n);
    await nodes.to(15 * minute);
    expect(numbersOf(b)).toMatchObject({ count: 1, percentiles: { p50: 7n } });
    expect(numbersOf(a)).toMatchObject({ count: 1, percentiles: { p50: 5n } });
    expect(b.notifications).toEqual([15 * minute]);
    await nodes.to(16 * minute);
    b.view.isAway = false;
    nodes.landed(a, "later", 9n);
    await nodes.to(30 * minute);
    expect([numbersOf(a).count, numbersOf(b).count]).toEqual([1, 1]);
    expect(numbersOf(b).percentiles.p50).toBe(9n);
  });

  it("does not wait for an unresponsive database", async () => {
    const nodes = new Nodes();
    const [a, b] = [await nodes.open(), await nodes.open()];
    await nodes.to(second);
    nodes.landed(b, "own", 7n);
    nodes.landed(a, "other", 5n);
    await nodes.to(13 * minute);
    b.view.held = nodes.clock.sleep(5 * minute);
    await nodes.to(15 * minute);
    expect(b.notifications).toEqual([15 * minute]);
    expect(numbersOf(b).count).toBe(1);
    await nodes.to(19 * minute);
    expect(b.tips.size).toBe(0);
  });

  it("contains recent tips even if the first read takes a minute", async () => {
    const nodes = new Nodes();
    const [a, b] = [await nodes.open(), await nodes.open()];
    await nodes.to(14 * minute - second);
    b.view.held = nodes.clock.sleep(59_500);
    await nodes.to(14 * minute + 50 * second);
    nodes.landed(a, "young", 5n);
    await nodes.to(15 * minute);
    expect(numbersOf(b).count).toBe(1);
  });

  it("is not read if the store is not shared, and leaves no timer", async () => {
    const nodes = new Nodes();
    const alone = await nodes.open(false);
    alone.view.readings.length = 0;
    const shared = await nodes.open();
    await nodes.to(15 * minute);
    expect(alone.view.readings).toEqual([]);
    await alone.tips.close();
    await shared.tips.close();
    expect(nodes.clock.pending).toBe(0);
  });
});
