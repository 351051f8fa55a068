// Durable nonces, pairs and alternative partners in the complete sandbox, with a stock client and the
// real chain.

import {
  ComputeBudgetProgram,
  Keypair,
  LAMPORTS_PER_SOL,
  NonceAccount,
  PublicKey,
  SystemProgram,
  Transaction,
} from "@solana/web3.js";
import { beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { isObject } from "../../src/core/values.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { until } from "../support/network/udp-receiver.ts";
import { runningSandbox } from "../support/processes/sandbox.ts";
import { stockConnection } from "../support/quic/stock-connection.ts";

const patienceMs = 60_000;

let sandbox: Sandbox;
let gateway: RpcClient;
let apiKey: string;
let payer: Keypair;
let tipAccount: PublicKey;

beforeEach(async () => {
  sandbox = await runningSandbox();
  gateway = new RpcClient(sandbox.gatewayUrl, patienceMs);
  apiKey = new URL(sandbox.gatewayUrl).searchParams.get("api-key") ?? "";
  payer = Keypair.generate();
  const chain = stockConnection(`http://${sandbox.endpoint.address}`, "processed");
  await chain.requestAirdrop(payer.publicKey, 2 * LAMPORTS_PER_SOL);
  await until(() => sandbox.chain.account(payer.publicKey.toBase58()) !== null, "the airdrop");
  const accounts = await gateway.call("getTipAccounts");
  tipAccount = new PublicKey(Array.isArray(accounts) ? String(accounts[0]) : "");
});

interface Nonce {
  readonly nonce: string;
  readonly nonceAccount: string;
  readonly nonceAuthority: string;
}

/** Like a customer: repeats the call while the account is being created. */
async function getNonce(of: string): Promise<Nonce> {
  const endMs = performance.now() + patienceMs;
  for (;;) {
    try {
      const { nonce, nonceAccount, nonceAuthority } = Object(await gateway.call("getNonce", [of]));
      return { nonce, nonceAccount, nonceAuthority };
    } catch (error) {
      if (!String(error).includes("nonce_pending") || performance.now() > endMs) throw error;
      await systemClock.sleep(200);
    }
  }
}

/** A pair with the current value, signed by the payer only. */
function oneOfPair(nonce: Nonce, microLamports: number, tipLamports: number): string {
  const transaction = new Transaction();
  transaction.feePayer = payer.publicKey;
  transaction.recentBlockhash = nonce.nonce;
  transaction.add(
    SystemProgram.nonceAdvance({
      noncePubkey: new PublicKey(nonce.nonceAccount),
      authorizedPubkey: new PublicKey(nonce.nonceAuthority),
    }),
    ComputeBudgetProgram.setComputeUnitPrice({ microLamports }),
    SystemProgram.transfer({
      fromPubkey: payer.publicKey,
      toPubkey: tipAccount,
      lamports: tipLamports,
    }),
  );
  transaction.partialSign(payer);
  return transaction.serialize({ requireAllSignatures: false }).toString("base64");
}

function pairOf(nonce: Nonce): readonly [string, string] {
  return [oneOfPair(nonce, 1_000_000, 10_000), oneOfPair(nonce, 100, 1_000_000)];
}

async function ends(signatures: readonly unknown[]): Promise<Record<string, unknown>[]> {
  const endMs = performance.now() + patienceMs;
  for (;;) {
    const statuses: unknown = await gateway.call("getTransactionStatus", [signatures]);
    if (!Array.isArray(statuses) || !statuses.every(isObject)) {
      throw new Error(`expected statuses, got ${JSON.stringify(statuses)}`);
    }
    if (statuses.every(({ state }) => state !== "open")) return statuses;
    if (performance.now() > endMs) throw new Error(`no end in time: ${JSON.stringify(statuses)}`);
    await systemClock.sleep(50);
  }
}

function lastEventOf({ events }: Record<string, unknown>): unknown {
  return Array.isArray(events) ? events.at(-1) : undefined;
}

function routesOf({ events }: Record<string, unknown>): unknown[] {
  return Array.isArray(events) ? events.map((event: unknown) => Object(event).route) : [];
}

async function sendPair(pair: readonly [string, string]): Promise<readonly unknown[]> {
  const signatures = await gateway.call("sendIdeal", [pair, { encoding: "base64" }]);
  if (Array.isArray(signatures)) return signatures;
  throw new Error(`expected two signatures, got ${JSON.stringify(signatures)}`);
}

describe("the managed nonce of a key", () => {
  it("is created once, and one of each pair lands and names the superseded one", async () => {
    const first = await getNonce(apiKey);
    const account = sandbox.chain.account(first.nonceAccount, "confirmed");
    const onChain = NonceAccount.fromAccountData(Buffer.from(account?.data ?? []));
    expect([onChain.nonce, onChain.authorizedPubkey.toBase58()]).toEqual([
      first.nonce,
      first.nonceAuthority,
    ]);
    expect(await getNonce(first.nonceAccount)).toEqual(first);

    let nonce = first;
    for (let round = 0; round < 2; round++) {
      const pair = pairOf(nonce);
      const signatures = await sendPair(pair);
      expect(new Set(signatures).size).toBe(2);
      await expect(
        sendPair(pairOf({ ...nonce, nonceAccount: tipAccount.toBase58() })),
      ).rejects.toThrow("signature_invalid");
      const statuses = await ends(signatures);
      expect(new Set(statuses.map(({ state }) => state))).toEqual(
        new Set(["landed", "superseded"]),
      );
      const landed = statuses.findIndex(({ state }) => state === "landed");
      expect(lastEventOf(statuses[1 - landed] ?? {})).toMatchObject({
        kind: "superseded",
        reason: "sibling_landed",
        sibling: signatures[landed],
      });
      expect(signatures.map((one) => sandbox.chain.status(String(one)) !== null)).toEqual(
        [0, 1].map((place) => place === landed),
      );
      for (const status of statuses) {
        const routes = routesOf(status).filter((name) => name !== undefined);
        expect(routes.length).toBeGreaterThan(0);
        const others = new Set(routes);
        for (const name of ["swqos", "block-builder"]) others.delete(name);
        expect(others).toEqual(new Set());
      }
      await until(() => {
        const data = sandbox.chain.account(nonce.nonceAccount, "confirmed")?.data ?? [];
        return NonceAccount.fromAccountData(Buffer.from(data)).nonce !== nonce.nonce;
      }, "the next value");
      await expect(sendPair(pairOf(nonce))).rejects.toThrow("nonce_stale");
      const next = await getNonce(apiKey);
      expect(next).toEqual({ ...nonce, nonce: expect.not.stringMatching(nonce.nonce) });
      nonce = next;
    }
  });

  it("is only for its key, and signs only the advance", async () => {
    const nonce = await getNonce(apiKey);
    await expect(gateway.call("getNonce", ["sw_somebody_elses"])).rejects.toThrow("value_invalid");
    await expect(gateway.call("getNonce", [payer.publicKey.toBase58()])).rejects.toThrow(
      "nonce_invalid",
    );
    const theft = new Transaction();
    theft.feePayer = payer.publicKey;
    theft.recentBlockhash = nonce.nonce;
    theft.add(
      SystemProgram.nonceAdvance({
        noncePubkey: new PublicKey(nonce.nonceAccount),
        authorizedPubkey: new PublicKey(nonce.nonceAuthority),
      }),
      ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 100 }),
      SystemProgram.transfer({
        fromPubkey: payer.publicKey,
        toPubkey: tipAccount,
        lamports: 10_000,
      }),
      SystemProgram.nonceWithdraw({
        noncePubkey: new PublicKey(nonce.nonceAccount),
        authorizedPubkey: new PublicKey(nonce.nonceAuthority),
        toPubkey: payer.publicKey,
        lamports: 1_000,
      }),
    );
    theft.partialSign(payer);
    const text = theft.serialize({ requireAllSignatures: false }).toString("base64");
    await expect(sendPair([text, pairOf(nonce)[1]])).rejects.toThrow("co_signing_refused");
    expect(await getNonce(apiKey)).toEqual(nonce);
  });
});

// ---- alternative partners -------------------------------------------------------------------

async function fetchJson(
  path: string,
): Promise<{ readonly status: number; readonly body: unknown }> {
  const answer = await fetch(new URL(path, sandbox.gatewayUrl));
  return { status: answer.status, body: await answer.json() };
}

let sent = 0;

/** A different one each time. */
async function signedForPartner(): Promise<string> {
  const chain = stockConnection(sandbox.gatewayUrl, "confirmed");
  const { blockhash, lastValidBlockHeight } = await chain.getLatestBlockhash();
  const transaction = new Transaction({
    feePayer: payer.publicKey,
    blockhash,
    lastValidBlockHeight,
  });
  transaction.add(
    ComputeBudgetProgram.setComputeUnitLimit({ units: 1_000 }),
    ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 10_000_000 }),
    SystemProgram.transfer({
      fromPubkey: payer.publicKey,
      toPubkey: tipAccount,
      lamports: 100_000 + ++sent,
    }),
  );
  transaction.sign(payer);
  return transaction.serialize().toString("base64");
}

describe("alternative partners", () => {
  const options = { revertProtection: true, enableFallback: false };

  /** Sends until a partner leads. */
  async function sentToPartner(): Promise<string> {
    const endMs = performance.now() + patienceMs;
    for (;;) {
      try {
        const [signature] = Object(
          await gateway.call("sendAlt", [await signedForPartner(), options]),
        );
        return String(signature);
      } catch (error) {
        if (performance.now() > endMs) throw error;
        await systemClock.sleep(50);
      }
    }
  }

  /** Waits until it ended, or until its partner's window is over and it cannot land any more. */
  async function settledByPartner(signature: string): Promise<Record<string, unknown>> {
    const lastSlot = sandbox.chain.currentSlot + 12n;
    for (;;) {
      const status: unknown = await gateway.call("getTransactionStatus", [signature]);
      if (!isObject(status)) throw new Error(`expected a status, got ${JSON.stringify(status)}`);
      if (status["state"] !== "open" || sandbox.chain.currentSlot > lastSlot) return status;
      await systemClock.sleep(50);
    }
  }

  it("get nothing in another slot, and the caller learns the next slot", async () => {
    const { relay } = sandbox.service;
    await until(() => relay.leaders().current !== null, "a measured slot and its leader");
    const endMs = performance.now() + patienceMs;
    for (;;) {
      const text = await signedForPartner();
      const said = await gateway.call("sendAlt", [text, options]).then(() => "sent", String);
      // It is sent in a partner's slot. The partner's port may be busy, so another slot is tried.
      if (said.includes("non_partner_slot")) {
        expect(said).toMatch(/error -32602: "non_partner_slot: slot \d+ \(leader /);
        return;
      }
      if (performance.now() > endMs) throw new Error(`expected another slot, got ${said}`);
      await systemClock.sleep(50);
    }
  });

  it("are listed by the tracker, and land transactions in their slots", async () => {
    const { chain } = sandbox;
    const partners = chain.validators().filter(({ isAltPartner }) => isAltPartner);
    const identities = partners.map(({ identity }) => identity).toSorted();
    expect(await fetchJson("/api/alt_validators")).toEqual({ status: 200, body: identities });
    const { relay } = sandbox.service;
    await until(() => relay.leaders().current !== null, "a measured slot and its leader");
    const { status, body } = await fetchJson("/api/next_alt_validator");
    expect(status).toBe(200);
    const { pubkey, leader_slot: slot, context_slot: context } = Object(body);
    expect(identities).toContain(pubkey);
    expect(chain.leaderOf(BigInt(slot))).toBe(pubkey);
    expect(slot).toBeGreaterThanOrEqual(context);
    expect(await fetchJson(`/api/next_alt_validator/${slot}`)).toMatchObject({
      body: { pubkey, leader_slot: slot },
    });

    const endMs = performance.now() + 2 * patienceMs;
    for (;;) {
      const end = await settledByPartner(await sentToPartner());
      const routes = routesOf(end).filter((name) => name !== undefined);
      expect(new Set(routes)).toEqual(new Set(["alt-partner"]));
      if (end["state"] === "landed") break;
      // Its window ended in transit; the next one's may not.
      if (performance.now() > endMs) throw new Error(`not landed: ${JSON.stringify(end)}`);
    }
  });
});
