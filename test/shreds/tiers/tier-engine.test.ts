import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TierEngine } from "../../../src/shreds/tiers/tier-engine.ts";
import type { TierEvent, TierRules } from "../../../src/shreds/tiers/types.ts";
import { type ModelTip, modelOf } from "./tier-model.ts";

const hour = 3_600_000;
const day = 24 * hour;
const tier = (name: string, thresholdLamports: bigint) => ({ name, thresholdLamports });
const twoTiers: TierRules = {
  tiers: [tier("tier-1", 200n), tier("tier-2", 500n)],
  windowMs: day,
  graceMs: day,
};
const threeTiers: TierRules = { ...twoTiers, tiers: [...twoTiers.tiers, tier("tier-3", 900n)] };

function engineOf(rules = twoTiers): TierEngine {
  return new TierEngine(rules, { evaluatedMs: 0, states: [] });
}

const tip = (lamports: bigint, registeredMs: number, accountId = "a") => ({
  accountId,
  lamports,
  registeredMs,
});
const short = ({ number, kind, atMs, from, to, sumLamports }: TierEvent) =>
  [Number(number), kind, atMs, from, to, Number(sumLamports)] as const;
const eventsOf = (engine: TierEngine) => engine.takeEvents().map(short);

describe("an upgrade", () => {
  it("happens at equality, not one lamport below", () => {
    const engine = engineOf();
    engine.count(tip(199n, 10), 10);
    expect(engine.view("a").tier).toBeNull();
    engine.count(tip(1n, 11), 11);
    expect(engine.view("a").tier).toBe("tier-1");
    expect(eventsOf(engine)).toEqual([[1, "upgraded", 11, null, "tier-1", 200]]);
  });

  it("goes directly to the highest reached tier, as one event", () => {
    const engine = engineOf(threeTiers);
    engine.count(tip(900n, 10), 10);
    expect(eventsOf(engine)).toEqual([[1, "upgraded", 10, null, "tier-3", 900]]);
    engine.count(tip(499n, 10, "b"), 10);
    expect(engine.view("b").tier).toBe("tier-1");
  });

  it("from a grace period ends that period first", () => {
    const engine = engineOf();
    engine.count(tip(200n, 10), 10);
    engine.leave("a", 200n, 10 + day);
    engine.count(tip(500n, 11 + day), 11 + day);
    expect(eventsOf(engine).slice(1)).toEqual([
      [2, "grace_started", 10 + day, "tier-1", "tier-1", 0],
      [3, "grace_cancelled", 11 + day, "tier-1", "tier-1", 500],
      [4, "upgraded", 11 + day, "tier-1", "tier-2", 500],
    ]);
    expect(engine.nextGraceEndMs).toBeNull();
  });
});

describe("a grace period", () => {
  it("begins when the sum falls below the threshold, not at equality", () => {
    const engine = engineOf();
    for (const lamports of [50n, 1n, 200n]) engine.count(tip(lamports, 10), 10);
    engine.leave("a", 50n, 10 + day);
    expect(engine.view("a").graceSinceMs).toBeNull();
    engine.leave("a", 1n, 11 + day);
    expect(engine.view("a").graceSinceMs).toBeNull();
    engine.leave("a", 200n, 12 + day);
    expect(engine.view("a")).toEqual({
      tier: "tier-1",
      sumLamports: 0n,
      graceSinceMs: 12 + day,
      graceEndsMs: 12 + 2 * day,
    });
  });

  it("does not restart while it runs, even if more tips expire", () => {
    const engine = engineOf();
    for (const lamports of [100n, 300n, 100n]) engine.count(tip(lamports, 10), 10);
    engine.leave("a", 100n, 10 + day);
    engine.leave("a", 300n, 20 + day);
    expect(engine.view("a").graceSinceMs).toBe(10 + day);
    expect(engine.nextGraceEndMs).toBe(10 + 2 * day);
  });

  it("keeps the tier up to its last millisecond, and ends at its end", () => {
    const engine = engineOf();
    engine.count(tip(200n, 10), 10);
    engine.leave("a", 200n, 10 + day);
    engine.advance(10 + 2 * day - 1);
    expect(engine.view("a").tier).toBe("tier-1");
    engine.advance(10 + 2 * day);
    expect(engine.view("a")).toMatchObject({ tier: null, graceSinceMs: null, graceEndsMs: null });
    expect(eventsOf(engine).at(-1)).toEqual([3, "downgraded", 10 + 2 * day, "tier-1", null, 0]);
  });

  it("is cancelled when the sum reaches the threshold again, and the next one has its full duration", () => {
    const engine = engineOf();
    engine.count(tip(200n, 10), 10);
    engine.leave("a", 200n, 10 + day);
    engine.count(tip(199n, 20 + day), 20 + day);
    expect(engine.view("a").graceSinceMs).toBe(10 + day);
    engine.count(tip(1n, 30 + day), 30 + day);
    expect(engine.view("a").graceSinceMs).toBeNull();
    engine.advance(10 + 2 * day);
    expect(engine.view("a").tier).toBe("tier-1");
    engine.leave("a", 199n, 20 + 2 * day);
    expect(engine.view("a").graceEndsMs).toBe(20 + 3 * day);
    expect(eventsOf(engine).map(([, kind]) => kind)).toEqual([
      "upgraded",
      "grace_started",
      "grace_cancelled",
      "grace_started",
    ]);
  });

  it("ends one tier lower, whose own grace period begins at that millisecond", () => {
    const engine = engineOf(threeTiers);
    engine.count(tip(900n, 10), 10);
    engine.leave("a", 900n, 10 + day);
    engine.advance(10 + 10 * day);
    expect(eventsOf(engine).slice(1)).toEqual([
      [2, "grace_started", 10 + day, "tier-3", "tier-3", 0],
      [3, "downgraded", 10 + 2 * day, "tier-3", "tier-2", 0],
      [4, "grace_started", 10 + 2 * day, "tier-2", "tier-2", 0],
      [5, "downgraded", 10 + 3 * day, "tier-2", "tier-1", 0],
      [6, "grace_started", 10 + 3 * day, "tier-1", "tier-1", 0],
      [7, "downgraded", 10 + 4 * day, "tier-1", null, 0],
    ]);
  });

  it("has no successor if the sum reaches the lower tier's threshold", () => {
    const engine = engineOf();
    engine.count(tip(300n, 10), 10);
    engine.count(tip(200n, 20 + day), 10 + day - 1);
    engine.leave("a", 300n, 10 + day);
    engine.advance(10 + 2 * day);
    expect(engine.view("a")).toMatchObject({ tier: "tier-1", graceSinceMs: null });
    engine.leave("a", 200n, 20 + 2 * day);
    expect(engine.view("a").graceSinceMs).toBe(20 + 2 * day);
  });
});

describe("at one millisecond", () => {
  it("expiries precede ends of grace periods: the lower tier's grace period begins at the end", () => {
    const engine = engineOf();
    engine.count(tip(300n, 10), 10);
    engine.count(tip(200n, 10 + day), 10 + day - 1);
    engine.leave("a", 300n, 10 + day);
    engine.leave("a", 200n, 10 + 2 * day); // the millisecond in which the grace period ends
    expect(engine.view("a").tier).toBe("tier-2");
    engine.advance(10 + 2 * day);
    expect(eventsOf(engine).slice(-2)).toEqual([
      [4, "downgraded", 10 + 2 * day, "tier-2", "tier-1", 0],
      [5, "grace_started", 10 + 2 * day, "tier-1", "tier-1", 0],
    ]);
  });

  it("an end of a grace period precedes a count: the tier falls and rises again", () => {
    const engine = engineOf();
    engine.count(tip(200n, 10), 10);
    engine.leave("a", 200n, 10 + day);
    engine.count(tip(200n, 10 + 2 * day), 10 + 2 * day);
    expect(eventsOf(engine).slice(-2)).toEqual([
      [3, "downgraded", 10 + 2 * day, "tier-1", null, 0],
      [4, "upgraded", 10 + 2 * day, null, "tier-1", 200],
    ]);
  });

  it("a count one millisecond before the end of a grace period keeps the tier", () => {
    const engine = engineOf();
    engine.count(tip(200n, 10), 10);
    engine.leave("a", 200n, 10 + day);
    engine.count(tip(200n, 9 + 2 * day), 9 + 2 * day);
    engine.advance(10 + 2 * day);
    expect(engine.view("a")).toMatchObject({ tier: "tier-1", graceSinceMs: null });
  });

  it("a tip counted after its window changes nothing; one millisecond earlier, it does", () => {
    const engine = engineOf();
    expect(engine.count(tip(500n, 10), 10 + day)).toBe(false);
    expect(engine.view("a").tier).toBeNull();
    expect(engine.count(tip(500n, 11), 10 + day)).toBe(true);
    expect(engine.view("a").tier).toBe("tier-2");
    engine.leave("a", 500n, 11 + day);
    expect(engine.view("a").graceSinceMs).toBe(11 + day);
  });
});

describe("the tier engine", () => {
  it("rejects past events, and an expiry in a millisecond that is complete", () => {
    const engine = engineOf();
    engine.advance(100);
    expect(() => engine.advance(99)).toThrow("expected a time of 100 ms or later, got 99");
    expect(() => engine.count(tip(1n, 99), 99)).toThrow(RangeError);
    expect(() => engine.leave("a", 1n, 100)).toThrow("expected an expiry after 100 ms");
  });

  it("reports an expiry above the sum", () => {
    const engine = engineOf();
    engine.count(tip(5n, 10), 10);
    expect(engine.leave("a", 6n, 10 + day)).toBe(false);
    expect(engine.view("a").sumLamports).toBe(0n);
  });

  it("returns each changed state and each event once", () => {
    const engine = engineOf();
    engine.count(tip(200n, 10), 10);
    engine.count(tip(1n, 10, "b"), 10);
    expect(engine.hasChanged).toBe(true);
    expect(engine.takeStates()).toEqual([
      { accountId: "a", tier: "tier-1", graceSinceMs: null, sumLamports: 200n, eventCount: 1n },
      { accountId: "b", tier: null, graceSinceMs: null, sumLamports: 1n, eventCount: 0n },
    ]);
    expect(engine.hasChanged).toBe(false);
    expect(engine.takeStates()).toEqual([]);
    expect(engine.takeEvents()).toHaveLength(1);
    expect(engine.takeEvents()).toEqual([]);
    engine.leave("a", 200n, 10 + day);
    engine.takeStates();
    engine.advance(10 + 2 * day);
    expect(engine.takeStates().map(({ accountId }) => accountId)).toEqual(["a"]);
  });

  it("adapts stored states to changed rules", () => {
    const state = (accountId: string, name: string | null, sum: bigint, since: number | null) => ({
      accountId,
      tier: name,
      graceSinceMs: since,
      sumLamports: sum,
      eventCount: 7n,
    });
    const engine = new TierEngine(twoTiers, {
      evaluatedMs: 1000,
      states: [
        state("lowered", "tier-1", 600n, null),
        state("raised", "tier-2", 450n, null),
        state("recovered", "tier-1", 200n, 900),
        state("gone", "tier-9", 250n, 950),
        state("same", "tier-1", 100n, 800),
      ],
    });
    const events = engine.takeEvents().map((event) => [event.accountId, ...short(event)]);
    expect(events).toHaveLength(4);
    expect(events).toEqual(
      expect.arrayContaining([
        ["lowered", 8, "upgraded", 1000, "tier-1", "tier-2", 600],
        ["raised", 8, "grace_started", 1000, "tier-2", "tier-2", 450],
        ["recovered", 8, "grace_cancelled", 1000, "tier-1", "tier-1", 200],
        ["gone", 8, "downgraded", 1000, "tier-9", "tier-1", 250],
      ]),
    );
    expect(engine.nextGraceEndMs).toBe(800 + day);
    engine.advance(800 + day);
    expect(engine.nextGraceEndMs).toBe(1000 + day);
  });
});

/** Few distinct times and amounts, so that thresholds and milliseconds are hit exactly. */
const history = fc.record({
  tierCount: fc.constantFrom(1, 2, 3, 5),
  graceMs: fc.constantFrom(1, 7, 20, 33),
  tips: fc.array(
    fc.record({
      accountId: fc.constantFrom("a", "b", "c"),
      lamports: fc.constantFrom(1n, 5n, 10n, 20n, 35n),
      waitMs: fc.constantFrom(0, 0, 0, 1, 2, 5, 20, 40),
      ageMs: fc.constantFrom(0, 0, 0, 1, 5, 19, 20, 21),
    }),
    { maxLength: 60 },
  ),
  restartEvery: fc.constantFrom(0, 0, 3, 7),
});

describe("long histories", () => {
  it("agree with the model in states and audit trail at every step", () => {
    fc.assert(
      fc.property(history, ({ tierCount, graceMs, tips, restartEvery }) => {
        const tiers = Array.from({ length: tierCount }, (_, i) =>
          tier(`tier-${i + 1}`, BigInt(10 + 20 * i)),
        );
        const rules: TierRules = { tiers, windowMs: 20, graceMs };
        let engine = engineOf(rules);
        const counted: ModelTip[] = [];
        const events: TierEvent[] = [];
        const states = new Map<string, unknown>();
        let nowMs = 100;
        const agree = (): void => {
          events.push(...engine.takeEvents());
          for (const state of engine.takeStates()) states.set(state.accountId, state);
          for (const [accountId, model] of modelOf(rules, counted, nowMs)) {
            const state = states.get(accountId) ?? { ...model.state };
            expect(state).toEqual(model.state);
            expect(engine.view(accountId)).toMatchObject({
              tier: model.state.tier,
              graceSinceMs: model.state.graceSinceMs,
              sumLamports: model.state.sumLamports,
            });
            expect(events.filter((event) => event.accountId === accountId)).toEqual(model.events);
          }
        };
        let left = 0;
        const moveTo = (toMs: number): void => {
          const leaving = counted
            .map((each) => ({ ...each, leavesMs: each.registeredMs + rules.windowMs }))
            .filter(({ leavesMs, effectiveMs }) => leavesMs > Math.max(nowMs, effectiveMs))
            .filter(({ leavesMs }) => leavesMs <= toMs)
            .toSorted((a, b) => a.leavesMs - b.leavesMs || Number(a.order - b.order));
          for (const { accountId, lamports, leavesMs } of leaving) {
            expect(engine.leave(accountId, lamports, leavesMs)).toBe(true);
            left++;
          }
          engine.advance(toMs);
          nowMs = toMs;
        };
        for (const [i, { waitMs, ageMs, accountId, lamports }] of tips.entries()) {
          moveTo(nowMs + waitMs);
          const registeredMs = nowMs - ageMs;
          engine.count({ accountId, lamports, registeredMs }, nowMs);
          const order = BigInt(i + 1);
          counted.push({ order, accountId, lamports, registeredMs, effectiveMs: nowMs });
          agree();
          if (restartEvery > 0 && i % restartEvery === 0) {
            const expected = [...modelOf(rules, counted, nowMs).values()].map(({ state }) => state);
            engine = new TierEngine(rules, { evaluatedMs: nowMs, states: expected });
            expect(engine.takeEvents()).toEqual([]);
          }
        }
        moveTo(nowMs + 300);
        agree();
        expect(left).toBe(tips.filter(({ ageMs }) => ageMs < rules.windowMs).length);
      }),
      { numRuns: 300 },
    );
  });
});
