// Kills a process during heavy registration and tier changes: acknowledged tips count once, and every
// tier follows from the tips.

import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { LeaderTiers } from "../../../src/shreds/tiers/leader-tiers.ts";
import type { CountedTip, TierView } from "../../../src/shreds/tiers/types.ts";
import { onEachDatabase } from "../../platform/store/databases.ts";
import { silent } from "../../platform/store/files.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { linesUntilKilled } from "../../support/processes/killed-child.ts";
import { accountIds, crashRules, lamportsOf, openAccounting } from "./leader-tiers-child.ts";
import { notShared } from "./memory-tier-store.ts";

const child = fileURLToPath(new URL("./leader-tiers-child.ts", import.meta.url));
/** SHREDWAY_CRASH_ROUNDS=300 for a long run. */
const rounds = Number(process.env["SHREDWAY_CRASH_ROUNDS"] ?? 12);

interface Acknowledged {
  readonly accountId: string;
  readonly signature: string;
  readonly lamports: bigint;
}

/** The acknowledgements of a process that is killed `delayMs` after the first. */
async function acknowledged(place: string, round: number, delayMs: number) {
  const lines = await linesUntilKilled(child, [place, String(round)], delayMs);
  expect(lines.filter((line) => line.startsWith("refused"))).toEqual([]);
  return lines.map((line): Acknowledged => {
    const [accountId = "", number = "", signature = ""] = line.split(" ");
    return { accountId, signature, lamports: lamportsOf(Number(number)) };
  });
}

/** A second implementation of the rules, on one account's complete list of tips. */
function modelOf(tips: readonly CountedTip[], nowMs: number): TierView {
  const { tiers, windowMs, graceMs } = crashRules;
  const moves = tips
    .flatMap(({ lamports, registeredMs, countedMs }) => [
      { atMs: registeredMs + windowMs, amount: -lamports, rank: 0 },
      { atMs: countedMs, amount: lamports, rank: 1 },
    ])
    .filter(({ atMs }) => atMs <= nowMs)
    .toSorted((a, b) => a.atMs - b.atMs || a.rank - b.rank);
  let [sum, tier, since]: [bigint, number, number | null] = [0n, 0, null];
  const holds = (number: number): boolean =>
    number === 0 || sum >= (tiers[number - 1]?.thresholdLamports ?? 0n);
  const fall = (isOver: (endMs: number) => boolean): void => {
    while (since !== null && isOver(since + graceMs)) {
      const endMs: number = since + graceMs;
      tier--;
      since = holds(tier) ? null : endMs;
    }
  };
  for (const { atMs, amount, rank } of moves) {
    fall((endMs) => endMs < atMs || (endMs === atMs && rank === 1));
    sum += amount;
    for (let number = tiers.length; number > tier; number--) if (holds(number)) tier = number;
    if (holds(tier)) since = null;
    else since ??= atMs;
  }
  fall((endMs) => endMs <= nowMs);
  return {
    tier: tiers[tier - 1]?.name ?? null,
    sumLamports: sum,
    graceSinceMs: since,
    graceEndsMs: since === null ? null : since + graceMs,
  };
}

/**
 * Whether a state is possible: the tier that the sum reaches, or a wider one in its grace period. The
 * choice may depend on the order of a commit and an expiry.
 */
function isConsistent(view: TierView, nowMs: number): boolean {
  const { tiers, graceMs } = crashRules;
  const place = tiers.findIndex(({ name }) => name === view.tier);
  const reached = tiers.findLastIndex(
    ({ thresholdLamports }) => view.sumLamports >= thresholdLamports,
  );
  const { graceSinceMs } = view;
  if (place === reached) return graceSinceMs === null;
  return place > reached && graceSinceMs !== null && graceSinceMs + graceMs > nowMs;
}

/** All counted tips in the store. */
async function countedTips(store: Awaited<ReturnType<typeof openAccounting>>["store"]) {
  const all: CountedTip[] = [];
  for (;;) {
    const page = await store.tiers.countedAfter(all.at(-1)?.order ?? 0n, 5000);
    if (page.length === 0) return all;
    all.push(...page);
  }
}

onEachDatabase((databases) => {
  describe("kill -9", () => {
    it(`loses no registration and no tier, in ${rounds} rounds`, { timeout: 900_000 }, async () => {
      const place = databases.location();
      await databases.make(place);
      const known = new Map<string, Acknowledged>();
      let upgrades = 0;
      // A slow machine may need more rounds until a tier is reached.
      for (let round = 1; round <= rounds || upgrades === 0; round++) {
        for (const one of await acknowledged(place, round, Math.random() * 400)) {
          expect(known.has(one.signature)).toBe(false);
          known.set(one.signature, one);
        }
        // The clock is frozen, so that all comparisons use one time.
        const { store, accounting } = await openAccounting(
          place,
          new ManualClock(systemClock.nowNs()),
        );
        await accounting.start();
        const tips = await countedTips(store);
        const nowMs = accounting.nowMs();
        const models = accountIds.map((accountId) =>
          modelOf(
            tips.filter((tip) => tip.accountId === accountId),
            nowMs,
          ),
        );
        const views = accountIds.map((accountId) => accounting.view(accountId));
        expect(views.map(({ sumLamports }) => sumLamports)).toEqual(
          models.map(({ sumLamports }) => sumLamports),
        );
        expect(views.filter((view) => !isConsistent(view, nowMs))).toEqual([]);
        // Without a checkpoint, the engine recomputes everything from the tips: exactly the model.
        const anew = new LeaderTiers({
          rules: crashRules,
          store: {
            ...notShared,
            load: () => Promise.resolve(null),
            checkpoint: () => Promise.resolve(true),
            countedAfter: (order, limit) => store.tiers.countedAfter(order, limit),
            leavingAfter: (behind, untilMs, limit) =>
              store.tiers.leavingAfter(behind, untilMs, limit),
            events: () => Promise.resolve([]),
          },
          clock: new ManualClock(BigInt(nowMs) * 1_000_000n),
          log: silent,
          epoch: 1n,
        });
        await anew.start();
        expect(accountIds.map((accountId) => anew.view(accountId))).toEqual(models);
        await anew.close();
        upgrades += views.filter(({ tier }) => tier !== null).length;
        await accounting.close();
        await store.close();
      }

      const { store } = await openAccounting(place);
      const owners = await store.registrations.owners([...known.keys()]);
      for (const { signature, accountId } of known.values()) {
        expect(owners.get(signature)).toBe(accountId);
      }
      const total = (lamports: readonly bigint[]): bigint =>
        lamports.reduce((sum, one) => sum + one, 0n);
      const tips = await countedTips(store);
      const least = total([...known.values()].map(({ lamports }) => lamports));
      expect(total(tips.map(({ lamports }) => lamports)) >= least).toBe(true);
      expect(new Set(tips.map(({ order }) => order)).size).toBe(tips.length);
      await store.close();
      expect(await databases.damage(place)).toEqual([]);
    });
  });
});
