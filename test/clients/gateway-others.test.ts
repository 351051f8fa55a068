// jito-js-rpc 0.2.2 and bare HTTP against the gateway: block-engine paths, curl, a missing node.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import {
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  SystemProgram,
  Transaction,
} from "@solana/web3.js";
import { JitoJsonRpcClient } from "jito-js-rpc";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { knownCodes } from "../../src/core/json-rpc/codes.ts";
import { closing } from "../support/closing.ts";
import { call } from "./cluster.ts";
import { fundedPayer, GatewayCluster, minimumTipLamports, tipAddress } from "./gateway-cluster.ts";

let gateway: GatewayCluster;
let client: JitoJsonRpcClient;
let connection: Connection;
let payer: Keypair;

async function signed(to: PublicKey, lamports: number): Promise<string> {
  const fromPubkey = payer.publicKey;
  const message = new Transaction().add(
    SystemProgram.transfer({ fromPubkey, toPubkey: to, lamports }),
    SystemProgram.transfer({
      fromPubkey,
      toPubkey: new PublicKey(tipAddress),
      lamports: Number(minimumTipLamports) + 1_000_000,
    }),
  );
  message.recentBlockhash = (await connection.getLatestBlockhash()).blockhash;
  message.feePayer = fromPubkey;
  message.sign(payer);
  return message.serialize().toString("base64");
}

async function landed(to: PublicKey, lamports: number): Promise<void> {
  while ((await connection.getBalance(to)) !== lamports) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** All responses about a landed bundle until "finalized", as in the examples of block engines. */
async function statusesUntilFinalized(id: string) {
  const statuses = [];
  while (statuses.at(-1)?.confirmation_status !== "finalized") {
    const { result } = await client.getBundleStatuses([[id]]);
    const [bundle] = result?.value ?? [];
    if (bundle) statuses.push(bundle);
    await systemClock.sleep(20);
  }
  return statuses;
}

beforeAll(async () => {
  gateway = await GatewayCluster.open();
  client = new JitoJsonRpcClient(`http://${gateway.address}/api/v1`, gateway.key);
  connection = new Connection(gateway.url, "confirmed");
  payer = await fundedPayer(gateway);
});

afterAll(() => {
  gateway.close();
});

describe("jito-js-rpc", () => {
  it("returns tip accounts", async () => {
    expect((await client.getTipAccounts()).result).toEqual([tipAddress]);
    expect(await client.getRandomTipAccount()).toBe(tipAddress);
  });

  it("sends a transaction as a bundle of its own", async () => {
    const to = Keypair.generate().publicKey;
    const { result } = await client.sendTxn(
      [await signed(to, LAMPORTS_PER_SOL), { encoding: "base64" }],
      true,
    );
    await landed(to, LAMPORTS_PER_SOL);
    const request = gateway.submissions.requests.at(-1);
    expect(request?.isBundle).toBe(true);
    expect(request?.transactions[0]?.signature).toBe(result);
  });

  it("sends a bundle and follows it", async () => {
    const [first, second] = [Keypair.generate().publicKey, Keypair.generate().publicKey];
    const wires = [await signed(first, LAMPORTS_PER_SOL), await signed(second, 2_000_000)];
    const { result: id } = await client.sendBundle([wires, { encoding: "base64" }]);
    expect(id).toMatch(/^[0-9a-f]{64}$/);
    const inflight = await client.getInFlightBundleStatuses([[String(id)]]);
    expect(["Pending", "Landed"]).toContain(inflight.result?.value[0]?.status);
    await landed(second, 2_000_000);
    const statuses = await statusesUntilFinalized(String(id));
    expect(statuses.at(-1)).toMatchObject({ bundle_id: id, err: { Ok: null } });
    expect(statuses.at(-1)?.transactions.length).toBe(2);
    const words = [...new Set(statuses.map((each) => each.confirmation_status))];
    expect(words.at(-1)).toBe("finalized");
    const order = ["processed", "confirmed", "finalized"] as const;
    expect(words).toEqual(order.filter((word) => words.includes(word)));
    const actual = gateway.cluster.chain.status(statuses[0]?.transactions[0] ?? "");
    expect(actual).toMatchObject({
      confirmationStatus: "finalized",
      slot: BigInt(statuses[0]?.slot ?? 0),
    });
  });
});

describe("curl", () => {
  it("returns the node's response with its own id, byte for byte", async () => {
    const body = '{"jsonrpc":"2.0","id":"mine","method":"getGenesisHash"}';
    const args = ["-sS", "-H", `api-key: ${gateway.key}`, "-d", body, `http://${gateway.address}/`];
    const { stdout } = await promisify(execFile)("curl", args);
    const { genesisHash } = gateway.cluster.chain;
    expect(stdout).toBe(`{"jsonrpc":"2.0","result":"${genesisHash}","id":"mine"}`);
  });
});

describe("refusals", () => {
  it("forwards the node's error, and rejects heavy methods", async () => {
    const wrong = await call(gateway, "getBalance", ["no key"]);
    const direct = await call(gateway.cluster, "getBalance", ["no key"]);
    expect(wrong.error).toMatchObject({
      code: direct.error?.code,
      message: `rpc_failed: ${direct.error?.message}`,
    });
    for (const method of [
      "getProgramAccounts",
      "getBlock",
      "requestAirdrop",
      "getLeaderSchedule",
    ]) {
      expect((await call(gateway, method)).error?.code).toBe(-32601);
    }
  });

  it("names the setting if no node is configured", async () => {
    const alone = closing(await GatewayCluster.open({ hasNode: false }));
    const { error } = await call(alone, "getLatestBlockhash");
    expect(error?.code).toBe(-32601);
    expect(error?.message).toContain("solana.rpc");
    expect(error?.data).toMatchObject({ reason: "upstream_missing" });
  });

  it("requires the scope", async () => {
    const submitter = closing(await GatewayCluster.open({ scopes: ["submit"] }));
    const { error } = await call(submitter, "getLatestBlockhash");
    expect(error?.data).toMatchObject({ reason: "scope_missing" });
    expect(knownCodes).toContain(error?.code);
  });
});
