import { describe, expect, it } from "vitest";
import type { TierCheckpoint, TierRules, TierStore } from "../../../src/shreds/tiers/types.ts";
import { Bench, day, hour, rules } from "./leader-tiers-bench.ts";
import { RestartableClock } from "./restartable-clock.ts";

describe("the tier engine over time", () => {
  it("counts a tip up to the last millisecond of the window, and keeps the tier up to that of the grace period", async () => {
    const bench = await new Bench().started();
    const startMs = bench.wallMs;
    bench.count(200n);
    expect(bench.notifications).toEqual([["a", "tier-1"]]);
    await bench.manual.advance(day - 1);
    expect(bench.accounting.view("a")).toEqual({
      tier: "tier-1",
      sumLamports: 200n,
      graceSinceMs: null,
      graceEndsMs: null,
    });
    await bench.manual.advance(1);
    expect(bench.accounting.view("a")).toEqual({
      tier: "tier-1",
      sumLamports: 0n,
      graceSinceMs: startMs + day,
      graceEndsMs: startMs + 2 * day,
    });
    await bench.manual.advance(day - 1);
    expect(bench.accounting.tierOf("a")).toBe("tier-1");
    await bench.manual.advance(1);
    expect(bench.accounting.tierOf("a")).toBeNull();
    expect(bench.notifications).toEqual([
      ["a", "tier-1"],
      ["a", null],
    ]);
    expect(bench.life.pending).toBe(0); // no pending operation remains
  });

  it("measures the age from the registration, whenever the tip counted", async () => {
    const bench = await new Bench().started();
    const startMs = bench.wallMs;
    bench.count(200n, { registeredMs: startMs - day + 1 });
    expect(bench.accounting.tierOf("a")).toBe("tier-1");
    bench.count(500n, { registeredMs: startMs - day, accountId: "b" });
    expect(bench.accounting.view("b")).toMatchObject({ tier: null, sumLamports: 0n });
    await bench.manual.advance(1);
    expect(bench.accounting.view("a").graceSinceMs).toBe(startMs + 1);
  });

  it("records exact times, even if it runs late", async () => {
    const bench = await new Bench().started();
    const startMs = bench.wallMs;
    bench.count(200n);
    await bench.manual.advance(hour);
    await bench.restart(10 * day);
    expect(bench.accounting.tierOf("a")).toBeNull();
    expect(bench.notifications).toEqual([]);
    expect(bench.kinds).toEqual([
      ["upgraded", startMs],
      ["grace_started", startMs + day],
      ["downgraded", startMs + 2 * day],
    ]);
  });

  it("applies changed thresholds from its start on, not from the last checkpoint", async () => {
    const bench = await new Bench().started();
    const startMs = bench.wallMs;
    bench.count(300n);
    bench.count(100n, { accountId: "b" });
    const changed = (lamports: bigint): TierRules => ({
      ...rules,
      tiers: [{ name: "tier-1", thresholdLamports: lamports }],
    });
    // The last checkpoint is 20 hours old when the service ends.
    await bench.manual.advance(20 * hour);
    await bench.restart(0, { rules: changed(400n) });
    expect(bench.accounting.view("a")).toMatchObject({
      tier: "tier-1",
      graceSinceMs: startMs + 20 * hour,
    });
    // The tips left under the threshold that was valid then, so "b" never reached a tier.
    await bench.restart(25 * hour, { rules: changed(50n) });
    expect(bench.accounting.tierOf("a")).toBeNull();
    expect(bench.accounting.tierOf("b")).toBeNull();
    expect(bench.kinds).toEqual([
      ["upgraded", startMs],
      ["grace_started", startMs + 20 * hour],
      ["downgraded", startMs + 44 * hour],
    ]);
  });

  it("applies changed thresholds again if it is killed before they are stored", async () => {
    const bench = await new Bench().started();
    const startMs = bench.wallMs;
    bench.count(300n);
    await bench.manual.advance(hour);
    const raised = { ...rules, tiers: [{ name: "tier-1", thresholdLamports: 400n }] };
    bench.store.faults.writes = true;
    await bench.restart(0, { rules: raised });
    expect(bench.accounting.view("a").graceSinceMs).toBe(startMs + hour);
    bench.store.faults.writes = false;
    await bench.restart(hour, { rules: raised });
    expect(bench.accounting.view("a").graceSinceMs).toBe(startMs + 2 * hour);
    expect(bench.kinds).toEqual([
      ["upgraded", startMs],
      ["grace_started", startMs + 2 * hour],
    ]);
  });

  it("notices within seconds that the wall clock was set forward", async () => {
    const bench = await new Bench().started();
    bench.count(200n);
    bench.life.set(3 * day);
    await bench.manual.advance(5000);
    expect(bench.accounting.tierOf("a")).toBeNull();
    expect(bench.kinds.map(([kind]) => kind)).toEqual(["upgraded", "grace_started", "downgraded"]);
  });

  it("is frozen while the wall clock is set back, and still counts tips", async () => {
    const bench = await new Bench().started();
    const startMs = bench.wallMs;
    bench.count(200n);
    bench.life.set(-hour);
    expect(bench.accounting.nowMs()).toBe(startMs);
    bench.count(300n);
    expect(bench.accounting.tierOf("a")).toBe("tier-2");
    await bench.manual.advance(hour - 1);
    expect(bench.accounting.nowMs()).toBe(startMs);
    await bench.manual.advance(day);
    expect(bench.accounting.view("a")).toMatchObject({ sumLamports: 500n });
    await bench.manual.advance(1);
    expect(bench.accounting.view("a")).toMatchObject({
      sumLamports: 0n,
      graceSinceMs: startMs + day,
    });
  });

  it("warns that it is frozen because the wall clock was set back, once an hour", async () => {
    const bench = await new Bench().started();
    bench.count(200n);
    const warnings = () => bench.lines.filter((line) => line.includes("the clock is"));
    bench.life.set(-60_000);
    await bench.manual.advance(10_000);
    expect(warnings()).toEqual([]);
    bench.life.set(-day);
    await bench.manual.advance(hour - 1);
    expect(warnings()).toHaveLength(1);
    await bench.restart(10_000, { setMs: -day });
    expect(warnings()).toHaveLength(2);
  });

  it("does not poll for events that are due only after the wall clock recovers", async () => {
    const bench = await new Bench().started();
    bench.count(200n, { registeredMs: bench.wallMs - day + 10 });
    bench.life.set(-hour);
    bench.life.timersSet = 0;
    await bench.manual.advance(hour);
    expect(bench.life.timersSet).toBeLessThan(1000);
    await bench.manual.advance(10);
    expect(bench.accounting.view("a").sumLamports).toBe(0n);
  });

  it("wakes earlier if a counted tip expires before all others", async () => {
    const bench = await new Bench().started();
    bench.count(200n);
    bench.count(10n, { registeredMs: bench.wallMs - day + 1 });
    await bench.manual.advance(1);
    expect(bench.accounting.view("a").sumLamports).toBe(200n);
  });

  it("does not go back after a restart: not behind the checkpoint, not behind a counted tip", async () => {
    const bench = await new Bench().started();
    await bench.manual.advance(hour);
    await bench.accounting.close();
    const closedMs = bench.accounting.nowMs();
    expect(bench.store.saved?.evaluatedMs).toBe(closedMs);
    await bench.restart(0, { setMs: -2 * hour });
    expect(bench.accounting.nowMs()).toBe(closedMs);
    bench.keep(200n, { countedMs: closedMs + 5000 });
    await bench.restart(0, { setMs: -2 * hour });
    expect(bench.accounting.nowMs()).toBe(closedMs + 5000);
    expect(bench.accounting.tierOf("a")).toBe("tier-1");
  });

  it("has one timer, below the limit of 2^31 ms, with a window of 60 days", async () => {
    const bench = new Bench();
    await bench.started({ rules: { ...rules, windowMs: 60 * day } });
    bench.count(200n); // LifeClock rejects longer ones
    await bench.manual.advance(2000); // the sums are retained
    bench.count(1n);
    await bench.manual.advance(2000);
    expect(bench.life.pending).toBe(1);
  });
});

describe("the counting order", () => {
  it("delays tips until all previous ones are settled, then applies them in the same turn", async () => {
    const bench = await new Bench().started();
    const first = bench.keep(100n);
    const second = bench.keep(100n);
    const third = bench.accounting.takeOrder();
    const fourth = bench.keep(300n);
    bench.accounting.settleOrder(fourth.order, fourth);
    bench.accounting.settleOrder(second.order, second);
    expect(bench.accounting.view("a").sumLamports).toBe(0n);
    bench.accounting.settleOrder(first.order, first);
    expect(bench.accounting.view("a")).toMatchObject({ sumLamports: 200n, tier: "tier-1" });
    bench.accounting.settleOrder(third, null);
    expect(bench.accounting.view("a")).toMatchObject({ sumLamports: 500n, tier: "tier-2" });
  });

  it("rejects an order number that was not issued, or is settled", async () => {
    const bench = await new Bench().started();
    const { order } = bench.count(1n);
    expect(() => bench.accounting.settleOrder(order, null)).toThrow(RangeError);
    expect(() => bench.accounting.settleOrder(order + 1n, null)).toThrow(
      "expected an issued and unsettled order number",
    );
    bench.accounting.takeOrder();
    const early = bench.accounting.takeOrder();
    bench.accounting.settleOrder(early, null);
    expect(() => bench.accounting.settleOrder(early, null)).toThrow(RangeError);
  });

  it("never issues a stored number again, nor one before the checkpoint", async () => {
    const bench = await new Bench().started();
    const persisted = bench.keep(200n); // and killed before it was settled
    await bench.restart();
    expect(bench.accounting.tierOf("a")).toBe("tier-1");
    const next = bench.accounting.takeOrder();
    expect(next).toBe(persisted.order + 1n);
    bench.accounting.settleOrder(next, null);
    await bench.accounting.close();
    await bench.restart();
    expect(bench.accounting.takeOrder()).toBe(persisted.order + 2n);
  });

  it("requires start", () => {
    expect(() => new Bench().accounting.takeOrder()).toThrow("the tier engine was not started");
  });
});

describe("listeners", () => {
  it("are notified of tier changes, not of grace periods, until they are removed", async () => {
    const bench = await new Bench().started();
    const more: unknown[] = [];
    const end = bench.accounting.onChange((...news) => more.push(news));
    bench.count(200n);
    end();
    await bench.manual.advance(day);
    expect(bench.accounting.view("a").graceSinceMs).not.toBeNull();
    bench.count(500n);
    expect(bench.notifications).toEqual([
      ["a", "tier-1"],
      ["a", "tier-2"],
    ]);
    expect(more).toEqual([["a", "tier-1"]]);
  });

  it("that fail are logged, and do not affect the others", async () => {
    const bench = new Bench();
    bench.open();
    bench.accounting.onChange(() => {
      throw new Error("made-up fault");
    });
    const after: unknown[] = [];
    bench.accounting.onChange((...news) => after.push(news));
    await bench.accounting.start();
    bench.count(200n);
    expect(after).toEqual([["a", "tier-1"]]);
    expect(bench.lines.join()).toContain("made-up fault");
  });

  it("may count tips themselves; all end with the last state", async () => {
    const bench = new Bench();
    bench.open();
    bench.accounting.onChange((_, tier) => {
      if (tier === "tier-1") bench.count(300n);
    });
    const after: (string | null)[] = [];
    bench.accounting.onChange((_, tier) => after.push(tier));
    await bench.accounting.start();
    bench.count(200n);
    expect(bench.accounting.tierOf("a")).toBe("tier-2");
    expect(after.at(-1)).toBe("tier-2");
    expect(bench.notifications.at(-1)).toEqual(["a", "tier-2"]);
  });
});

describe("checkpoints", () => {
  it("of events are written immediately, one per turn, one at a time", async () => {
    const bench = new Bench();
    const pauses: (() => void)[] = [];
    await bench.started();
    bench.life.end();
    const slow = bench.store.connect(() => new Promise((resolve) => pauses.push(resolve)));
    const store: TierStore = {
      ...bench.store.connect(),
      checkpoint: (checkpoint, epoch) => slow.checkpoint(checkpoint, epoch),
    };
    const go = async (): Promise<void> => {
      for (let i = 0; i < 2; i++) {
        for (const pause of pauses.splice(0)) pause();
        await bench.manual.advance(0);
      }
    };
    bench.life = new RestartableClock(bench.manual);
    await bench.started({ store });
    await go();
    bench.store.checkpoints = 0;
    for (const accountId of ["a", "b", "c"]) bench.count(200n, { accountId });
    await bench.manual.advance(0);
    expect(pauses).toHaveLength(1);
    bench.count(300n); // while the first one is in progress
    bench.count(300n, { accountId: "b" });
    const history = bench.accounting.history("a", null, 10);
    await go();
    expect(bench.store.checkpoints).toBe(1);
    expect([...(bench.store.saved?.events.keys() ?? [])]).toEqual(["a", "b", "c"]);
    expect(bench.kinds).toHaveLength(1);
    await go();
    expect(bench.store.checkpoints).toBe(2);
    expect(bench.kinds).toHaveLength(2);
    // Concurrent callers waited for both.
    expect(await history).toHaveLength(2);
  });

  it("contain the changes since the last one, none twice", async () => {
    const bench = new Bench();
    const put: TierCheckpoint[] = [];
    const plain = bench.store.connect();
    const store: TierStore = {
      ...plain,
      checkpoint: (checkpoint, epoch) => {
        put.push(checkpoint);
        return plain.checkpoint(checkpoint, epoch);
      },
    };
    await bench.started({ store });
    bench.count(200n);
    await bench.manual.advance(0);
    bench.count(200n, { accountId: "b" });
    await bench.manual.advance(0);
    const idsOf = (all: readonly { readonly accountId: string }[]) =>
      all.map(({ accountId }) => accountId);
    expect(put.map(({ states }) => idsOf(states))).toEqual([[], ["a"], ["b"]]);
    expect(put.map(({ events }) => idsOf(events))).toEqual([[], ["a"], ["b"]]);
  });

  it("of sums alone are written once a second, and only after changes", async () => {
    const bench = await new Bench().started();
    bench.store.checkpoints = 0;
    bench.count(1n);
    await bench.manual.advance(500);
    bench.count(1n);
    await bench.manual.advance(499);
    expect(bench.store.checkpoints).toBe(0);
    await bench.manual.advance(1);
    expect(bench.store.checkpoints).toBe(1);
    expect(bench.store.saved?.states.get("a")?.sumLamports).toBe(2n);
    await bench.manual.advance(5 * hour);
    expect(bench.store.checkpoints).toBe(1);
  });

  it("that fail are retried with all later changes; the engine continues and logs it once", async () => {
    const bench = await new Bench().started();
    bench.store.faults.writes = true;
    bench.count(200n);
    await bench.manual.advance(10_000);
    bench.count(300n);
    expect(bench.accounting.tierOf("a")).toBe("tier-2");
    await bench.manual.advance(10_000);
    expect(bench.store.saved?.states.size).toBe(0);
    expect(bench.lines.filter((line) => line.includes("could not be stored"))).toHaveLength(1);
    bench.store.faults.writes = false;
    await bench.manual.advance(1000);
    expect(bench.kinds.map(([kind]) => kind)).toEqual(["upgraded", "upgraded"]);
    expect(bench.store.saved?.states.get("a")?.sumLamports).toBe(500n);
    expect(bench.lines.at(-1)).toContain("stored again");
  });

  it("at shutdown contain the last time; later counts wait for the next start", async () => {
    const bench = await new Bench().started();
    bench.count(1n);
    await bench.accounting.close();
    expect(bench.store.saved?.countedOrder).toBe(1n);
    bench.count(500n);
    expect(bench.accounting.tierOf("a")).toBeNull();
    await bench.manual.advance(hour);
    expect(bench.life.pending).toBe(0);
    await bench.restart();
    expect(bench.accounting.tierOf("a")).toBe("tier-2");
  });

  it("at shutdown do not prevent the end if they fail", async () => {
    const bench = await new Bench().started();
    bench.count(200n);
    bench.store.faults.writes = true;
    await bench.accounting.close();
    expect(bench.lines.join()).toContain("could not be stored");
    expect(bench.life.pending).toBe(0);
  });
});

describe("the audit trail", () => {
  it("contains the stored events, and waits for pending writes", async () => {
    const bench = await new Bench().started();
    bench.count(200n);
    const newest = await bench.accounting.history("a", null, 10);
    expect(newest.map(({ kind, to }) => [kind, to])).toEqual([["upgraded", "tier-1"]]);
    bench.count(300n);
    const second = await bench.accounting.history("a", null, 1);
    expect(second.map(({ number }) => number)).toEqual([2n]);
    expect(await bench.accounting.history("a", 2n, 10)).toEqual(newest);
    bench.store.faults.reads = true;
    await expect(bench.accounting.history("a", null, 1)).rejects.toMatchObject({
      reason: "store_failed",
    });
  });
});

describe("an unreadable store", () => {
  it("prevents the start of the engine", async () => {
    const bench = new Bench();
    bench.store.faults.reads = true;
    await expect(bench.open().start()).rejects.toMatchObject({ reason: "store_failed" });
    await bench.accounting.close();
    expect(bench.store.checkpoints).toBe(0);
  });

  it("freezes the sums at the last known expiry, logs it once, and catches up exactly", async () => {
    const bench = await new Bench().started({ headMax: 4, pageMax: 2 });
    const startMs = bench.wallMs;
    for (let i = 0; i < 20; i++) {
      bench.count(25n);
      await bench.manual.advance(1000);
    }
    expect(bench.accounting.tierOf("a")).toBe("tier-2");
    await bench.manual.advance(day - 60_000);
    bench.store.faults.reads = true;
    await bench.manual.advance(58_000);
    // Some expiries were in memory; later ones are unknown.
    const { sumLamports, graceSinceMs } = bench.accounting.view("a");
    expect(graceSinceMs).toBe(startMs + day);
    expect(sumLamports).toBeGreaterThan(400n);
    expect(bench.lines.filter((line) => line.includes("could not be read"))).toHaveLength(1);
    // A tip counts as soon as all earlier expiries are known.
    bench.count(1000n);
    const countedMs = bench.wallMs;
    expect(bench.accounting.view("a").sumLamports).toBe(sumLamports);
    bench.store.faults.reads = false;
    await bench.manual.advance(1100);
    for (let i = 0; i < 20; i++) await bench.manual.advance(0); // one read after the other
    expect(bench.accounting.view("a")).toMatchObject({ sumLamports: 1000n, graceSinceMs: null });
    expect(bench.lines.at(-1)).toContain("readable again");
    await bench.manual.advance(2000);
    expect(bench.kinds.slice(2)).toEqual([
      ["grace_started", startMs + day],
      ["grace_cancelled", countedMs],
    ]);
  });
});

describe("memory", () => {
  it("contains only the head of the queue, and reads the store in pages", async () => {
    const bench = await new Bench().started({ headMax: 8, pageMax: 3 });
    for (let i = 0; i < 100; i++) {
      bench.count(10n, { accountId: `a${i % 3}` });
      await bench.manual.advance(10);
    }
    await bench.restart(0, { headMax: 8, pageMax: 3 });
    await bench.manual.advance(day - 1000 + 500);
    expect(Math.max(...bench.store.pages)).toBeLessThanOrEqual(8);
    expect(bench.store.pages.length).toBeGreaterThan(15);
    const sums = ["a0", "a1", "a2"].map((id) => Number(bench.accounting.view(id).sumLamports));
    expect(sums.reduce((sum, each) => sum + each, 0)).toBe(490);
    await bench.manual.advance(1000);
    expect(bench.accounting.view("a0").sumLamports).toBe(0n);
  });

  it("handles more expiries in one millisecond than it contains", async () => {
    const bench = await new Bench().started({ headMax: 4, pageMax: 2 });
    for (let i = 0; i < 25; i++) bench.count(10n);
    await bench.restart(0, { headMax: 4, pageMax: 2 });
    await bench.manual.advance(day - 1);
    expect(bench.accounting.view("a").sumLamports).toBe(250n);
    await bench.manual.advance(1);
    expect(bench.accounting.view("a").sumLamports).toBe(0n);
  });

  it("reports an expiring tip that the account's sum does not contain", async () => {
    const bench = await new Bench().started({ headMax: 1, pageMax: 1 });
    bench.count(1n, { accountId: "b" });
    // Stored as counted, but reported as never counted.
    const persisted = bench.keep(200n);
    bench.accounting.settleOrder(persisted.order, null);
    bench.count(1n, { accountId: "b" }); // does not fit into memory, so the store is read
    await bench.manual.advance(day);
    expect(bench.lines.join()).toContain("tip 2 of 200 lamports expires, but the sum of account a");
    expect(bench.accounting.view("a").sumLamports).toBe(0n);
  });
});
