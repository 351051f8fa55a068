// Hostile callers over real sockets: every response is JSON-RPC with a code that stock clients
// know, nothing hangs, and the endpoint answers the next caller.

import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { knownCodes } from "../../../src/core/json-rpc/codes.ts";
import { methods } from "../../../src/sandbox/rpc/methods/table.ts";
import { subscriptionKinds } from "../../../src/sandbox/rpc/subscriptions/kinds.ts";
import { Cluster, call, isRpcAnswer, post, type RpcAnswer } from "../../clients/cluster.ts";
import { RpcSocket } from "../../clients/rpc-socket.ts";

let cluster: Cluster;

beforeAll(async () => {
  cluster = await Cluster.open({ votes: true, background: { transactionsPerSecond: 100 } });
});

afterAll(() => {
  cluster.close();
});

function expectAnswer(value: unknown): RpcAnswer {
  if (!isRpcAnswer(value)) throw new Error(`expected JSON-RPC, got ${JSON.stringify(value)}`);
  expect(value.jsonrpc).toBe("2.0");
  if (!value.error) {
    expect(value).toHaveProperty("result");
    return value;
  }
  expect(knownCodes).toContain(value.error.code);
  // -32603 would be an error of the endpoint.
  expect(value.error.code, value.error.message).not.toBe(-32603);
  expect(value.error.message).toBeTypeOf("string");
  return value;
}

async function answerTo(body: string | Uint8Array<ArrayBuffer>): Promise<RpcAnswer> {
  const response = await post(cluster, body);
  expect(response.status).toBe(200);
  return expectAnswer(await response.json());
}

async function isAlive(): Promise<boolean> {
  return (await call(cluster, "getHealth")).result === "ok";
}

const key = "11111111111111111111111111111111";
const signature = "1".repeat(64);
/** Valid and invalid parameters. */
const parameter = fc.oneof(
  fc.constantFrom<unknown>(key, signature, "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA", "all"),
  fc.constantFrom<unknown>(0, 1, -1, 0.5, 2 ** 53, 1e300, "0", "", null, true, [], {}, [[]]),
  fc.jsonValue({ maxDepth: 3 }),
  fc.base64String({ maxLength: 200 }),
  fc.constant("AQ".repeat(600)),
  fc.record(
    {
      commitment: fc.constantFrom<unknown>("processed", "confirmed", "finalized", "max", 5),
      encoding: fc.constantFrom<unknown>("base58", "base64", "jsonParsed", "base64+zstd", "json"),
      minContextSlot: fc.constantFrom<unknown>(0, 2 ** 40, "1", -1),
      dataSlice: fc.constantFrom<unknown>({ offset: 0, length: 4 }, { offset: -1 }, 7),
      filters: fc.constantFrom<unknown>(
        [{ dataSize: 80 }],
        [{ memcmp: { offset: 4, bytes: "1" } }],
        [{ memcmp: {} }],
        [{}],
        [1, 2, 3, 4, 5],
      ),
      mentions: fc.constantFrom<unknown>([key], [key, key], key),
      mint: fc.constantFrom<unknown>(key, 5),
      programId: fc.constantFrom<unknown>(key, {}),
      accounts: fc.constantFrom<unknown>({ addresses: [key] }, { addresses: 5 }, []),
      maxSupportedTransactionVersion: fc.constantFrom<unknown>(0, 1, 256, "0"),
      transactionDetails: fc.constantFrom<unknown>("full", "accounts", "signatures", "none", 1),
      skipPreflight: fc.constantFrom<unknown>(true, false, 0),
      sigVerify: fc.boolean(),
      replaceRecentBlockhash: fc.boolean(),
      range: fc.constantFrom<unknown>({ firstSlot: 0 }, { firstSlot: 9, lastSlot: 1 }, 3),
      limit: fc.constantFrom<unknown>(1, 0, 1001),
    },
    { requiredKeys: [] },
  ),
);
const parameters = fc.array(parameter, { maxLength: 4 });

describe("HTTP", () => {
  it.each(Object.keys(methods))("%s handles any parameters", async (method) => {
    await fc.assert(
      fc.asyncProperty(parameters, async (params) => {
        await answerTo(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
      }),
      { numRuns: 10 },
    );
  });

  it("answers invalid requests", async () => {
    const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Uint8Array.from(array));
    await fc.assert(
      fc.asyncProperty(bytes, async (body) => {
        const { error, id } = await answerTo(body);
        expect(error?.code === -32700 || error?.code === -32600).toBe(true);
        expect(id).toBeNull();
      }),
    );
    expect((await answerTo(Uint8Array.of(0x22, 0xff, 0x22))).error?.code).toBe(-32700);
  });

  it("limits nesting, bodies and arrays of calls", async () => {
    expect((await answerTo("[".repeat(250_000))).error?.code).toBe(-32700);
    expect((await answerTo('{"a":'.repeat(50_000))).error?.code).toBe(-32700);
    const large = await post(cluster, `"${"a".repeat(256 * 1024)}"`);
    expect(large.status).toBe(413);
    const one = '{"jsonrpc":"2.0","id":7,"method":"getSlot"}';
    const many = await post(cluster, `[${Array.from({ length: 100 }, () => one).join(",")}]`);
    const answers: unknown = await many.json();
    expect(Array.isArray(answers) && answers.length).toBe(100);
    const tooMany = `[${Array.from({ length: 101 }, () => one).join(",")}]`;
    expect((await answerTo(tooMany)).error?.code).toBe(-32600);
    expect(await isAlive()).toBe(true);
  });

  it("answers unknown methods with -32601", async () => {
    const names = [
      "",
      "getConfirmedBlock",
      "__proto__",
      "constructor",
      "toString",
      "slotSubscribe",
    ];
    for (const name of names) expect((await call(cluster, name)).error?.code).toBe(-32601);
  });

  it("answers other HTTP methods, paths and content types", async () => {
    const preflight = await fetch(cluster.url, {
      method: "OPTIONS",
      headers: { "access-control-request-headers": "content-type,solana-client" },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-origin")).toBe("*");
    expect(preflight.headers.get("access-control-allow-headers")).toContain("solana-client");
    const injected = await fetch(cluster.url, {
      method: "OPTIONS",
      headers: { "access-control-request-headers": "a\tb" },
    });
    expect(injected.headers.get("access-control-allow-headers")).toBe(
      "content-type, solana-client",
    );
    expect((await fetch(cluster.url)).status).toBe(405);
    expect((await fetch(`${cluster.url}/other`)).status).toBe(404);
    expect((await post(cluster, "{}", "text/plain")).status).toBe(415);
    const charset = await post(cluster, "{}", "application/json; charset=utf-8");
    expect(charset.status).toBe(200);
    const health = await fetch(`${cluster.url}/health`);
    expect([health.status, await health.text()]).toEqual([200, "ok"]);
  });
});

describe("WebSocket", () => {
  it("answers any message with a known code, and continues", async () => {
    const socket = await RpcSocket.open(cluster.webSocketUrl);
    const method = fc
      .tuple(
        fc.constantFrom(...Object.keys(subscriptionKinds), "vote", "__proto__"),
        fc.constantFrom("Subscribe", "Unsubscribe"),
      )
      .map((parts) => parts.join(""));
    await fc.assert(
      fc.asyncProperty(method, parameters, async (name, params) => {
        expectAnswer(await socket.call(name, params));
      }),
      { numRuns: 300 },
    );
    expect((await socket.answerTo("{ garbage", null)).error?.code).toBe(-32700);
    expect((await socket.answerTo("[".repeat(60_000), null)).error?.code).toBe(-32700);
    socket.close();
    expect(await isAlive()).toBe(true);
  });

  it("disconnects callers that send too much at once", async () => {
    const socket = await RpcSocket.open(cluster.webSocketUrl);
    socket.raw.send("x".repeat(65 * 1024));
    expect(await socket.closed).toBe(1009);
  });
});
