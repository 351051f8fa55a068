// The recomputation against the tier engine, with random tips, claims and expiries.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TierEngine } from "../../../src/shreds/tiers/tier-engine.ts";
import type { TierEvent, TierRules } from "../../../src/shreds/tiers/types.ts";
import {
  anchorOf,
  type CountedFact,
  recomputeTiers,
} from "../../../src/tools/audit/tier-recomputation.ts";

const rules: TierRules = {
  tiers: [
    { name: "tier-1", thresholdLamports: 20n },
    { name: "tier-2", thresholdLamports: 50n },
  ],
  windowMs: 400,
  graceMs: 300,
};
const endMs = 3000;
const beginning = { fromMs: 0, tier: null, graceSinceMs: null, eventCount: 0n };

interface Fact extends CountedFact {
  readonly accountId: string;
  /** When its commit is durable. */
  readonly effectMs: number;
  /** The order of the other account's tip that this one replaces. */
  readonly from: Fact | null;
}

/** Passes the facts to the engine, millisecond by millisecond. */
function engineOf(facts: readonly Fact[]) {
  const engine = new TierEngine(rules, { evaluatedMs: 0, states: [] });
  const events: TierEvent[] = [];
  const live = new Set<Fact>();
  for (let ms = 1; ms <= endMs; ms++) {
    const leaving = [...live]
      .filter((fact) => fact.registeredMs + rules.windowMs === ms)
      .toSorted((a, b) => (a.order < b.order ? -1 : 1));
    for (const fact of leaving) {
      live.delete(fact);
      engine.leave(fact.accountId, fact.lamports, ms);
    }
    engine.advance(ms);
    for (const fact of facts.filter(({ effectMs }) => effectMs === ms)) {
      if (!engine.count(fact, ms)) continue;
      if (fact.from && live.delete(fact.from)) {
        engine.withdraw(fact.from.accountId, fact.from.lamports);
      }
      live.add(fact);
    }
    events.push(...engine.takeEvents());
  }
  return { events, states: new Map(engine.takeStates().map((one) => [one.accountId, one])) };
}

const historiesOf = (isSlow: boolean) =>
  fc
    .array(
      fc.record({
        isFirst: fc.boolean(),
        lamports: fc.bigInt(1n, 35n),
        waitMs: fc.nat(12),
        ageMs: fc.nat(45),
        claims: fc.nat(4),
        commitMs: fc.nat(6),
      }),
      { maxLength: 40 },
    )
    .map((given) => {
      const facts: Fact[] = [];
      let countedMs = 460;
      let effectMs = 0;
      for (const [i, { isFirst, lamports, waitMs, ageMs, claims, commitMs }] of given.entries()) {
        countedMs += 10 * waitMs;
        effectMs = Math.max(effectMs, countedMs + (isSlow ? commitMs : 0));
        if (effectMs > endMs) break;
        const order = BigInt(i + 1);
        const accountId = isFirst ? "a" : "b";
        const old = facts.at(-claims);
        const isClaim = claims > 0 && old && !old.claim && !old.from && old.accountId !== accountId;
        if (isClaim) {
          const claimed = { ...old, claim: { order, ms: countedMs } };
          facts[facts.indexOf(old)] = claimed;
          const { registeredMs } = old;
          facts.push({
            order,
            accountId,
            lamports: old.lamports,
            registeredMs,
            countedMs,
            claim: null,
            effectMs,
            from: claimed,
          });
        } else {
          const registeredMs = countedMs - 10 * ageMs;
          facts.push({
            order,
            accountId,
            lamports,
            registeredMs,
            countedMs,
            claim: null,
            effectMs,
            from: null,
          });
        }
      }
      return facts;
    })
    // A claim is found by identity in the engine's run.
    .map((facts) =>
      facts.map((fact) =>
        fact.from
          ? { ...fact, from: facts.find(({ order }) => order === fact.from?.order) ?? null }
          : fact,
      ),
    );

describe("the recomputed history", () => {
  it.each([false, true])(
    "is that of the tier engine, from any time; slow commits: %s",
    (isSlow) => {
      const property = fc.property(
        historiesOf(isSlow),
        fc.integer({ min: 1, max: endMs / 10 }),
        (facts, from) => {
          const fromMs = 10 * from;
          const { events, states } = engineOf(facts);
          for (const accountId of ["a", "b"]) {
            const own = facts.filter((fact) => fact.accountId === accountId);
            const stored = events.filter((event) => event.accountId === accountId);
            const delayMs = isSlow ? 9 : 0;
            const horizon = { untilMs: endMs, order: BigInt(facts.length) };
            const whole = recomputeTiers(own, horizon, {
              rules,
              anchor: beginning,
              stored,
              effectMaxMs: delayMs,
            });
            expect(whole.events.map((event) => ({ ...event, accountId }))).toEqual(stored);
            const state = states.get(accountId);
            if (state) expect({ ...whole.state, accountId }).toEqual(state);
            const anchor = anchorOf(whole.events, fromMs);
            const later = recomputeTiers(own, horizon, {
              rules,
              anchor,
              stored,
              effectMaxMs: delayMs,
            });
            expect(later.events).toEqual(whole.events.filter(({ atMs }) => atMs >= fromMs));
            expect(later.state).toEqual(whole.state);
          }
        },
      );
      fc.assert(property, { numRuns: 300 });
    },
  );

  it("covers every kind of event", () => {
    const kinds = new Set<string>();
    for (const facts of fc.sample(historiesOf(true), { numRuns: 200, seed: 7 })) {
      for (const { kind } of engineOf(facts).events) kinds.add(kind);
    }
    expect([...kinds].toSorted()).toEqual([
      "downgraded",
      "grace_cancelled",
      "grace_started",
      "tip_claimed",
      "upgraded",
    ]);
  });

  it("finds the order of a slow commit and an expiry in the stored events", () => {
    const fact = (order: bigint, lamports: bigint, countedMs: number): Fact => {
      const effectMs = order === 2n ? countedMs + 5 : countedMs;
      const times = { registeredMs: countedMs, countedMs, effectMs };
      return { order, accountId: "a", lamports, ...times, claim: null, from: null };
    };
    // The second tip is counted before the first one expires at 500, and takes effect before or after it.
    for (const countedMs of [492, 497]) {
      const facts = [fact(1n, 20n, 100), fact(2n, 25n, countedMs)];
      const { events } = engineOf(facts);
      const horizon = { untilMs: endMs, order: 2n };
      const { events: found } = recomputeTiers(facts, horizon, {
        rules,
        anchor: beginning,
        stored: events,
        effectMaxMs: 9,
      });
      expect(found.map((event) => ({ accountId: "a", ...event }))).toEqual(events);
      expect(found.some(({ kind }) => kind === "grace_cancelled")).toBe(countedMs === 497);
    }
  });
});
