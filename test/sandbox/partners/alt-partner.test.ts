// The alternative partner's ports on a real chain: leader slots, minimum fee, auction order,
// dropped transactions.

import { ComputeBudgetProgram, type Keypair } from "@solana/web3.js";
import { beforeEach, describe, expect, it } from "vitest";
import { completeConfig } from "../../../src/core/configuration/configuration.ts";
import { openRoute } from "../../../src/gateway/routes/open-route.ts";
import type { Route, RouteEvent } from "../../../src/gateway/submission/types.ts";
import { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import { SandboxPartners } from "../../../src/sandbox/partners/partners.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { TestOutbound } from "../../support/gateway/partner.ts";
import {
  addressOf,
  alice,
  bob,
  ChainRun,
  carol,
  transferOf,
  wallet,
} from "../../support/transactions/chain.ts";
import { factsOf } from "../../support/transactions/facts.ts";
import { v1Transfer } from "../../support/transactions/v1-transaction.ts";

const tipAccount = wallet(77);
const sol = 1_000_000_000n;
const enough = 10_000_000n;

let run: ChainRun;
let partners: SandboxPartners;
let route: Route;
let identity: string;

beforeEach(async () => {
  const clock = new ManualClock();
  run = await ChainRun.open({
    funded: new Map([alice, bob, carol, tipAccount].map((pair) => [addressOf(pair), 100n * sol])),
  });
  run.slots();
  partners = closing(
    await SandboxPartners.open(run.chain, clock, { tipAddresses: [addressOf(tipAccount)] }),
  );
  const { routes } = completeConfig({
    relay: { shredVersion: 1, tiers: ["tier-1"], authentication: "off" },
    routes: partners.routeConfigs(),
  });
  const config = routes.find(({ kind }) => kind === "alt-partner");
  if (!config) throw new Error("expected a route to the partner, got none");
  route = closing(openRoute(config, { clock }));
  [identity = ""] = partners.altPartners.keys();
});

/** Lets slots pass until the current one and its neighbours match the condition. */
function untilLeader(isWanted: (leaders: (string | null)[]) => boolean): void {
  for (let count = 0; count < 200; count++) {
    const now = run.eventsOf("slot").at(-1)?.slot ?? 0n;
    if (isWanted([now - 1n, now, now + 1n].map((slot) => run.chain.leaderOf(slot)))) return;
    run.slots();
  }
  throw new Error("expected such a leader within 200 slots, got none");
}

const untilItLeads = (): void => untilLeader(([, leader]) => leader === identity);

async function send(wire: Uint8Array, revertProtection = false): Promise<RouteEvent> {
  const outbound = new TestOutbound([factsOf(wire)], { leader: identity, revertProtection });
  expect(route.offer(outbound)).toBe(true);
  return outbound.ended;
}

interface Paid {
  readonly price?: bigint;
  readonly tip?: bigint;
  readonly lamports?: bigint;
}

let number = 0;
function paying(
  from: Keypair,
  to: Keypair,
  { price = enough, tip = 10_000n, lamports = 5n }: Paid = {},
) {
  const instructions = [
    ComputeBudgetProgram.setComputeUnitLimit({ units: 10_000 + ++number }), // all are different
    ComputeBudgetProgram.setComputeUnitPrice({ microLamports: price }),
    transferOf(from, to, lamports),
    transferOf(from, tipAccount, tip),
  ];
  return run.legacy(instructions, [from]);
}

const signatureOf = (wire: Uint8Array): string => factsOf(wire).signature;
const statusOf = (wire: Uint8Array) => run.chain.status(signatureOf(wire));

/** In the order of execution. */
function executed(): string[] {
  return run.eventsOf("executed").map(({ transaction }) => transaction.signature);
}

describe("a port of the alternative partner", () => {
  it("accepts transactions while its validator is the leader", async () => {
    const endpoint = partners.altPartners.get(identity);
    untilLeader((leaders) => leaders.every((leader) => leader !== identity));
    expect(await send(paying(alice, bob))).toMatchObject({
      kind: "refused",
      reason: "node_behind",
      isFinal: false,
    });
    untilItLeads();
    const wire = paying(alice, bob);
    expect((await send(wire)).kind).toBe("acknowledged");
    expect((await send(wire)).kind).toBe("acknowledged"); // sent again
    expect(endpoint?.counts).toMatchObject({ requests: 3, transactions: 2 });
    run.slots(2);
    expect(statusOf(wire)?.err).toBeNull();
  });

  it("permanently rejects fees below 10 lamports per compute unit", async () => {
    untilLeader((leaders) => leaders.every((leader) => leader !== identity));
    const payer = new SandboxKeyPair(new Uint8Array(32).fill(1));
    const v1 = (priorityFeeLamports: bigint, computeUnitLimit: number) =>
      v1Transfer(payer, bob.publicKey.toBytes(), 7n, {
        blockhash: factsOf(run.transfer(alice, bob, 1n)).lifetime,
        priorityFeeLamports,
        computeUnitLimit,
        loadedBytesLimit: 1_000_000,
      });
    for (const wire of [
      paying(alice, bob, { price: enough - 1n }),
      run.transfer(alice, bob, 1n),
      v1(99_999n, 10_000),
      v1(99_999n, 0),
    ]) {
      expect(await send(wire)).toMatchObject({
        kind: "refused",
        reason: "params_invalid",
        isFinal: true,
      });
    }
    untilItLeads();
    expect(await send(paying(alice, bob, { price: enough - 1n }))).toMatchObject({ isFinal: true });
    const good = v1(100_000n, 10_000);
    expect((await send(good)).kind).toBe("acknowledged");
    run.slots(2);
    expect(statusOf(good)?.err).toBeNull();
  });

  it("orders by fee per compute unit, then by tip, then by arrival", async () => {
    untilItLeads();
    const plain = paying(carol, bob, { tip: 90_000n });
    const small = paying(alice, bob, { tip: 10_000n });
    const large = paying(bob, carol, { tip: 20_000n });
    const alike = paying(alice, carol, { tip: 20_000n });
    const expensive = paying(carol, alice, { price: enough + 1n, tip: 1n });
    const elsewhere = paying(bob, alice, { tip: 90_000n });
    run.chain.send(plain); // by another route: its tip does not count in this auction
    for (const wire of [small, large, alike, expensive]) {
      expect((await send(wire)).kind).toBe("acknowledged");
    }
    run.chain.send(elsewhere);
    run.slots(2);
    expect(executed()).toEqual([expensive, large, alike, small, plain, elsewhere].map(signatureOf));
  });
});

describe("the port with revert protection", () => {
  it("rejects a transaction that would fail now", async () => {
    untilItLeads();
    const failing = paying(alice, bob, { lamports: 1000n * sol });
    expect(await send(failing, true)).toMatchObject({
      kind: "refused",
      reason: "preflight_failed",
      isFinal: false,
    });
    expect((await send(paying(bob, carol), true)).kind).toBe("acknowledged");
    expect((await send(failing)).kind).toBe("acknowledged");
    run.slots(2);
    expect(statusOf(failing)?.err).not.toBeNull();
  });

  it("drops a transaction that fails at execution", async () => {
    untilItLeads();
    const wires = [1n, 2n].map((more) => paying(alice, bob, { lamports: 60n * sol + more }));
    const unprotected = paying(alice, bob, { lamports: 60n * sol });
    for (const wire of wires) expect((await send(wire, true)).kind).toBe("acknowledged");
    expect((await send(unprotected)).kind).toBe("acknowledged");
    run.slots(2);
    const [first, second] = wires;
    if (!first || !second) throw new Error("expected two blocks");
    expect(statusOf(first)?.err).toBeNull();
    expect(statusOf(second)).toBeNull();
    expect(run.dropped.has(signatureOf(second))).toBe(true);
    expect(statusOf(unprotected)?.err).not.toBeNull();
  });

  it("takes part in the auction, and does not finally reject a waiting transaction", async () => {
    untilItLeads();
    const small = paying(alice, bob, { tip: 10_000n });
    const large = paying(bob, carol, { tip: 20_000n });
    for (const wire of [small, large]) expect((await send(wire, true)).kind).toBe("acknowledged");
    expect(await send(small, true)).toMatchObject({ kind: "refused", isFinal: false });
    run.slots(2);
    expect(executed()).toEqual([large, small].map(signatureOf));
  });
});
