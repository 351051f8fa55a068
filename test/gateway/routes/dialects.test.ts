// The dialect of each partner kind: requests and the interpretation of responses.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RouteConfig } from "../../../src/core/configuration/configuration.ts";
import { openRoute } from "../../../src/gateway/routes/open-route.ts";
import type { Route, RouteEvent } from "../../../src/gateway/submission/types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { Partner, routeConfig, TestOutbound } from "../../support/gateway/partner.ts";
import { fakeFacts } from "../../support/transactions/facts.ts";

let partner: Partner;
const clock = new ManualClock();
const routes: Route[] = [];

beforeEach(async () => {
  partner = await Partner.open();
});

afterEach(async () => {
  await Promise.all(routes.splice(0).map((route) => route.close()));
  await partner.close();
});

function open(config: Partial<RouteConfig> & Pick<RouteConfig, "kind">): Route {
  const route = openRoute(routeConfig(config), { clock });
  routes.push(route);
  return route;
}

const facts = fakeFacts(1);
const other = fakeFacts(2, 1000);
const wireText = Buffer.from(facts.wire).toString("base64");

async function end(
  route: Route,
  options: ConstructorParameters<typeof TestOutbound>[1] = {},
  transactions = [facts],
): Promise<RouteEvent> {
  const outbound = new TestOutbound(transactions, options);
  expect(route.offer(outbound)).toBe(true);
  return outbound.ended;
}

function lastRequest(): { url: string; type: string | undefined; json: unknown } {
  const request = partner.posts.at(-1);
  const text = request?.body.toString() ?? "";
  return {
    url: request?.url ?? "",
    type: request?.headers["content-type"],
    json: /^[[{]/.test(text) ? JSON.parse(text) : text,
  };
}

const sendTransaction = {
  jsonrpc: "2.0",
  method: "sendTransaction",
  params: [wireText, { encoding: "base64", skipPreflight: true, maxRetries: 0 }],
};

describe("swqos", () => {
  it("sends sendTransaction to the configured URL", async () => {
    const route = open({ kind: "swqos", url: `${partner.url}/rpc/?key=a%2Fb` });
    expect((await end(route)).kind).toBe("acknowledged");
    expect(lastRequest()).toEqual({
      url: "/rpc/?key=a%2Fb",
      type: "application/json",
      json: { ...sendTransaction, id: 1 },
    });
    expect(route.capabilities).toEqual({
      name: "partner",
      kind: "swqos",
      modes: ["transaction"],
      transactionBytesMax: 4096,
      mevSafe: false,
      minimumTipLamports: 0n,
      leaders: null,
    });
  });

  async function answers(write: (ids: number[]) => unknown): Promise<RouteEvent[]> {
    const route = open({ kind: "swqos", url: partner.url, callsPerRequest: 3, connections: 1 });
    partner.behaviour = ({ body }, response) => {
      const calls: { id: number }[] = JSON.parse(body.toString());
      response.end(JSON.stringify(write(calls.map(({ id }) => id))));
    };
    const outbounds = [1, 2, 3].map((number) => new TestOutbound([fakeFacts(number)]));
    for (const outbound of outbounds) route.offer(outbound);
    const ends = await Promise.all(outbounds.map(({ ended }) => ended));
    expect(partner.posts.length).toBe(1);
    return ends;
  }

  it("matches responses of an array by id, in any order", async () => {
    const ends = await answers(([first, second, third]) => [
      { id: third, error: { code: -32003, message: "signature" } },
      { id: first, result: fakeFacts(1).signature },
      {
        id: second,
        error: { code: -32602, message: "This transaction has already been processed" },
      },
    ]);
    expect(ends).toMatchObject([
      { kind: "acknowledged" },
      { kind: "acknowledged" },
      { kind: "refused", reason: "signature_invalid", isFinal: true },
    ]);
  });

  it("counts calls without a response as failed, and ignores unknown ids", async () => {
    const ends = await answers(([first]) => [
      { id: first, result: "x" },
      { id: first, error: { code: -32003 } },
      { id: 999, result: "x" },
      null,
      7,
      { id: "2", result: "x" },
    ]);
    expect(ends).toMatchObject([
      { kind: "acknowledged" },
      { kind: "failed", reason: "answer_missing" },
      { kind: "failed", reason: "answer_missing" },
    ]);
  });

  it("applies a single error to all calls of an array, never as final", async () => {
    const ends = await answers(() => ({ id: null, error: { code: -32602, message: "no arrays" } }));
    expect(ends.map((one) => ("isFinal" in one ? [one.reason, one.isFinal] : null))).toEqual([
      ["params_invalid", false],
      ["params_invalid", false],
      ["params_invalid", false],
    ]);
  });

  it("does not apply a single result to an array", async () => {
    const ends = await answers(([first]) => ({ id: first, result: "x" }));
    expect(new Set(ends.map(({ kind }) => kind))).toEqual(new Set(["failed"]));
  });

  it.each([
    [{ code: -32602, message: "bad" }, "params_invalid", true],
    [{ code: -32003, message: "bad" }, "signature_invalid", true],
    [{ code: -32015, message: "bad" }, "transaction_version", true],
    [{ code: -32013, message: "bad" }, "signature_invalid", true],
    [{ code: -32602, message: "Blockhash not found" }, "blockhash_not_found", false],
    [
      { code: -32002, message: "failed", data: { err: "BlockhashNotFound" } },
      "blockhash_not_found",
      false,
    ],
    [{ code: -32002, message: "failed", data: { err: "Other" } }, "preflight_failed", false],
    [{ code: -32005, message: "Node is behind by 42 slots" }, "node_behind", false],
    [{ code: -32005, message: "Too many requests" }, "rate_limited", false],
    [{ code: -32097, message: "global" }, "rate_limited", false],
    [{ code: -32429, message: "x" }, "rate_limited", false],
    [{ code: -32601, message: "x" }, "method_unknown", false],
    [{ code: -32600, message: "x" }, "request_invalid", false],
    [{ code: -32603, message: "x" }, "partner_error", false],
    [{ code: 12345678, message: 5 }, "partner_error", false],
    [{}, "partner_error", false],
    ["text", "partner_error", false],
  ])("reads the error %j", async (error, reason, isFinal) => {
    const route = open({ kind: "swqos", url: partner.url });
    for (const status of [200, 400]) {
      const expected = partner.requests.length + 1;
      partner.behaviour = (_request, response) => {
        response.writeHead(status).end(JSON.stringify({ id: expected, error }));
      };
      expect(await end(route)).toMatchObject({ kind: "refused", reason, isFinal });
    }
  });

  it.each([
    { code: -32002, message: "x", data: { err: "AlreadyProcessed" } },
    { code: -32602, message: "Transaction already processed" },
    "already_received",
  ])("accepts %j", async (error) => {
    const route = open({ kind: "swqos", url: partner.url });
    partner.behaviour = (_request, response) => void response.end(JSON.stringify({ id: 1, error }));
    expect((await end(route)).kind).toBe("acknowledged");
  });
});

describe("block-builder", () => {
  it("sends bundles and transactions to their own paths", async () => {
    const route = open({ kind: "block-builder", url: `${partner.url}/region/?uuid=x` });
    expect((await end(route, { mode: "bundle" }, [facts, other])).kind).toBe("acknowledged");
    const wires = [wireText, Buffer.from(other.wire).toString("base64")];
    expect(lastRequest()).toMatchObject({
      url: "/region/api/v1/bundles?uuid=x",
      json: { id: 1, method: "sendBundle", params: [wires, { encoding: "base64" }] },
    });
    await end(route);
    expect(lastRequest()).toMatchObject({
      url: "/region/api/v1/transactions?uuid=x",
      json: sendTransaction,
    });
    await end(route, { revertProtection: true });
    expect(lastRequest().url).toBe("/region/api/v1/transactions?uuid=x&bundleOnly=true");
    expect(route.capabilities).toMatchObject({
      modes: ["transaction", "bundle"],
      transactionBytesMax: 1232,
    });
  });

  it.each(["", "/", "/api/v1", "/api/v1/", "/api/v1/bundles", "/api/v1/transactions"])(
    "is reached at %j",
    async (path) => {
      const route = open({ kind: "block-builder", url: `${partner.url}${path}` });
      await end(route, { mode: "bundle" });
      expect(lastRequest().url).toBe("/api/v1/bundles");
      await end(route, { revertProtection: true });
      expect(lastRequest().url).toBe("/api/v1/transactions?bundleOnly=true");
    },
  );

  it("can be limited to bundles or transactions", () => {
    const url = partner.url;
    const bundles = open({ kind: "block-builder", url, transactions: false });
    expect(bundles.capabilities.modes).toEqual(["bundle"]);
    expect(bundles.offer(new TestOutbound([facts]))).toBe(false);
    const single = open({ kind: "block-builder", url, bundles: false });
    expect(single.capabilities.modes).toEqual(["transaction"]);
    expect(single.offer(new TestOutbound([facts], { mode: "bundle" }))).toBe(false);
  });
});

describe("scheduler", () => {
  it.each([
    ["json-rpc", "application/json"],
    ["base64", "text/plain"],
    ["bytes", "application/octet-stream"],
  ] as const)("sends %s", async (format, type) => {
    const route = open({ kind: "scheduler", url: `${partner.url}/in`, format, callsPerRequest: 4 });
    partner.behaviour = (_request, response) => void response.end('{"id":1,"result":"x"}');
    expect((await end(route)).kind).toBe("acknowledged");
    expect(lastRequest()).toMatchObject({ url: "/in", type });
    const body = partner.posts[0]?.body ?? Buffer.alloc(0);
    if (format === "json-rpc") expect(JSON.parse(body.toString())).toMatchObject(sendTransaction);
    else if (format === "base64") expect(body.toString()).toBe(wireText);
    else expect(new Uint8Array(body)).toEqual(facts.wire);
  });

  it.each([
    [200, "", "acknowledged", undefined],
    [204, "", "acknowledged", undefined],
    [200, "any text", "acknowledged", undefined],
    [200, '{"result":"x"}', "acknowledged", undefined],
    [200, '{"id":9,"error":{"code":-32003}}', "refused", "signature_invalid"],
    [200, '{"error":"tip too low"}', "refused", "partner_error"],
    [400, "blockhash not found", "refused", "blockhash_not_found"],
    [400, "already processed", "acknowledged", undefined],
    [400, "malformed", "refused", "request_invalid"],
    [500, "oh", "refused", "partner_error"],
  ])("reads status %i with %j", async (status, body, kind, reason) => {
    const route = open({ kind: "scheduler", url: partner.url, format: "bytes" });
    partner.behaviour = (_request, response) => void response.writeHead(status).end(body);
    const event = await end(route);
    expect(event.kind).toBe(kind);
    if (reason !== undefined) expect(event).toMatchObject({ reason });
  });
});

describe("alt-partner", () => {
  const [first, second] = ["So11111111111111111111111111111111111111112", "1".repeat(32)];

  it("sends to each leader's own address only", async () => {
    const elsewhere = await Partner.open();
    const route = open({
      kind: "alt-partner",
      leaders: { [first]: `${partner.url}/a?k=v`, [second]: elsewhere.url },
      queueMax: 2,
    });
    expect(route.capabilities.leaders).toEqual(new Set([first, second]));
    expect((await end(route, { leader: first })).kind).toBe("acknowledged");
    expect(lastRequest()).toMatchObject({ url: "/a?k=v", json: sendTransaction });
    await end(route, { leader: first, revertProtection: true });
    expect(lastRequest().url).toBe("/a?k=v&revert-protection=true");
    await end(route, { leader: second, revertProtection: true });
    expect(elsewhere.posts[0]?.url).toBe("/?revert-protection=true");
    for (const leader of [null, "Vote111111111111111111111111111111111111111"]) {
      expect(route.offer(new TestOutbound([facts], { leader }))).toBe(false);
    }
    expect(route.snapshot()).toMatchObject({ offered: 5n, turnedAway: 2n, acknowledged: 3n });
    // The limit applies to the whole route, not to each endpoint.
    const leaders = [first, second, first];
    const accepted = leaders.map((leader) => route.offer(new TestOutbound([facts], { leader })));
    expect(accepted).toEqual([true, true, false]);
    await elsewhere.close();
  });

  it("is up while one of its endpoints is up", async () => {
    const elsewhere = await Partner.open();
    const { url } = elsewhere;
    await elsewhere.close();
    const route = open({ kind: "alt-partner", leaders: { [first]: partner.url, [second]: url } });
    expect(await end(route, { leader: second })).toMatchObject({ reason: "connection_refused" });
    expect(route.isUp).toBe(true);
    expect(route.snapshot().lastFailure).toContain("connection_refused");
    expect(route.offer(new TestOutbound([facts], { leader: second }))).toBe(false);
    expect((await end(route, { leader: first })).kind).toBe("acknowledged");
  });

  it("batches only calls with the same path", async () => {
    const route = open({
      kind: "alt-partner",
      url: partner.url,
      callsPerRequest: 8,
      connections: 1,
    });
    const protections = [true, true, false, false, false, true];
    const outbounds = protections.map(
      (revertProtection) => new TestOutbound([facts], { revertProtection }),
    );
    for (const outbound of outbounds) expect(route.offer(outbound)).toBe(true);
    await Promise.all(outbounds.map(({ ended }) => ended));
    expect(outbounds.map(({ kinds }) => kinds)).toEqual(protections.map(() => "sent acknowledged"));
    expect(partner.posts.map(({ url }) => url)).toEqual([
      "/?revert-protection=true",
      "/",
      "/?revert-protection=true",
    ]);
  });

  it("accepts every leader with a single address", async () => {
    const route = open({ kind: "alt-partner", url: partner.url });
    expect(route.capabilities.leaders).toBeNull();
    expect((await end(route, { leader: null })).kind).toBe("acknowledged");
    expect((await end(route, { leader: first })).kind).toBe("acknowledged");
  });
});

describe("opening", () => {
  it("rejects invalid headers without quoting their values", () => {
    for (const headers of [{ "x-key": "secret\r\nx: y" }, { "Content-Length": "5" }]) {
      let message = "";
      try {
        open({ kind: "swqos", url: partner.url, headers });
      } catch (thrown) {
        message = String(thrown);
      }
      expect(message).toContain("route partner: ");
      expect(message).not.toContain("secret");
    }
    expect(() => open({ kind: "swqos" })).toThrow("expected url or leaders");
  });
});
