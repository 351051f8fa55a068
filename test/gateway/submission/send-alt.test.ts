// sendAlt from the pipeline to the partner and back: real HTTP routes, a real chain, the tracker.

import { ComputeBudgetProgram } from "@solana/web3.js";
import { beforeEach, describe, expect, it } from "vitest";
import { completeConfig } from "../../../src/core/configuration/configuration.ts";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import { openRoute } from "../../../src/gateway/routes/open-route.ts";
import { Pipeline } from "../../../src/gateway/submission/pipeline.ts";
import type {
  Route,
  SubmissionStore,
  SubmitOptions,
  TransactionStatus,
} from "../../../src/gateway/submission/types.ts";
import { PartnerTracker } from "../../../src/gateway/tracker/partner-tracker.ts";
import { leaderContextOf } from "../../../src/relay/leaders/leader-context.ts";
import { SandboxPartners } from "../../../src/sandbox/partners/partners.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import {
  addressOf,
  alice,
  bob,
  ChainRun,
  transferOf,
  wallet,
  walletLamports,
} from "../../support/transactions/chain.ts";
import { factsOf } from "../../support/transactions/facts.ts";
import { outcomesOf } from "./chain-adapters.ts";

const accountId = "ann";
const tipAccount = wallet(77);

const store: SubmissionStore = {
  put: async () => {},
  add: async () => true,
  open: async () => [],
  openNodes: async () => [],
  adopt: async () => [],
  find: async () => [],
  findBundles: async () => [],
  forgetEndedBefore: async () => 0,
};

let clock: ManualClock;
let run: ChainRun;
let partners: SandboxPartners;
let tracker: PartnerTracker;
let pipeline: Pipeline;
/** Minimum fee of the policy; the sandbox's partner accepts nothing below 10. */
let unitLamports: bigint;

beforeEach(async () => {
  clock = new ManualClock();
  unitLamports = 10n;
  run = await ChainRun.open({
    slotMs: 400,
    intervalsPerSlot: 4,
    confirmedDepth: 6,
    funded: new Map([alice, bob, tipAccount].map((pair) => [addressOf(pair), walletLamports])),
  });
  run.slots();
  clock.every(50, () => run.pass(50_000_000n));
  const { chain } = run;
  partners = closing(
    await SandboxPartners.open(chain, clock, { tipAddresses: [addressOf(tipAccount)] }),
  );
  const { routes: configs } = completeConfig({
    relay: { shredVersion: 1, tiers: ["tier-1"], authentication: "off" },
    routes: partners.routeConfigs().filter(({ kind }) => /swqos|alt-partner/.test(kind)),
  });
  const routes: Route[] = configs.map((config) => closing(openRoute(config, { clock })));
  const schedule = chain.relaySchedule();
  tracker = new PartnerTracker(() => chain.currentSlot);
  tracker.replaceSchedule(schedule);
  tracker.replaceMembers(new Set(partners.altPartners.keys()));
  pipeline = new Pipeline({
    clock,
    log: { warn: () => {} },
    routes: () => routes,
    policy: () => ({
      denyLeaders: new Set(),
      minimumTipLamports: 10_000n,
      partners: tracker.memberSet(),
      partnerUnitLamports: unitLamports,
      nextPartnerSlot: (slot) => tracker.next(slot)?.leaderSlot ?? null,
    }),
    store,
    landings: null,
    outcomes: outcomesOf(run),
    leaders: () => leaderContextOf(schedule, chain.currentSlot),
    slotNs: () => run.slotNs,
    inspect: (wire) => factsOf(wire),
  });
  closing(pipeline);
});

/** Advances time until the current slot and its neighbours belong to partners (or none does). */
async function until(isPartners: boolean): Promise<void> {
  const isAsWanted = (slot: bigint) => {
    const leader = run.chain.leaderOf(slot);
    return (leader !== null && partners.altPartners.has(leader)) === isPartners;
  };
  for (let turn = 0; turn < 4000; turn++) {
    const slot = run.chain.currentSlot;
    if ([slot - 1n, slot, slot + 1n].every(isAsWanted)) return;
    await clock.advance(50);
  }
  throw new Error("expected such a slot by then");
}

function paying(price = 10_000_000n): TransactionFacts {
  const wire = run.legacy(
    [
      ComputeBudgetProgram.setComputeUnitPrice({ microLamports: price }),
      transferOf(alice, bob, 5n),
      transferOf(alice, tipAccount, 100_000n),
    ],
    [alice],
  );
  return factsOf(wire, { tipLamports: 100_000n, computeUnitPrice: price });
}

async function submit(
  facts: TransactionFacts,
  options: Partial<SubmitOptions> = {},
): Promise<void> {
  await pipeline.submit({
    accountId,
    method: "sendAlt",
    transactions: [facts],
    isBundle: false,
    options: {
      swqosOnly: false,
      mevProtect: false,
      revertProtection: false,
      resendsMax: null,
      ...options,
    },
    receivedNs: clock.nowNs(),
  });
}

async function statusOf({ signature }: TransactionFacts): Promise<TransactionStatus | null> {
  const [status] = await pipeline.statuses(accountId, [signature]);
  return status ?? null;
}

/** "route kind" of the route events, in order. */
async function routeEvents(facts: TransactionFacts): Promise<string[]> {
  const status = await statusOf(facts);
  return (status?.events ?? []).flatMap((event) =>
    "route" in event && event.kind !== "queued" && event.kind !== "sent"
      ? [`${event.route} ${event.kind}`]
      : [],
  );
}

/** Waits for real sockets while the chain's time is frozen. */
async function answered(facts: TransactionFacts, count = 1): Promise<void> {
  while ((await routeEvents(facts)).length < count) await new Promise((turn) => setImmediate(turn));
}

/** The partners run in this process: requests unanswered after so many turns wait for the clock. */
async function settled(facts: TransactionFacts): Promise<void> {
  for (let turn = 0; turn < 2000; turn++) {
    const events = (await statusOf(facts))?.events ?? [];
    const queued = events.filter(({ kind }) => kind === "queued");
    if ((await routeEvents(facts)).length >= queued.length) return;
    await new Promise((next) => setImmediate(next));
  }
}

/** Advances time in small steps, and not while responses are pending. */
async function ended(facts: TransactionFacts): Promise<string | undefined> {
  for (let turn = 0; turn < 4000; turn++) {
    const status = await statusOf(facts);
    if (status && status.state !== "open") return status.state;
    await clock.advance(50);
    await settled(facts);
  }
  throw new Error("expected an end by then");
}

describe("sendAlt", () => {
  it("is sent to the leading partner and lands", async () => {
    await until(true);
    const facts = paying();
    await submit(facts);
    await answered(facts);
    expect(await ended(facts)).toBe("landed");
    expect(await routeEvents(facts)).toEqual(["alt-partner acknowledged"]);
  });

  it("is dropped in another slot, with the next partner slot in the error", async () => {
    await until(false);
    const facts = paying();
    const slot = run.chain.currentSlot;
    const next = tracker.next(slot)?.leaderSlot;
    await expect(submit(facts)).rejects.toMatchObject({
      reason: "non_partner_slot",
      message:
        `slot ${slot} (leader ${run.chain.leaderOf(slot)}, next partner slot ${next}): ` +
        "received in a non-partner slot without fallback and is dropped",
    });
    expect(await statusOf(facts)).toBeNull();
    await clock.advance(2000);
    expect(run.chain.status(facts.signature)).toBeNull();
  });

  it("uses other routes in another slot with fallback, and lands", async () => {
    await until(false);
    const facts = paying();
    await submit(facts, { enableFallback: true });
    await answered(facts);
    expect(await ended(facts)).toBe("landed");
    expect(await routeEvents(facts)).toEqual(["swqos acknowledged"]);
  });

  it("uses other routes after the partner refused it, with fallback", async () => {
    unitLamports = 1n;
    await until(true);
    const facts = paying(5_000_000n);
    await submit(facts, { enableFallback: true });
    await answered(facts);
    expect(await routeEvents(facts)).toEqual(["alt-partner refused"]);
    expect(await ended(facts)).toBe("landed");
    expect((await routeEvents(facts))[1]).toBe("swqos acknowledged");
  });

  it("ends after the partner rejected it, without fallback", async () => {
    unitLamports = 1n;
    await until(true);
    const facts = paying(5_000_000n);
    await submit(facts);
    await answered(facts);
    expect((await statusOf(facts))?.state).toBe("rejected");
    await clock.advance(5000);
    expect(await routeEvents(facts)).toEqual(["alt-partner refused"]);
    expect(run.chain.status(facts.signature)).toBeNull();
  });

  it("is sent nowhere else after its slot, and expires", async () => {
    await until(true);
    for (const endpoint of partners.altPartners.values()) endpoint.faults.answer = "garbage";
    const facts = paying();
    await submit(facts);
    await answered(facts);
    expect(await ended(facts)).toBe("expired");
    const routes = new Set((await routeEvents(facts)).map((text) => text.split(" ")[0]));
    expect([...routes]).toEqual(["alt-partner"]);
    expect(partners.swqos.counts.requests).toBe(0);
  });
});
