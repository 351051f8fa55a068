// The RPC client against a server with configurable answers: valid, invalid, late, endless.

import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import { RpcClient } from "../../../src/platform/solana/rpc-client.ts";
import { closing } from "../../support/closing.ts";

type Answer = (id: number, response: ServerResponse, method: string, params: unknown) => void;

/** A node that answers every call with `answer`. */
async function openServer(answer: Answer): Promise<AddressInfo> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString());
      answer(id, response, method, params);
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
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on a port
  return server.address() as AddressInfo;
}

/** A client of such a node, with a key in the URL. */
async function openNode(answer: Answer, timeoutMs = 5000): Promise<RpcClient> {
  const { port } = await openServer(answer);
  return new RpcClient(`http://127.0.0.1:${port}/secret-path?api-key=secret`, timeoutMs);
}

const result =
  (value: unknown): Answer =>
  (id, response) =>
    void response.end(JSON.stringify({ jsonrpc: "2.0", id, result: value }));

const info = { epoch: 3, absoluteSlot: 1300, slotIndex: 4, slotsInEpoch: 432, blockHeight: 1 };

describe("RpcClient", () => {
  it("follows no redirect", async () => {
    let calls = 0;
    const target = await openServer((id, response) => {
      calls++;
      result(7)(id, response, "", []);
    });
    const node = await openNode((_, response) =>
      response.writeHead(307, { location: `http://127.0.0.1:${target.port}/` }).end(),
    );
    await expect(node.slot()).rejects.toMatchObject({ reason: "rpc_failed" });
    expect(calls).toBe(0);
  });

  it("reads the answers of nodes", async () => {
    expect(await (await openNode(result(1234))).slot()).toBe(1234n);
    expect(await (await openNode(result(info))).epochInfo()).toEqual({
      epoch: 3n,
      absoluteSlot: 1300n,
      slotIndex: 4n,
      slotsInEpoch: 432n,
    });
    const node = await openNode(result({ abc: [0, 1], def: [] }));
    expect(await node.leaderSchedule(5n)).toEqual(
      new Map([
        ["abc", [0, 1]],
        ["def", []],
      ]),
    );
    expect(await (await openNode(result(null))).leaderSchedule(5n)).toBeNull();
  });

  it.each<[string, Answer, RegExp]>([
    [
      "another id",
      (_, response) => response.end('{"jsonrpc":"2.0","id":77,"result":1}'),
      /with id 1/,
    ],
    ["no result", (id, response) => response.end(JSON.stringify({ id })), /with id 1/],
    ["no JSON", (_, response) => response.end("<html>"), /JSON/],
    ["an array", (_, response) => response.end("[]"), /with id 1/],
    ["a text", result("12"), /expected an integer 0 to 2\^53 - 1, got "12"/],
    ["a fraction", result(1.5), /got 1.5/],
    ["a negative number", result(-1), /got -1/],
    ["a number too large", result(2 ** 53), /got 9007199254740992/],
    ["a status", (_, response) => response.writeHead(502).end("{}"), /status 200, got 502/],
    ["nothing", (_, response) => response.destroy(), /getSlot at 127.0.0.1/],
    [
      "an error",
      (id, response) =>
        response.end(JSON.stringify({ id, error: { code: -32005, message: "behind" } })),
      /error -32005: "behind"/,
    ],
  ])("refuses %s", async (_, answer, message) => {
    const node = await openNode(answer);
    const failure = node.slot();
    await expect(failure).rejects.toThrow(message);
    await expect(failure).rejects.toMatchObject({ reason: "rpc_failed" });
    await expect(failure).rejects.not.toThrow(/secret/);
  });

  it("never includes its URL in an error", async () => {
    const echo: Answer = (id, response) => {
      const message =
        "no plan for /secret-path?api-key=secret-key, user-name:pass-word, or secret-path";
      response.end(JSON.stringify({ id, error: { code: -32403, message } }));
    };
    const { port } = await openServer(echo);
    const url = `http://user-name:pass-word@127.0.0.1:${port}/secret-path?api-key=secret-key`;
    const failure = await new RpcClient(url).slot().catch((thrown: unknown) => thrown);
    const text = inspect(failure, { depth: 10 });
    expect(text).toContain("error -32403");
    for (const secret of ["secret-path", "secret-key", "user-name", "pass-word"])
      expect(text).not.toContain(secret);
  });

  it("sends user and password as basic authorization", async () => {
    const seen: (string | undefined)[] = [];
    const { port } = await openServer((id, response) => {
      seen.push(response.req.headers.authorization);
      response.end(JSON.stringify({ id, result: 7 }));
    });
    expect(await new RpcClient(`http://me:p%40ss@127.0.0.1:${port}/`).slot()).toBe(7n);
    expect(await new RpcClient(`http://127.0.0.1:${port}/`).slot()).toBe(7n);
    expect(seen).toEqual([`Basic ${Buffer.from("me:p@ss").toString("base64")}`, undefined]);
  });

  it("rejects invalid schedules and epochs", async () => {
    await expect((await openNode(result({ a: ["x"] }))).leaderSchedule(1n)).rejects.toThrow("slot");
    await expect((await openNode(result([1]))).leaderSchedule(1n)).rejects.toThrow("an object");
    const beyond = await openNode(result({ ...info, slotIndex: 432 }));
    await expect(beyond.epochInfo()).rejects.toThrow("within the epoch");
    await expect((await openNode(result(null))).epochInfo()).rejects.toThrow("an integer");
  });

  it("limits time and size of an answer", async () => {
    const silent = await openNode(() => {}, 50);
    await expect(silent.slot()).rejects.toThrow(/time/);
    const endless = await openNode((_, response) => {
      const chunk = Buffer.alloc(1 << 20, 32);
      const write = () => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on("drain", write);
      write();
    });
    await expect(endless.slot()).rejects.toThrow("at most 65536 bytes, got more");
  });

  it("accepts only HTTP URLs, and quotes no key in the error", () => {
    for (const url of ["ftp://secret@host/", "secret", "ws://host/secret"]) {
      expect(() => new RpcClient(url)).toThrow("expected a URL of http or https");
      expect(() => new RpcClient(url)).not.toThrow(/secret/);
    }
  });
});

describe("RpcClient, for outcomes", () => {
  const inContext = (value: unknown) => result({ context: { slot: 9 }, value });
  const key = "So11111111111111111111111111111111111111112";
  const status = { slot: 7, confirmations: 1, err: null, confirmationStatus: "confirmed" };

  it("reads statuses in order, without a history search", async () => {
    const requests: unknown[] = [];
    const err = { InstructionError: [0, { Custom: 1 }] };
    const node = await openNode((id, response, _, params) => {
      requests.push(params);
      const value = [status, null, { ...status, err, confirmationStatus: "processed" }];
      response.end(JSON.stringify({ id, result: { context: { slot: 9 }, value } }));
    });
    expect(await node.signatureStatuses(["a", "b", "c"])).toEqual([
      { slot: 7n, err: null, commitment: "confirmed" },
      null,
      { slot: 7n, err, commitment: "processed" },
    ]);
    expect(requests).toEqual([[["a", "b", "c"], { searchTransactionHistory: false }]]);
    await node.signatureStatuses(["a", "b", "c"], { searchHistory: true });
    expect(requests.pop()).toEqual([["a", "b", "c"], { searchTransactionHistory: true }]);
    expect(await node.signatureStatuses([])).toEqual([]);
    const many = Array.from({ length: 257 }, () => "a");
    await expect(node.signatureStatuses(many)).rejects.toThrow("at most 256 signatures, got 257");
    expect(requests.length).toBe(1);
  });

  it("returns the statuses of a node without history, and other errors unchanged", async () => {
    const requests: unknown[] = [];
    let code = -32011;
    const node = await openNode((id, response, _, params) => {
      requests.push(Object(params)[1]);
      const searches = Object(params)[1].searchTransactionHistory;
      const answer = searches
        ? { error: { code, message: "Transaction history is not available from this node" } }
        : { result: { context: {}, value: [status] } };
      response.end(JSON.stringify({ id, ...answer }));
    });
    expect(await node.signatureStatuses(["a"], { searchHistory: true })).toEqual([
      { slot: 7n, err: null, commitment: "confirmed" },
    ]);
    const [searched, recent] = [true, false].map((one) => ({ searchTransactionHistory: one }));
    expect(requests).toEqual([searched, recent]);
    await expect(node.landingStates(["a"], true)).rejects.toThrow("-32011");
    // Its slot is needed, and missing.
    await expect(node.landingStates(["a"], false)).rejects.toThrow("expected an integer");
    requests.length = 2;
    code = -32005;
    await expect(node.signatureStatuses(["a"], { searchHistory: true })).rejects.toThrow("-32005");
    expect(requests.length).toBe(3);
  });

  it.each<[string, unknown, RegExp]>([
    ["too few", [status], /expected 2 statuses, got 1/],
    ["none", null, /expected 2 statuses, got null/],
    ["a text", [status, "landed"], /expected a status, got "landed"/],
    ["no commitment", [status, { ...status, confirmationStatus: "maybe" }], /confirmationStatus/],
    ["no err", [status, { slot: 1, confirmationStatus: "confirmed" }], /expected err/],
    ["no slot", [status, { ...status, slot: "7" }], /expected an integer/],
  ])("refuses statuses: %s", async (_, value, message) => {
    const failure = (await openNode(inContext(value))).signatureStatuses(["a", "b"]);
    await expect(failure).rejects.toThrow(message);
    await expect(failure).rejects.toMatchObject({ reason: "rpc_failed" });
  });

  it("requests the validity of a blockhash at confirmed", async () => {
    const requests: unknown[] = [];
    const node = await openNode((id, response, _, params) => {
      requests.push(params);
      const context = { slot: 6 + requests.length };
      response.end(JSON.stringify({ id, result: { context, value: requests.length === 1 } }));
    });
    expect(await node.blockhashState(key)).toEqual({ isValid: true, slot: 7n });
    expect(await node.blockhashState(key)).toEqual({ isValid: false, slot: 8n });
    expect(requests[0]).toEqual([key, { commitment: "confirmed" }]);
    const wrong = await openNode(inContext("true"));
    await expect(wrong.blockhashState(key)).rejects.toThrow("expected true or false");
    const timeless = await openNode((id, response) =>
      response.end(JSON.stringify({ id, result: { context: {}, value: false } })),
    );
    await expect(timeless.blockhashState(key)).rejects.toThrow("expected an integer");
  });

  const nonceData = (change: (data: Buffer) => void = () => {}): Buffer => {
    const data = Buffer.alloc(80);
    data.writeUInt32LE(1, 0);
    data.writeUInt32LE(1, 4);
    data.fill(7, 40, 72);
    change(data);
    return data;
  };
  const systemProgram = "11111111111111111111111111111111";
  const account = (data: Buffer, owner = systemProgram) =>
    inContext({ data: [data.toString("base64"), "base64"], owner, lamports: 1 });

  it("reads the value of a durable nonce", async () => {
    const text = pubkeyOf(new Uint8Array(32).fill(7));
    expect(await (await openNode(account(nonceData()))).nonceValue(key)).toBe(text);
    expect(await (await openNode(inContext(null))).nonceValue(key)).toBeNull();
  });

  it.each<[string, Answer]>([
    ["another owner", account(nonceData(), key)],
    ["an old version", account(nonceData((data) => data.writeUInt32LE(0, 0)))],
    ["not initialised", account(nonceData((data) => data.writeUInt32LE(0, 4)))],
    ["another size", account(Buffer.concat([nonceData(), Buffer.alloc(1)]))],
  ])("takes no other account for a nonce: %s", async (_, answer) => {
    expect(await (await openNode(answer)).nonceValue(key)).toBeNull();
  });

  it.each<[string, Answer]>([
    ["no context", result(null)],
    ["another encoding", inContext({ data: ["", "base58"], owner: systemProgram })],
    ["no data", inContext({ owner: systemProgram })],
    ["no owner", inContext({ data: ["", "base64"] })],
    ["a text", inContext("account")],
  ])("refuses accounts: %s", async (_, answer) => {
    await expect((await openNode(answer)).nonceValue(key)).rejects.toMatchObject({
      reason: "rpc_failed",
    });
  });
});

describe("RpcClient, for landed transactions", () => {
  const signature = "5".repeat(88);
  const [tip, other, payer] = ["tip", "other", "payer"];
  const landed = {
    slot: 7,
    blockTime: null,
    version: 0,
    transaction: { signatures: [signature, "x"], message: { accountKeys: [payer, tip, other] } },
    // The last one is from a lookup table.
    meta: { err: null, preBalances: [90, 5, 1, 3], postBalances: [60, 25, 0, 13] },
  };
  const ask = (node: RpcClient, ...addresses: string[]) =>
    node.landedTransaction(signature, new Set(addresses));

  it("reads the gain of each address at confirmed, for every version", async () => {
    const requests: unknown[] = [];
    const node = await openNode((id, response, method, params) => {
      requests.push(method, params);
      response.end(JSON.stringify({ id, result: landed }));
    });
    expect(await ask(node, tip, "elsewhere")).toEqual({ slot: 7n, err: null, gainLamports: 20n });
    const options = {
      encoding: "json",
      commitment: "confirmed",
      maxSupportedTransactionVersion: 1,
    };
    expect(requests).toEqual(["getTransaction", [signature, options]]);
    expect(await ask(node, tip, other)).toMatchObject({ gainLamports: 19n });
    expect(await ask(node, other)).toMatchObject({ gainLamports: -1n });
    expect(await ask(node)).toMatchObject({ gainLamports: 0n });
    expect(await ask(await openNode(result(null)), tip)).toBeNull();
    const err = { InstructionError: [0, { Custom: 1 }] };
    const failed = { ...landed, meta: { ...landed.meta, err } };
    expect(await ask(await openNode(result(failed)), tip)).toMatchObject({ err });
  });

  const withMeta = (meta: unknown) => ({ ...landed, meta });
  const withKeys = (accountKeys: unknown) => ({
    ...landed,
    transaction: { ...landed.transaction, message: { accountKeys } },
  });
  it.each<[string, unknown, RegExp]>([
    ["a text", "landed", /expected a transaction with its meta, got "landed"/],
    ["an array", [landed], /expected a transaction/],
    ["no meta", withMeta(null), /expected a transaction with its meta/],
    ["no err", withMeta({ preBalances: [], postBalances: [] }), /with its meta/],
    ["no message", { ...landed, transaction: { signatures: [signature] } }, /with its meta/],
    ["no slot", { ...landed, slot: "7" }, /expected an integer 0 to 2\^53 - 1, got "7"/],
    [
      "another transaction",
      { ...landed, transaction: { ...landed.transaction, signatures: ["y"] } },
      /expected signature 5+, got \["y"\]/,
    ],
    ["no signature", { ...landed, transaction: { message: {} } }, /expected signature/],
    ["no keys", withKeys(undefined), /expected keys and balances/],
    ["keys of another kind", withKeys([{ pubkey: tip }]), /expected keys in base58/],
    ["no balances", withMeta({ err: null, preBalances: [1, 2, 3] }), /keys and balances/],
    [
      "too few",
      withMeta({ err: null, preBalances: [1, 2], postBalances: [1] }),
      /expected an integer/,
    ],
    [
      "balances as texts",
      withMeta({ err: null, preBalances: [1, "2", 3], postBalances: [1, 2, 3] }),
      /got "2"/,
    ],
    [
      "negative ones",
      withMeta({ err: null, preBalances: [1, -2, 3], postBalances: [1, 2, 3] }),
      /got -2/,
    ],
  ])("refuses %s", async (_, value, message) => {
    const failure = ask(await openNode(result(value)), tip);
    await expect(failure).rejects.toThrow(message);
    await expect(failure).rejects.toMatchObject({ reason: "rpc_failed" });
  });

  it("limits the size of an answer", async () => {
    const large = { ...landed, more: "x".repeat(1_900_000) };
    expect(await ask(await openNode(result(large)), tip)).toMatchObject({ gainLamports: 20n });
    const endless = { ...landed, more: "x".repeat(2_200_000) };
    await expect(ask(await openNode(result(endless)), tip)).rejects.toThrow(
      "at most 2097152 bytes",
    );
  });
});
