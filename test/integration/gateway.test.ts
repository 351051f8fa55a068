// The gateway in the complete sandbox: stock clients, every route, every outcome, on the real chain.

import { base58 } from "@scure/base";
import {
  type Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  SystemProgram,
  sendAndConfirmTransaction,
  Transaction,
  type TransactionInstruction,
} from "@solana/web3.js";
import { JitoJsonRpcClient } from "jito-js-rpc";
import { beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { systemClock } from "../../src/core/clock.ts";
import { isObject } from "../../src/core/values.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { closing } from "../support/closing.ts";
import { freePortPair } from "../support/network/free-ports.ts";
import { until } from "../support/network/udp-receiver.ts";
import { runningSandbox } from "../support/processes/sandbox.ts";
import { stockConnection } from "../support/quic/stock-connection.ts";
import { isFullRun } from "../support/vitest/test-scope.ts";

const tipLamports = 20_000;

let sandbox: Sandbox;
let gateway: RpcClient;
let connection: Connection;
let payer: Keypair;
let tipAccount: PublicKey;

beforeEach(async () => {
  sandbox = await runningSandbox(`127.0.0.1:${await freePortPair()}`);
  gateway = new RpcClient(sandbox.gatewayUrl);
  connection = stockConnection(sandbox.gatewayUrl, "confirmed");
  payer = Keypair.generate();
  const chain = stockConnection(`http://${sandbox.endpoint.address}`, "processed");
  await chain.requestAirdrop(payer.publicKey, LAMPORTS_PER_SOL);
  await until(() => sandbox.chain.account(payer.publicKey.toBase58()) !== null, "the airdrop");
  const accounts = await gateway.call("getTipAccounts");
  tipAccount = new PublicKey(Array.isArray(accounts) ? String(accounts[0]) : "");
});

function transfer(to: PublicKey, lamports: number): TransactionInstruction {
  return SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: to, lamports });
}

let created = 0;
async function signed(...instructions: readonly TransactionInstruction[]): Promise<Buffer> {
  const { blockhash, lastValidBlockHeight } = await connection.getLatestBlockhash();
  const transaction = new Transaction({
    feePayer: payer.publicKey,
    blockhash,
    lastValidBlockHeight,
  });
  transaction.add(transfer(tipAccount, tipLamports + ++created), ...instructions).sign(payer);
  return transaction.serialize();
}

function signatureOf(wire: Buffer): string {
  return base58.encode(wire.subarray(1, 65));
}

async function statusOf(signature: string): Promise<Record<string, unknown>> {
  const status = await gateway.call("getTransactionStatus", [signature]);
  if (!isObject(status)) throw new Error(`expected a status, got ${JSON.stringify(status)}`);
  return status;
}

async function ended(signature: string, timeoutMs = 60_000): Promise<Record<string, unknown>> {
  const endMs = performance.now() + timeoutMs;
  for (;;) {
    const status = await statusOf(signature);
    if (status["state"] !== "open") return status;
    if (performance.now() > endMs) throw new Error(`no end in time: ${JSON.stringify(status)}`);
    await systemClock.sleep(100);
  }
}

function valuesOf(status: Record<string, unknown>, key: "kind" | "route"): string[] {
  const events: unknown = status["events"];
  if (!Array.isArray(events)) return [];
  return events.flatMap((event: unknown) => {
    const value = isObject(event) ? event[key] : undefined;
    return typeof value === "string" ? [value] : [];
  });
}

const kinds = (status: Record<string, unknown>) => valuesOf(status, "kind");

const base64 = (wire: Buffer) => wire.toString("base64");
const skip = { encoding: "base64", skipPreflight: true };

describe("the gateway in the sandbox", () => {
  it("lands transactions of stock web3.js with only the URL changed, and reports the timeline", async () => {
    const transaction = new Transaction().add(transfer(tipAccount, tipLamports));
    const signature = await sendAndConfirmTransaction(connection, transaction, [payer]);
    const status = await ended(signature);
    expect(status).toMatchObject({ state: "landed", method: "sendTransaction", err: null });
    expect(kinds(status)).toEqual(
      expect.arrayContaining(["received", "queued", "sent", "acknowledged", "landed"]),
    );
    expect(valuesOf(status, "route")).toEqual(
      expect.arrayContaining(["swqos", "block-builder", "scheduler"]),
    );
    expect(sandbox.chain.status(signature)?.err).toBeNull();
  });

  it("observes a landing in the relay's own shreds, and the final state at the node", async () => {
    const wires: Buffer[] = [];
    for (let i = 0; i < 8; i++) wires.push(await signed());
    sandbox.endpoint.faults.refuse = "behind";
    let seen: string | undefined;
    // One after the other, because a suspended machine drops shreds.
    for (let i = 0; seen === undefined; i++) {
      const wire = wires[Math.floor(i / 20)] ?? expect.fail("none of them was seen");
      if (i % 20 === 0) await gateway.call("sendTransaction", [base64(wire), skip]);
      await systemClock.sleep(100);
      for (const sent of wires.slice(0, Math.floor(i / 20) + 1)) {
        const status = await statusOf(signatureOf(sent));
        expect(status["state"]).toBe("open");
        if (kinds(status).includes("seen")) seen = signatureOf(sent);
      }
    }
    sandbox.endpoint.faults.refuse = "nothing";
    const status = await ended(seen);
    expect(status["state"]).toBe("landed");
    expect(kinds(status)).toEqual(expect.arrayContaining(["seen", "landed"]));
  });

  it("follows a failing transaction to landed_failed, with the chain's error", async () => {
    const wire = await signed(transfer(Keypair.generate().publicKey, 100 * LAMPORTS_PER_SOL));
    const refused = gateway.call("sendTransaction", [base64(wire), { encoding: "base64" }]);
    await expect(refused).rejects.toThrow(/-32002.*Transaction simulation failed/);
    await gateway.call("sendTransaction", [base64(wire), skip]);
    const status = await ended(signatureOf(wire));
    expect(status).toMatchObject({
      state: "landed_failed",
      err: { InstructionError: [1, { Custom: 1 }] },
    });
  });

  it.runIf(isFullRun)(
    "ends a transaction that cannot land as expired",
    { timeout: 240_000 },
    async () => {
      const transaction = new Transaction({
        feePayer: payer.publicKey,
        blockhash: base58.encode(new Uint8Array(32).fill(9)),
        lastValidBlockHeight: 1,
      });
      transaction.add(transfer(tipAccount, tipLamports)).sign(payer);
      const wire = transaction.serialize();
      await gateway.call("sendTransaction", [base64(wire), skip]);
      const status = await ended(signatureOf(wire), 200_000);
      expect(status).toMatchObject({ state: "expired", slot: null });
      expect(kinds(status).filter((kind) => kind === "expired").length).toBe(1);
    },
  );

  it("lands a bundle completely and in order, and nothing of a failing one", async () => {
    const other = Keypair.generate();
    const good = [await signed(transfer(other.publicKey, 2_000_000)), await signed()];
    const signatures = await gateway.call("sendBundle", [good.map(base64)]);
    expect(signatures).toEqual(good.map(signatureOf));
    for (const wire of good)
      expect(await ended(signatureOf(wire))).toMatchObject({ state: "landed" });
    const slots = good.map((wire) => sandbox.chain.status(signatureOf(wire))?.slot);
    expect(slots[0]).toBe(slots[1]);

    const bad = [await signed(), await signed(transfer(other.publicKey, 500 * LAMPORTS_PER_SOL))];
    await gateway.call("sendBundle", [bad.map(base64), { revertProtection: true }]);
    await systemClock.sleep(3000);
    for (const wire of bad) expect(sandbox.chain.status(signatureOf(wire))).toBeNull();
  });

  it.runIf(isFullRun)(
    "reports a bundle of five to stock jito-js-rpc as confirmed, and later as finalized",
    async () => {
      const { origin, searchParams } = new URL(sandbox.gatewayUrl);
      const client = new JitoJsonRpcClient(`${origin}/api/v1`, searchParams.get("api-key") ?? "");
      const wires: Buffer[] = [];
      while (wires.length < 5) wires.push(await signed());
      const { result } = await client.sendBundle([wires.map(base64), { encoding: "base64" }]);
      const id = String(result);
      const notifications: string[] = [];
      let landed: { readonly slot: number } | undefined;
      while (notifications.at(-1) !== "finalized") {
        const [bundle] = (await client.getBundleStatuses([[id]])).result?.value ?? [];
        if (bundle && bundle.confirmation_status !== notifications.at(-1)) {
          notifications.push(bundle.confirmation_status);
          landed = bundle;
        }
        await systemClock.sleep(50);
      }
      // A slow machine may miss the first ones; none is repeated or out of order.
      expect(notifications).toEqual(
        ["processed", "confirmed", "finalized"].filter((one) => notifications.includes(one)),
      );
      const signatures = wires.map(signatureOf);
      for (const signature of signatures) {
        const actual = { confirmationStatus: "finalized", slot: BigInt(landed?.slot ?? 0) };
        expect(sandbox.chain.status(signature)).toMatchObject(actual);
        expect(await statusOf(signature)).toMatchObject({ state: "landed", slot: landed?.slot });
      }
      const inflight = await client.getInFlightBundleStatuses([[id]]);
      expect(inflight.result?.value).toEqual([
        { bundle_id: id, status: "Landed", landed_slot: landed?.slot },
      ]);
      expect(await client.confirmInflightBundle(id)).toMatchObject({
        bundle_id: id,
        transactions: signatures,
        confirmation_status: "finalized",
      });
    },
  );

  it("sends batches with the texts of the specification", async () => {
    const wires = [await signed(), await signed(), await signed()];
    const refused = gateway.call("sendBatch", [
      [...wires, wires[0] ?? Buffer.alloc(0)].map(base64),
    ]);
    await expect(refused).rejects.toThrow(/-32600: "contains duplicate signature"$/);
    const many = gateway.call("sendBatch", [Array(26).fill(base64(wires[0] ?? Buffer.alloc(0)))]);
    await expect(many).rejects.toThrow(/"request size 26 exceeded max batch size 25"$/);
    const encoded = [
      base64(wires[0] ?? Buffer.alloc(0)),
      base58.encode(wires[1] ?? Buffer.alloc(0)),
    ];
    expect(await gateway.call("sendBatch", [encoded])).toEqual(wires.slice(0, 2).map(signatureOf));
    for (const wire of wires.slice(0, 2)) {
      expect(await ended(signatureOf(wire))).toMatchObject({
        state: "landed",
        method: "sendBatch",
      });
    }
  });

  it("pushes the timeline to its account by WebSocket", async () => {
    const url = new URL(sandbox.gatewayUrl);
    const socket = new WebSocket(`ws://${url.host}/status${url.search}`);
    closing({ close: () => socket.terminate() });
    const notifications: unknown[] = [];
    socket.on("message", (data: Buffer) => notifications.push(JSON.parse(data.toString())));
    await new Promise((resolve) => socket.once("open", resolve));
    const wire = await signed();
    await gateway.call("sendTransaction", [base64(wire), skip]);
    const own = () =>
      notifications.flatMap((one) =>
        isObject(one) && one["signature"] === signatureOf(wire) && isObject(one["event"])
          ? [String(one["event"]["kind"])]
          : [],
      );
    await until(() => own().includes("landed"), "the end");
    expect(own()[0]).toBe("received");
    expect(own().filter((kind) => kind === "landed").length).toBe(1);
  });

  it("continues by the other routes when one is down", async () => {
    sandbox.partners.swqos.faults.answer = "cut";
    sandbox.partners.scheduler.faults.answer = "cut";
    const wire = await signed();
    await gateway.call("sendTransaction", [base64(wire), skip]);
    const status = await ended(signatureOf(wire));
    expect(status["state"]).toBe("landed");
    expect(kinds(status)).toContain("failed");
  });
});
