import { describe, expect, it } from "vitest";
import { hashKeyText } from "../../../src/gateway/accounts/api-keys.ts";
import { KeyRing } from "../../../src/gateway/accounts/key-ring.ts";
import { Callers } from "../../../src/gateway/endpoints/callers.ts";
import { Query } from "../../../src/gateway/endpoints/query.ts";
import { FastPath } from "../../../src/gateway/fast-path/fast-path.ts";
import type { HttpHead } from "../../../src/gateway/http/types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { apiKey, GatewayRun, loopback } from "../../support/gateway/gateway.ts";
import { hasUws } from "../../support/gateway/has-uws.ts";
import { base64, tipping } from "../../support/transactions/tipping.ts";
import { turnsUntil } from "../../support/turns-until.ts";
import { RawClient } from "../http/clients.ts";

const send = JSON.stringify({
  jsonrpc: "2.0",
  id: "a",
  method: "sendTransaction",
  params: [base64(tipping()), { skipPreflight: true }],
});
const health = JSON.stringify({ jsonrpc: "2.0", id: 0, method: "getHealth" });
const loopbackHex = "00000000000000000000ffff7f000001";

function refused(problem: string, id: unknown = "a"): object {
  return {
    status: 401,
    body: {
      jsonrpc: "2.0",
      error: {
        code: -32600,
        message: `unauthorized: ${problem}; expected a valid API key (query api-key, header api_key, api-key, Authorization: Bearer or Basic, or x-jito-auth)`,
        data: { reason: "unauthorized" },
      },
      id,
    },
  };
}

describe("keys", () => {
  it.each([
    ["/relay?api-key=good", {}],
    ["/?receipt=0&api-key=good&", {}],
    ["/?api%2Dkey=%67ood", {}],
    ["/relay", { api_key: "good" }],
    ["/relay", { "api-key": "good" }],
    ["/relay", { Authorization: "Bearer good" }],
    ["/relay", { authorization: "bearer  good" }],
    ["/relay", { authorization: `Basic ${btoa("good:")}` }],
    ["/relay", { authorization: `basic ${btoa(":good")}` }],
    ["/relay", { authorization: `Basic ${btoa("good")}` }],
    ["/relay", { "x-jito-auth": "good" }],
    ["/api/v1/transactions?uuid=good", {}],
    ["/relay?api-key=good&api-key=good", { api_key: "good", authorization: "Bearer good" }],
  ])("are read from %s %j", async (path, headers) => {
    const run = await GatewayRun.open();
    expect(await run.post(send, path, headers)).toMatchObject({ status: 200, body: { id: "a" } });
    expect(run.submitted).toMatchObject([{ accountId: "a_1" }]);
  });

  it("are ignored in other places and if empty", async () => {
    const run = await GatewayRun.open();
    const nowhere: [string, Record<string, string>][] = [
      ["/relay", {}],
      ["/relay?uuid=good", {}],
      ["/relay?api-key=", { api_key: "" }],
      ["/relay?apikey=good", { authorization: "Digest good", cookie: "api-key=good" }],
    ];
    for (const [path, headers] of nowhere) {
      const answer = await run.post(send, path, headers);
      expect(answer).toMatchObject({ status: 401, body: { error: { code: -32600 }, id: "a" } });
      expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    }
    expect(run.submitted).toEqual([]);
  });

  it("get the same response for every invalid key", async () => {
    const run = await GatewayRun.open();
    run.keys.set("far", apiKey("far", { allowedRanges: ["nowhere"] }));
    for (const key of ["unknown", "GOOD", "far", "x".repeat(300), "__proto__", "a%00b"]) {
      expect(await run.post(send, `/relay?api-key=${key}`)).toMatchObject(
        refused("invalid API key: unknown, expired, revoked, or not allowed from this address"),
      );
    }
    expect(await run.post(send, "/relay?api-key=good", { api_key: "other" })).toMatchObject(
      refused("the request contains different API keys"),
    );
    expect(await run.post(send, "/relay?api-key=good&api-key=submitter")).toMatchObject(
      refused("the request contains different API keys"),
    );
    const calls = `[${send},${health}]`;
    const unknown = { error: { data: { reason: "unauthorized" } } };
    expect(await run.post(calls, "/relay?api-key=unknown")).toMatchObject({
      status: 401,
      body: [
        { ...unknown, id: "a" },
        { ...unknown, id: 0 },
      ],
    });
    for (const [path, id] of [
      ["/relay", null],
      ["/relayb", 1],
    ]) {
      const answer = await run.post("{", `${path}?api-key=unknown`);
      expect(answer).toMatchObject({ status: 401, body: { ...unknown, id } });
    }
    expect(run.submitted).toEqual([]);
    expect(run.countedKeys).toEqual([]);
  });

  it("are optional for getTipAccounts, which an address may call 10 times a second", async () => {
    const run = await GatewayRun.open();
    const call = JSON.stringify({ jsonrpc: "2.0", id: 5, method: "getTipAccounts" });
    for (let i = 0; i < 10; i++) {
      const answer = await run.post(call, i % 2 === 0 ? "/relay" : "/api/v1/getTipAccounts");
      expect(answer).toMatchObject({ status: 200, body: { id: 5 } });
      expect(Object(answer.body).result).toHaveLength(2);
    }
    expect(await run.post(call, "/relay")).toMatchObject({
      status: 429,
      body: {
        error: {
          message: expect.stringMatching(/^rate_limited: .* from this address without a key; /),
        },
        id: 5,
      },
    });
    expect((await run.post(call, "/relay?api-key=good")).status).toBe(200);
    expect((await run.post(call, "/relay?api-key=unknown")).status).toBe(401);
    expect(run.countedKeys).toHaveLength(1);
  });

  it("are accepted only from their ranges", async () => {
    const run = await GatewayRun.open();
    run.keys.set("near", apiKey("near", { allowedRanges: [loopbackHex] }));
    expect((await run.post(send, "/relay?api-key=near")).status).toBe(200);
  });

  it("are optional for getHealth, where an invalid key is still rejected", async () => {
    const run = await GatewayRun.open();
    for (const path of ["/relay", "/", "/relayb?method=getHealth", "/relay2?method=getHealth"]) {
      const body = path.includes("method") ? "" : health;
      expect(await run.post(body, path)).toMatchObject({ status: 200, body: { result: "ok" } });
      const wrong = `${path}${path.includes("?") ? "&" : "?"}api-key=wrong`;
      expect((await run.post(body, wrong)).status).toBe(401);
    }
    expect(await run.post(`[${health},${send}]`, "/relay")).toMatchObject({
      status: 401,
      body: [
        { result: "ok", id: 0 },
        { error: { code: -32600 }, id: "a" },
      ],
    });
  });
});

describe("the client's address", () => {
  const far = "00000000000000000000ffff0a000001"; // 10.0.0.1
  const v6 = "20010db8000000000000000000000001";

  async function statusWith(forwarded: string, range: string, proxies = loopback) {
    const run = await GatewayRun.open({ trustedProxies: proxies });
    run.keys.set("far", apiKey("far", { allowedRanges: [range] }));
    const headers = { "x-forwarded-for": forwarded };
    return (await run.post(send, "/relay?api-key=far", headers)).status;
  }

  it("is read from the X-Forwarded-For header of trusted proxies, from the right", async () => {
    expect(await statusWith("10.0.0.1", far)).toBe(200);
    expect(await statusWith("10.0.0.1:4711", far)).toBe(200);
    expect(await statusWith("9.9.9.9, 10.0.0.1", far)).toBe(200);
    expect(await statusWith("9.9.9.9, 10.0.0.1, 127.0.0.9", far)).toBe(200);
    expect(await statusWith("2001:db8::1", v6)).toBe(200);
    expect(await statusWith("[2001:db8::1]:80", v6)).toBe(200);
  });

  it("cannot be forged", async () => {
    expect(await statusWith("10.0.0.1, 9.9.9.9", far)).toBe(401);
    expect(await statusWith("10.0.0.1, rubbish", far)).toBe(401);
    expect(await statusWith("10.0.0.1, rubbish", loopbackHex)).toBe(200);
    expect(await statusWith("10.0.0.1", far, [])).toBe(401);
    expect(await statusWith("10.0.0.1", loopbackHex, [])).toBe(200);
  });
});

describe("failed authentication", () => {
  it("blocks an address after 30 invalid keys in a minute, except for keys in use", async () => {
    const run = await GatewayRun.open();
    expect((await run.post(send, "/relay?api-key=submitter")).status).toBe(200);
    for (let i = 0; i < 30; i++) {
      expect((await run.post(send, `/relay?api-key=guess${i}`)).status).toBe(401);
    }
    for (const key of ["guess", "good"]) {
      const answer = await run.post(send, `/relay?api-key=${key}`);
      expect(answer).toMatchObject({
        status: 429,
        body: { error: { code: -32005, data: { reason: "rate_limited" } }, id: "a" },
      });
      expect(answer.headers.get("retry-after")).toBe("60");
    }
    expect((await run.post(send, "/relay?api-key=submitter")).status).toBe(200);
    await run.clock.advance(60_000);
    expect((await run.post(send, "/relay?api-key=good")).status).toBe(200);
  });

  it.each(["node", "uws"] as const)(
    "counts once if the length of the body is unknown or large, engine %s",
    async (engine) => {
      if (engine === "uws" && !hasUws) return;
      const run = await GatewayRun.open({}, {}, engine);
      const client = await RawClient.open(run.server);
      const head = (path: string) =>
        `POST ${path}?api-key=guess HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n`;
      const body = `${send.length.toString(16)}\r\n${send}\r\n0\r\n\r\n`;
      const statuses: number[] = [];
      for (const path of [...Array<string>(20).fill("/relay"), "/shred-pay", "/relay2"]) {
        await client.write(head(path) + body);
        statuses.push(401);
        await turnsUntil(() => client.isClosed || client.statuses.length === statuses.length);
      }
      expect(client.statuses).toEqual(statuses);
      // These are refused before the handler is called.
      const large = send + " ".repeat(17_000);
      for (let i = 0; i < 7; i++) {
        expect((await run.post(large, "/relay?api-key=guess")).status).toBe(413);
      }
      // The 30th invalid key has the answer of an invalid key, and the next one that of a block.
      for (const status of [401, 429]) {
        const last = await RawClient.open(run.server);
        await last.write(head("/relay") + body);
        await turnsUntil(() => last.isClosed || last.statuses.length === 1);
        expect(last.statuses).toEqual([status]);
      }
      expect((await run.post(send, "/relay?api-key=good")).status).toBe(429);
    },
  );

  it("is counted by address or IPv6 /64", async () => {
    const run = await GatewayRun.open({ trustedProxies: loopback });
    const from = async (address: string, key: string) =>
      (await run.post(send, `/relay?api-key=${key}`, { "x-forwarded-for": address })).status;
    for (let i = 0; i < 30; i++) await from(`2001:db8::${i}`, "wrong");
    expect(await from("2001:db8::ffff", "good")).toBe(429);
    expect(await from("2001:db8:0:1::1", "good")).toBe(200);
    expect(await from("10.0.0.1", "good")).toBe(200);
  });
});

describe("rate limits", () => {
  const verdict = (remaining: number) => ({
    allowed: remaining >= 0,
    limit: 100,
    remaining: Math.max(remaining, 0),
    retryAfterSeconds: remaining < 0 ? 2 : 0,
    resetSeconds: 3,
  });

  it("are returned with every counted call", async () => {
    const run = await GatewayRun.open();
    run.verdict = () => verdict(7);
    const { headers } = await run.post(send);
    expect(headers.get("x-ratelimit-limit")).toBe("100");
    expect(headers.get("x-ratelimit-remaining")).toBe("7");
    expect(headers.get("x-ratelimit-reset")).toBe("3");
    expect(headers.get("retry-after")).toBeNull();
    expect((await run.post(health)).headers.get("x-ratelimit-limit")).toBeNull();
  });

  it("return 429 when exceeded", async () => {
    const run = await GatewayRun.open();
    run.verdict = () => verdict(-1);
    for (const answer of [
      await run.post(send),
      await run.post("{"),
      await run.post(tipping(), "/relayb?api-key=good"),
    ]) {
      expect(answer).toMatchObject({
        status: 429,
        body: { error: { code: -32005, data: { reason: "rate_limited", limit: 100 } } },
      });
      expect(answer.headers.get("retry-after")).toBe("2");
      expect(answer.headers.get("x-ratelimit-remaining")).toBe("0");
    }
    expect(run.submitted).toEqual([]);
    expect(await run.post(health)).toMatchObject({ status: 200 });
  });

  it("count every call of an array, including invalid ones, but no health calls", async () => {
    const run = await GatewayRun.open();
    const left = [1, 0, -1, -1];
    run.verdict = () => verdict(left.shift() ?? -1);
    const answer = await run.post(`[${send},${health},5,${send},${send}]`);
    expect(answer).toMatchObject({
      status: 200,
      body: [
        { id: "a", result: expect.any(String) },
        { id: 0, result: "ok" },
        { id: null, error: { code: -32600 } },
        { id: "a", error: { code: -32005 } },
        { id: "a", error: { code: -32005 } },
      ],
    });
    expect(answer.headers.get("retry-after")).toBe("2");
    expect(run.countedKeys).toHaveLength(4);
    expect(run.submitted).toHaveLength(1);
  });

  it("allow at most 25 calls in an array", async () => {
    const run = await GatewayRun.open();
    const of = (count: number) => `[${Array.from({ length: count }, () => health).join(",")}]`;
    expect((await run.post(of(25))).body).toHaveLength(25);
    expect(await run.post(of(26))).toMatchObject({ body: { id: null, error: { code: -32600 } } });
    expect(await run.post("[]")).toMatchObject({ body: { id: null, error: { code: -32600 } } });
  });
});

describe("the body limit", () => {
  function padded(method: string, bytes: number): string {
    const text = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [] });
    return text + " ".repeat(bytes - text.length);
  }

  it.each([
    ["sendTransaction", 16, "good"],
    ["getTransactionStatus", 48, "good"],
    ["getTipAccounts", 16, "good"],
    ["sendBundle", 48, "good"],
    ["sendBatch", 256, "good"],
    ["sendBatch", 16, "submitter"],
  ])("of %s may be %d kB with the key %s", async (method, kilobytes, key) => {
    const run = await GatewayRun.open();
    const bytesMax = kilobytes * 1024;
    const path = `/relay?api-key=${key}`;
    expect((await run.post(padded(method, bytesMax), path)).status).toBe(200);
    const answer = await run.post(padded(method, bytesMax + 1), path);
    expect(answer).toMatchObject({
      status: 413,
      body: {
        jsonrpc: "2.0",
        error: { code: -32600, data: { reason: "body_too_large" } },
        // The body of a request above every limit is not read.
        id: kilobytes === 256 ? null : 1,
      },
    });
  });

  it("of an array is the sum of its calls", async () => {
    const run = await GatewayRun.open();
    const four = (bytes: number) =>
      `[${Array.from({ length: 4 }, () => padded("sendTransaction", bytes)).join(",")}]`;
    expect((await run.post(four(16_000))).status).toBe(200);
    expect((await run.post(four(17_000))).status).toBe(413);
  });

  it("without a key is that of a single call", async () => {
    const run = await GatewayRun.open();
    expect((await run.post(padded("sendBatch", 16 * 1024 + 1), "/relay")).status).toBe(413);
    const longest = await run.post(padded("sendBatch", 16 * 1024), "/relay");
    expect(longest.status).toBe(401);
    expect(longest.headers.get("www-authenticate")).toBe("Bearer");
  });

  it("also applies without an announced length", async () => {
    const run = await GatewayRun.open();
    const client = await RawClient.open(run.server);
    await client.write(
      "POST /relay?api-key=good HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    const piece = "x".repeat(16_384);
    for (let i = 0; i < 17 && !client.isClosed; i++) await client.write(`4000\r\n${piece}\r\n`);
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 413 [\s\S]*"jsonrpc":"2.0"/);
  });

  it("rejects 2 MB as JSON-RPC before the body is read", async () => {
    const run = await GatewayRun.open();
    const client = await RawClient.open(run.server);
    await client.write(
      "POST /relay?api-key=good HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n",
    );
    expect(await client.closed()).toMatch(/^HTTP\/1\.1 413 [\s\S]*"reason":"body_too_large"/);
  });
});

it("never logs, quotes or stores a key", async () => {
  const run = await GatewayRun.open();
  const answers = [
    await run.post(send, "/relay?api-key=topsecret"),
    await run.post(send, "/relay", { authorization: "Bearer topsecret" }),
    await run.post(send, "/relay?api-key=topsecret&swqos-only=maybe"),
    await run.post(send, "/nowhere?api-key=topsecret"),
  ];
  for (const { text, headers } of answers) {
    expect(text).not.toContain("topsecret");
    expect(JSON.stringify([...headers])).not.toContain("topsecret");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    expect(headers.get("access-control-allow-origin")).toBe("*");
  }
});

describe("the key of a repeated head", () => {
  const text = "sw_repeated";
  const key = apiKey(text, { hash: hashKeyText(text), expiresNs: 10n ** 19n });

  /** A connection that repeats its head, and the number of keys that were hashed. */
  function opened() {
    const clock = new ManualClock();
    const ring = new KeyRing();
    ring.replace([key]);
    const hashed: string[] = [];
    const keys = {
      find: (each: string, nowNs: bigint) => {
        hashed.push(each);
        return ring.find(each, nowNs);
      },
      get: ring.get.bind(ring),
      allows: ring.allows.bind(ring),
    };
    const { publicKeys } = new GatewayRun().publicKeys;
    const callers = new Callers({ keys, publicKeys, clock, settings: { trustedProxies: [] } });
    const connection = closing(new FastPath({ warn: () => {} })).connection(() => undefined);
    if (!connection) throw new Error("expected an open fast path");
    const fastPath = { connection, head: new Uint8Array() };
    const head = {
      method: "POST",
      path: "/relay",
      query: "",
      header: (name: string) => (name === "api-key" ? text : undefined),
      remoteAddress: "127.0.0.1",
      isTls: false,
      fastPath,
    } satisfies HttpHead;
    const find = (given: HttpHead = head) => callers.find({ ...given }, new Query(""), false).key;
    return { clock, ring, hashed, head, callers, find };
  }

  it("is hashed once, and each request counts as a use", () => {
    const { clock, hashed, callers, find } = opened();
    expect([find(), find()]).toEqual([key, key]);
    clock.move(1000);
    expect(find()).toBe(key);
    expect(hashed).toEqual([text]);
    expect(callers.lastUseNs(key.id)).toBe(clock.nowNs());
  });

  it("is searched again on another connection, and without the fast path", () => {
    const { hashed, head, find } = opened();
    const { fastPath, ...plain } = head;
    find();
    find({ ...head, fastPath: { ...fastPath } });
    find(plain);
    find(plain);
    expect(hashed).toHaveLength(4);
  });

  it.each([
    ["revoked", [{ ...key, revokedNs: 1n }]],
    ["removed", []],
    ["limited to another address", [{ ...key, allowedRanges: ["192.0.2.0/24"] }]],
    ["given another text", [{ ...key, hash: hashKeyText("other") }]],
  ])("ends when it is %s", (_, keys) => {
    const { ring, find } = opened();
    expect(find()).toBe(key);
    ring.replace(keys);
    expect(find()).toBeUndefined();
  });

  it("ends when it expires", () => {
    const { clock, find } = opened();
    expect(find()).toBe(key);
    clock.move(1e12);
    clock.move(1e13);
    expect(clock.nowNs() > 10n ** 19n).toBe(true);
    expect(find()).toBeUndefined();
  });

  it("has its new limits after a change", () => {
    const { ring, find } = opened();
    find();
    const changed = { ...key, requestsPerSecond: 5 };
    ring.replace([changed]);
    expect(find()).toBe(changed);
    expect(find()).toBe(changed);
  });
});
