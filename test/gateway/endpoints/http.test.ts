import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { knownCodes } from "../../../src/core/json-rpc/codes.ts";
import { readFrames } from "../../../src/gateway/endpoints/raw-endpoints.ts";
import { methods } from "../../../src/gateway/methods/method-table.ts";
import { GatewayRun, otherTipAddress, tipAddress } from "../../support/gateway/gateway.ts";
import { base64, forged, tipping, tippingV0 } from "../../support/transactions/tipping.ts";
import { turnsUntil } from "../../support/turns-until.ts";
import { isFullRun } from "../../support/vitest/test-scope.ts";
import { deferred, RawClient } from "../http/clients.ts";

const send = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "sendTransaction",
  params: [base64(tipping()), { skipPreflight: true }],
});

describe("paths", () => {
  it("GET /gethealth needs no key", async () => {
    const run = await GatewayRun.open();
    const response = await fetch(run.url("/gethealth"));
    expect(response.status).toBe(200);
    expect(await response.text()).toBe("ok");
    const head = await fetch(run.url("/gethealth"), { method: "HEAD" });
    expect([head.status, head.headers.get("content-length")]).toEqual([200, "2"]);
  });

  it("returns 404 for other paths and 405 for other methods, as JSON-RPC", async () => {
    const run = await GatewayRun.open();
    for (const path of ["/nowhere", "/relay/x", "/RELAY", "/api/v1/", "/__proto__", "//api//"]) {
      expect(await run.post(send, `${path}?api-key=good`)).toMatchObject({
        status: 404,
        body: { jsonrpc: "2.0", error: { data: { reason: "path_unknown" } }, id: null },
      });
    }
    for (const [path = "", allow = "", ...refused] of [
      ["/relay", "POST, OPTIONS", "GET", "PUT", "DELETE"],
      ["/relayb", "POST, GET, OPTIONS", "PUT", "DELETE"],
      ["/api/v1/bundles", "POST, OPTIONS", "GET", "PUT", "DELETE"],
    ]) {
      for (const method of refused) {
        const response = await fetch(run.url(path), { method });
        expect([response.status, response.headers.get("allow")]).toEqual([405, allow]);
        expect(await response.json()).toMatchObject({ error: { data: { reason: "http_method" } } });
      }
    }
    expect((await run.post("", "/gethealth")).headers.get("allow")).toBe("GET, HEAD, OPTIONS");
    for (const path of ["/status", "/relayb", "/stream"]) {
      expect((await fetch(run.url(path))).status).toBe(426);
    }
    expect(run.submitted).toEqual([]);
  });

  it("allows the headers of clients in a CORS preflight", async () => {
    const run = await GatewayRun.open();
    const plain = await fetch(run.url("/relay"), { method: "OPTIONS" });
    expect(plain.status).toBe(204);
    expect(plain.headers.get("access-control-allow-origin")).toBe("*");
    expect(plain.headers.get("access-control-allow-methods")).toBe("POST, OPTIONS");
    const allowed = plain.headers.get("access-control-allow-headers");
    for (const name of [
      "content-type",
      "solana-client",
      "api_key",
      "api-key",
      "authorization",
      "x-jito-auth",
    ]) {
      expect(allowed).toContain(name);
    }
    const headers = { "access-control-request-headers": "x-own, content-type" };
    const preflight = await fetch(run.url("/relay"), { method: "OPTIONS", headers });
    expect(preflight.headers.get("access-control-allow-headers")).toBe("x-own, content-type");
  });

  it("accepts any Content-Type and a missing one", async () => {
    const run = await GatewayRun.open();
    for (const type of ["application/json; charset=utf-8", "text/plain", "x", ""]) {
      const answer = await run.post(send, undefined, { "content-type": type });
      expect(answer).toMatchObject({ status: 200, body: { id: 1, result: expect.any(String) } });
      expect(answer.headers.get("content-type")).toBe("application/json");
    }
  });

  it("forwards read methods for keys with the scope", async () => {
    const run = await GatewayRun.open();
    expect((await run.call("getSlot", [{ commitment: "processed" }])).body).toEqual({
      jsonrpc: "2.0",
      result: 7,
      id: 1,
    });
    expect(run.read).toEqual([{ method: "getSlot", params: [{ commitment: "processed" }] }]);
    expect(await run.call("getSlot", [], "/?api-key=submitter")).toMatchObject({
      body: {
        error: { code: -32600, message: expect.stringMatching(/^scope_missing: getSlot: /) },
      },
    });
    const fault = await run.call("getFault");
    expect(fault.body).toMatchObject({ error: { code: -32603, data: { reason: "internal" } } });
    expect(fault.text).not.toContain("secret");
  });

  it("rejects unknown methods and lists the known ones", async () => {
    const run = await GatewayRun.open();
    for (const name of [
      "getNothing",
      "__proto__",
      "constructor",
      "toString",
      "hasOwnProperty",
      "",
    ]) {
      expect(await run.call(name)).toMatchObject({
        status: 200,
        body: { error: { code: -32601, message: expect.stringMatching(/^method_unknown: /) } },
      });
    }
  });
});

describe("WebSockets", () => {
  it("get a ping before a proxy closes a silent connection", async () => {
    const run = await GatewayRun.open();
    const routes = Object.values(run.gateway.serverOptions().webSockets ?? {});
    expect(routes.length).toBeGreaterThan(1);
    // Proxies wait 60 s. Both engines send the ping after at most three quarters of the idle time.
    for (const { idleSeconds } of routes) expect(idleSeconds).toBeLessThanOrEqual(60);
  });
});

describe("unusual requests", () => {
  it.each(["/relay/", "//relay", "//relay//"])("find the path %s", async (path) => {
    const run = await GatewayRun.open();
    expect(await run.call("getHealth", [], `${path}?api-key=good`)).toMatchObject({
      status: 200,
      body: { result: "ok" },
    });
  });

  it("may begin with a byte order mark, and have an id of many digits", async () => {
    const run = await GatewayRun.open();
    const id = "123456789012345678901234567890";
    const text = `\ufeff{"jsonrpc":"2.0","id":${id},"method":"getHealth"}`;
    const response = await fetch(run.url("/relay"), { method: "POST", body: text });
    expect(await response.text()).toBe(`{"jsonrpc":"2.0","result":"ok","id":${id}}`);
  });

  it("may ask for the options of the server", async () => {
    const run = await GatewayRun.open();
    const client = await RawClient.open(run.server);
    await client.write("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    await client.readUntil(/allow: GET, HEAD, POST, OPTIONS/i);
    expect(client.statuses).toEqual([204]);
  });
});

describe("regions", () => {
  it("getTipAccounts rotates this region's tip addresses", async () => {
    const run = await GatewayRun.open();
    const firsts = new Set<unknown>();
    for (let i = 0; i < 4; i++) {
      const { body } = await run.call("getTipAccounts", [], "/api/v1/getTipAccounts?uuid=good");
      const list: unknown = Object(body).result;
      expect(new Set(Array.isArray(list) ? list : [])).toEqual(
        new Set([tipAddress, otherTipAddress]),
      );
      firsts.add(Array.isArray(list) ? list[0] : null);
    }
    expect(firsts.size).toBe(2);
    for (const params of [["there"], [{ region: "there" }]]) {
      expect(await run.call("getTipAccounts", params)).toMatchObject({
        body: { result: [otherTipAddress] },
      });
    }
    expect(await run.call("getShredTipAccounts", ["there"])).toMatchObject({
      body: { result: [tipAddress] },
    });
    expect(await run.call("getTipAccounts", ["elsewhere"])).toMatchObject({
      body: {
        error: {
          message: 'value_invalid: region: unknown region "elsewhere"; expected one of here, there',
        },
      },
    });
    expect(await run.call("getTipAccounts", [5])).toMatchObject({
      body: { error: { code: -32602 } },
    });
  });

  it("getShredTipAccounts refuses while the nodes have no address in common", async () => {
    const region = { name: "here", url: null, tipAddresses: [], shredTipAddresses: [] };
    for (const [withholdsShredTips, answer] of [
      [false, { result: [] }],
      [true, { error: { data: { reason: "registration_off" } } }],
    ] as const) {
      const run = await GatewayRun.open({ regions: [region], withholdsShredTips });
      expect(await run.call("getShredTipAccounts")).toMatchObject({ body: answer });
    }
  });

  it("getRegions lists the regions", async () => {
    const run = await GatewayRun.open();
    expect(await run.call("getRegions")).toMatchObject({
      body: {
        result: [
          {
            name: "here",
            isThis: true,
            url: "http://here.example",
            tipAddresses: [tipAddress, otherTipAddress],
          },
          { name: "there", isThis: false, url: null, shredTipAddresses: [tipAddress] },
        ],
      },
    });
  });
});

describe("raw paths", () => {
  const wires = [0, 1, 2].map((amount) => tipping({ amount: BigInt(amount) }));

  function frames(list: readonly Uint8Array[]): Uint8Array {
    return Buffer.concat(
      list.flatMap((wire) => [Uint8Array.of(wire.length >> 8, wire.length & 255), wire]),
    );
  }

  it("submit a transaction with the options of the URL", async () => {
    const run = await GatewayRun.open();
    const options = "mev-protect=true&swqos-only=true&max-retries=2";
    const path = (name: string) => `/${name}?api-key=good&method=sendTransaction&${options}`;
    const [wire = new Uint8Array(0)] = wires;
    const answers = [
      await run.post(wire, path("relayb")),
      await run.post(base64(wire), path("relay2")),
      await run.post(`${base64(wire)}\n`, "/relay2?api-key=good"),
    ];
    for (const answer of answers) {
      expect(answer).toMatchObject({
        status: 200,
        body: { jsonrpc: "2.0", result: run.submitted[0]?.transactions[0]?.signature, id: 1 },
      });
      expect(answer.headers.get("x-ratelimit-limit")).toBe("50");
    }
    const preflight = { mevProtect: true, swqosOnly: true, resendsMax: 2 };
    expect(run.submitted.map(({ options: each }) => each)).toMatchObject([
      preflight,
      preflight,
      { mevProtect: false, swqosOnly: false, resendsMax: null },
    ]);
  });

  it.each(["sendBundle", "sendBatch"])("submit several transactions by %s", async (method) => {
    const run = await GatewayRun.open();
    const signatures = [expect.any(String), expect.any(String), expect.any(String)];
    const path = `?api-key=good&method=${method}`;
    const bytes = await run.post(frames(wires), `/relayb${path}`);
    const text = await run.post(wires.map(base64).join(","), `/relay2${path}`);
    expect(bytes.body).toMatchObject({ result: signatures });
    expect(text.body).toEqual(bytes.body);
  });

  it.each([
    ["/relayb?api-key=good&method=sendTransaction", "", "transaction_invalid"],
    ["/relayb?api-key=good", forged(tippingV0()), "signature_invalid"],
    ["/relay2?api-key=good", forged(tippingV0()), "value_invalid"],
    ["/relay2?api-key=good", `${base64(tipping())},`, "value_invalid"],
    ["/relayb?api-key=good", tipping({ tip: 3n }), "tip_too_low"],
    ["/relayb?api-key=good&method=sendBundle", frames([]), "value_invalid"],
    ["/relayb?api-key=good&method=sendBundle", frames([...wires, ...wires]), "value_invalid"],
    ["/relayb?api-key=good&method=sendBundle", Uint8Array.of(0), "value_invalid"],
    ["/relayb?api-key=good&method=sendBundle", Uint8Array.of(0, 9, 1), "value_invalid"],
    [
      "/relayb?api-key=good&method=sendBatch",
      frames([...wires, wires[0] ?? tipping()]),
      "batch_refused",
    ],
    ["/relay2?api-key=good&method=sendBatch", ",".repeat(25), "batch_refused"],
    ["/relayb?api-key=submitter&method=sendBatch", frames(wires), "scope_missing"],
    ["/relayb?api-key=reader", tipping(), "scope_missing"],
    ["/relayb?api-key=good&max-retries=x", tipping(), "value_invalid"],
    ["/relayb?api-key=good&mev-protect=1", tipping(), "value_invalid"],
    ["/relayb?api-key=good&method=getSlot", tipping(), "method_unknown"],
    ["/relay2?api-key=good&method=constructor", "", "method_unknown"],
  ])("reject invalid input at %s", async (path, body, reason) => {
    const run = await GatewayRun.open();
    expect(await run.post(body, path)).toMatchObject({
      status: 200,
      body: { jsonrpc: "2.0", error: { data: { reason } }, id: 1 },
    });
    expect(run.submitted).toEqual([]);
  });

  it("apply the limits of their methods", async () => {
    const run = await GatewayRun.open();
    const post = async (method: string, bytes: number) =>
      (await run.post(new Uint8Array(bytes), `/relayb?api-key=good&method=${method}`)).status;
    expect(await post("sendTransaction", 16_385)).toBe(413);
    expect(await post("sendBundle", 16_385)).toBe(200);
    expect(await post("sendBundle", 49_153)).toBe(413);
    expect(await post("sendBatch", 49_153)).toBe(200);
    const tooLarge = await run.post(new Uint8Array(16_385), "/relayb?api-key=good");
    expect(tooLarge.body).toMatchObject({ error: { data: { reason: "body_too_large" } }, id: 1 });
  });

  it("require a key", async () => {
    const run = await GatewayRun.open();
    expect((await run.post(tipping(), "/relayb")).status).toBe(401);
    expect((await run.post(base64(tipping()), "/relay2?api-key=bad")).status).toBe(401);
  });

  it("split a body into frames, whatever these contain", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 25 }), (list) => {
        expect(readFrames(frames(list), 25).map((each) => [...each])).toEqual(
          list.map((each) => [...each]),
        );
      }),
    );
  });
});

describe("ids", () => {
  it("are returned unchanged, or null if absent", async () => {
    const run = await GatewayRun.open();
    for (const id of [
      "0",
      '"0"',
      "18446744073709551615",
      "-1",
      "1.5",
      "null",
      '"\\u0000"',
      "[1]",
    ]) {
      const body = `{"jsonrpc":"2.0","id":${id},"method":"getHealth"}`;
      expect((await run.post(body)).text).toBe(`{"jsonrpc":"2.0","result":"ok","id":${id}}`);
    }
    expect(await run.post('{"jsonrpc":"2.0","method":"getHealth"}')).toMatchObject({
      body: { result: "ok", id: null },
    });
    expect(await run.post('[{"jsonrpc":"2.0","method":"getHealth"}]')).toMatchObject({
      body: [{ result: "ok", id: null }],
    });
    const ids = fc.oneof(
      fc.string(),
      fc.integer(),
      fc.bigInt({ min: -(2n ** 60n), max: 2n ** 63n }),
    );
    await fc.assert(
      fc.asyncProperty(ids, async (id) => {
        const text = typeof id === "bigint" ? String(id) : JSON.stringify(id);
        const body = `{"jsonrpc":"2.0","id":${text},"method":"getNothing"}`;
        expect((await run.post(body)).text.endsWith(`,"id":${text}}`)).toBe(true);
      }),
    );
  });
});

/** Expects a JSON-RPC response with a known code and no other field. */
function expectAnswer(text: string): void {
  const body: unknown = JSON.parse(text);
  for (const each of Array.isArray(body) ? body : [body]) {
    const keys = Object.keys(Object(each));
    expect(["jsonrpc,result,id", "jsonrpc,error,id"]).toContain(String(keys));
    const { error } = Object(each);
    if (error === undefined) continue;
    expect(knownCodes).toContain(error.code);
    expect(error.message).toEqual(expect.any(String));
    expect(error.data.reason).toEqual(expect.any(String));
    expect(error.data.reason).not.toBe("internal");
  }
}

describe("hostile callers", () => {
  it("get a well-formed response to every body", { timeout: 600_000 }, async () => {
    const run = await GatewayRun.open();
    const transaction = base64(tipping());
    const value = fc.oneof(
      { withCrossShrink: true },
      fc.jsonValue({ maxDepth: 3 }),
      fc.constantFrom(transaction, transaction.slice(4), `${transaction}=`, [transaction], {}),
      fc.record({ encoding: fc.constantFrom("base64", "base58", 5), skipPreflight: fc.boolean() }),
      fc.array(fc.constantFrom(transaction, "", 1), { maxLength: 30 }),
    );
    const names = [...Object.keys(methods), "getSlot", "__proto__", "valueOf"];
    const call = fc.record(
      {
        jsonrpc: fc.constantFrom<unknown>("2.0", "2.0", "2.0", "1.0", null),
        id: fc.jsonValue({ maxDepth: 1 }),
        method: fc.oneof(fc.constantFrom<unknown>(...names), fc.string()),
        params: fc.oneof(fc.array(value, { maxLength: 3 }), fc.jsonValue()),
      },
      { requiredKeys: [] },
    );
    const body = fc.oneof(
      fc.string(),
      fc.uint8Array({ maxLength: 200 }),
      fc.json(),
      call.map((each) => JSON.stringify(each)),
      fc.array(call, { maxLength: 4 }).map((each) => JSON.stringify(each)),
    );
    const paths = ["/relay", "/", "/relay2", "/relayb", "/api/v1/bundles"];
    await fc.assert(
      fc.asyncProperty(body, fc.constantFrom(...paths), async (bytes, path) => {
        const { text, status } = await run.post(bytes, `${path}?api-key=good`);
        expect([200, 413, 429]).toContain(status);
        expectAnswer(text);
      }),
      { numRuns: isFullRun ? 10_000 : 1500 },
    );
  });

  it.each([
    ["[".repeat(16_000), -32700],
    [
      `{"jsonrpc":"2.0","id":1,"method":"getHealth","params":${"[".repeat(9)}${"]".repeat(9)}}`,
      -32700,
    ],
    ['{"a":'.repeat(3_000), -32700],
    [`"${"\\".repeat(16_000)}`, -32700],
    ["1".repeat(16_000), -32700],
    ["", -32700],
    [Uint8Array.of(0xff, 0xfe, 0x7b), -32700],
    [`{"jsonrpc":"2.0","id":1,"method":"${"x".repeat(10_000)}"}`, -32601],
    ['{"__proto__":{"method":"getHealth"},"jsonrpc":"2.0"}', -32600],
  ])("get an error code for oversized JSON %#", async (body, code) => {
    const run = await GatewayRun.open();
    const answer = await run.post(body);
    expect(answer).toMatchObject({ status: 200, body: { error: { code } } });
    expect(answer.text.length).toBeLessThan(1000);
  });

  it("cannot delay others by slow requests; one may get 431", async () => {
    const run = await GatewayRun.open();
    const slowClient = await RawClient.open(run.server);
    await slowClient.write(
      "POST /relay?api-key=good HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n{",
    );
    const giant = await RawClient.open(run.server);
    await giant.write(`POST /relay HTTP/1.1\r\nHost: a\r\napi_key: ${"x".repeat(30_000)}\r\n\r\n`);
    expect(await giant.closed()).toMatch(/^(HTTP\/1\.1 431|$)/);
    expect((await run.post(send)).status).toBe(200);
    expect(slowClient.received).toBe("");
  });
});

describe("a caller that disconnects", () => {
  it("does not cancel its submission or affect other callers", async () => {
    const run = await GatewayRun.open();
    const hold = deferred<void>();
    run.submit = () => hold.promise;
    const head = (body: string) =>
      `POST /relay?api-key=good HTTP/1.1\r\nHost: a\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
    const disconnected = await RawClient.open(run.server);
    const openConnection = await RawClient.open(run.server);
    await disconnected.write(head(send));
    await openConnection.write(head(send));
    await turnsUntil(() => run.submitted.length === 2);
    disconnected.close();
    await turnsUntil(() => run.server.connections === 1);
    hold.resolve();
    await openConnection.readUntil(/"id":1\}/);
    await openConnection.write(head('{"jsonrpc":"2.0","id":2,"method":"getHealth"}'));
    await openConnection.readUntil(/"id":2\}/);
    expect(openConnection.statuses).toEqual([200, 200]);
    expect(disconnected.received).toBe("");
  });

  it("gets 503 with Retry-After while the server drains", async () => {
    const run = await GatewayRun.open();
    const hold = deferred<void>();
    run.submit = () => hold.promise;
    const idle = await RawClient.open(run.server);
    await idle.write("GET /gethealth HTTP/1.1\r\nHost: a\r\n\r\n");
    await idle.readUntil(/ok$/);
    const busy = run.post(send);
    await turnsUntil(() => run.submitted.length === 1);
    const drained = run.server.drain(1000, run.clock);
    await idle.write("POST /relay?api-key=good HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    const text = await idle.closed();
    expect(text).toMatch(
      /HTTP\/1\.1 503 [\s\S]*retry-after: 1[\s\S]*"jsonrpc":"2.0"[\s\S]*http_closing/i,
    );
    hold.resolve();
    expect((await busy).status).toBe(200);
    await run.clock.advance(1000);
    await drained;
  });
});
