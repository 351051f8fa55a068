// RPC calls of the nonce rules: the sandbox's real endpoint, and invalid answers.

import { once } from "node:events";
import { createServer } from "node:http";
import { describe, expect, it } from "vitest";
import { systemProgram } from "../../../src/gateway/nonces/nonce-account.ts";
import { RpcClient } from "../../../src/platform/solana/rpc-client.ts";
import { RpcEndpoint } from "../../../src/sandbox/rpc/endpoint.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import {
  addressOf,
  alice,
  bob,
  ChainRun,
  carol,
  wallet,
  walletLamports,
} from "../../support/transactions/chain.ts";

/** A node that answers every call with `value`, and its received calls. */
async function answering(value: unknown): Promise<{ node: RpcClient; requests: unknown[] }> {
  const requests: unknown[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString());
      requests.push([method, params]);
      response.end(JSON.stringify({ jsonrpc: "2.0", id, result: value }));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing({
    close() {
      server.close();
      server.closeAllConnections();
    },
  });
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  return { node: new RpcClient(`http://127.0.0.1:${port}/`), requests };
}

const key = addressOf(alice);
const view = { data: ["AQI=", "base64"], owner: systemProgram, lamports: 5, executable: false };
const inContext = (value: unknown) => ({ context: { slot: 1 }, value });

describe("RpcClient, for nonces", () => {
  it("reads accounts, rent and blockhash from the sandbox", async () => {
    const run = await ChainRun.open({ confirmedDepth: 2 });
    const endpoint = await RpcEndpoint.open(run.chain, new ManualClock(), {
      listen: "127.0.0.1:0",
    });
    closing(endpoint);
    const node = new RpcClient(`http://${endpoint.address}`);
    run.slots(5);
    const { lookup } = run.lookupTable(alice, [bob, carol]);
    run.slots(5);
    const addresses = [addressOf(wallet(99)), addressOf(bob), lookup.key.toBase58()];
    const [none, money, large] = await node.accounts(addresses);
    expect(none).toBeNull();
    expect(money).toMatchObject({ owner: systemProgram, lamports: walletLamports });
    expect(money?.data.length).toBe(0);
    expect(large?.data.length).toBe(81); // of more
    expect(await node.minimumBalance(80)).toBe(run.chain.minimumBalanceForRentExemption(80));
    const { blockhash } = run.chain.latestBlockhash("confirmed");
    expect(blockhash).not.toBe(run.blockhash);
    expect(await node.latestBlockhash()).toBe(blockhash);
    expect(await node.accounts([])).toEqual([]);
    await expect(node.accounts(Array(101).fill(key))).rejects.toMatchObject({
      reason: "value_invalid",
    });
  });

  it("requests the commitment confirmed and only the needed data", async () => {
    const { node, requests } = await answering(inContext([view, null]));
    expect(await node.accounts([key, key])).toEqual([
      { owner: systemProgram, lamports: 5n, data: Buffer.of(1, 2), slot: 1n },
      null,
    ]);
    const options = {
      encoding: "base64",
      commitment: "confirmed",
      dataSlice: { offset: 0, length: 81 },
    };
    expect(requests).toEqual([["getMultipleAccounts", [[key, key], options]]]);
    const rich = { ...view, lamports: 2 ** 60 };
    const richAccount = await answering(inContext([rich]));
    expect((await richAccount.node.accounts([key]))[0]?.lamports).toBe(2n ** 60n);
  });

  it.each<[string, unknown]>([
    ["no context", [view]],
    ["one too few", inContext([])],
    ["one too many", inContext([view, view])],
    ["another encoding", inContext([{ ...view, data: ["", "base58"] }])],
    ["no data", inContext([{ ...view, data: undefined }])],
    ["no owner", inContext([{ ...view, owner: 7 }])],
    ["no lamports", inContext([{ ...view, lamports: undefined }])],
    ["a fraction of lamports", inContext([{ ...view, lamports: 0.5 }])],
    ["negative lamports", inContext([{ ...view, lamports: -1 }])],
    ["a text", inContext(["account"])],
  ])("refuses accounts: %s", async (_, value) => {
    const { node } = await answering(value);
    await expect(node.accounts([key])).rejects.toMatchObject({ reason: "rpc_failed" });
  });

  it.each<[string, unknown]>([
    ["a text", "1447680"],
    ["a negative number", -1],
    ["null", null],
  ])("refuses rents: %s", async (_, value) => {
    const { node } = await answering(value);
    await expect(node.minimumBalance(80)).rejects.toMatchObject({ reason: "rpc_failed" });
  });

  it.each<[string, unknown]>([
    ["null", null],
    ["no text", inContext({ blockhash: 7 })],
    ["another text", inContext({ blockhash: "0OIl" })],
    ["too few bytes", inContext({ blockhash: "11111" })],
  ])("refuses blockhashes: %s", async (_, value) => {
    const { node } = await answering(value);
    await expect(node.latestBlockhash()).rejects.toMatchObject({
      reason: "rpc_failed",
      message: expect.stringContaining("expected a blockhash"),
    });
  });
});
