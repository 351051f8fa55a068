// Receipts over real HTTP and WebSocket: every submitting method, every way to request one, and getReceipt.

import { once } from "node:events";
import { base58 } from "@scure/base";
import { describe, expect, it } from "vitest";
import Client from "ws";
import { type KeySet, verifyReceipt } from "../../../src/client/index.ts";
import { isObject } from "../../../src/core/values.ts";
import type {
  SubmitRequest,
  TimelineEvent,
  TransactionStatus,
} from "../../../src/gateway/submission/types.ts";
import { type Answer, apiKey, GatewayRun, noPartners } from "../../support/gateway/gateway.ts";
import { refusedHandshake } from "../../support/gateway/refused-handshake.ts";
import { until } from "../../support/network/udp-receiver.ts";
import {
  openPairs,
  pairOf,
  paramsOf,
  signatureOf,
} from "../../support/transactions/nonce-pairs.ts";
import { base64, tipping, tippingV0 } from "../../support/transactions/tipping.ts";
import { logged } from "../http/clients.ts";

const options = { encoding: "base64", skipPreflight: true };
const first = tipping();
const second = tippingV0();

/** The timeline that the pipeline has when it accepts the request. */
function accept(run: GatewayRun, events: readonly TimelineEvent[] = queued(run)): void {
  run.submit = async ({ transactions, accountId, method, receivedNs, isBundle }: SubmitRequest) => {
    for (const { signature, tipLamports } of transactions) {
      const received = { kind: "received", atNs: receivedNs, method, tipLamports } as const;
      const status: TransactionStatus = {
        signature,
        state: "open",
        method,
        bundleId: isBundle ? "b".repeat(64) : null,
        receivedNs,
        slot: null,
        reason: null,
        err: null,
        events: [received, ...events],
      };
      run.statuses.set(`${accountId} ${signature}`, status);
    }
  };
}

function queued({ clock }: GatewayRun): TimelineEvent[] {
  const at = { kind: "queued", atNs: clock.nowNs() } as const;
  return [
    { ...at, route: "partner-1", attempt: 1 },
    { ...at, route: "builder-1", attempt: 1 },
    { ...at, route: "partner-1", attempt: 2 },
  ];
}

async function opened(): Promise<GatewayRun> {
  const run = await GatewayRun.open();
  run.slot = 417n;
  accept(run);
  return run;
}

async function keysOf(run: GatewayRun): Promise<KeySet> {
  const response = await fetch(run.url("/.well-known/shredway-keys.json"));
  expect(response.headers.get("content-type")).toBe("application/jwk-set+json");
  const keys: KeySet = JSON.parse(await response.text());
  return keys;
}

function memberOf(body: unknown): string {
  const receipt = isObject(body) ? body["receipt"] : undefined;
  if (typeof receipt === "string") return receipt;
  throw new Error(`expected a receipt, got ${JSON.stringify(body)}`);
}

async function contentOf(run: GatewayRun, { body, headers }: Answer) {
  const receipt = memberOf(body);
  expect(headers.get("x-shredway-receipt")).toBe(receipt);
  return verifyReceipt(receipt, await keysOf(run));
}

function listed(run: GatewayRun, ...wires: readonly Uint8Array[]) {
  return wires.map((wire) => ({
    signature: signatureOf(wire),
    receivedAt: new Date(Number(run.clock.nowNs() / 1_000_000n)).toISOString(),
    tipLamports: expect.any(BigInt),
    routes: ["partner-1", "builder-1"],
    held: null,
    end: null,
  }));
}

describe("the receipt of a submission", () => {
  it.each([
    ["in the URL", "/relay?api-key=good&receipt=1", {}, {}],
    ["in the URL, as true", "/relay?api-key=good&receipt=true", {}, {}],
    ["in the options", "/relay?api-key=good", {}, { receipt: true }],
    ["in a header", "/relay?api-key=good", { "x-shredway-receipt": "1" }, {}],
  ])("is requested %s, and leaves the result as it is", async (_, path, headers, more) => {
    const run = await opened();
    const params = [base64(first), { ...options, ...more }];
    const call = { jsonrpc: "2.0", id: 7, method: "sendTransaction", params };
    const answer = await run.post(JSON.stringify(call), path, headers);
    expect(answer).toMatchObject({
      status: 200,
      body: { jsonrpc: "2.0", id: 7, result: signatureOf(first) },
    });
    expect(await contentOf(run, answer)).toEqual({
      statement: "accepted",
      iat: Number(run.clock.nowNs() / 1_000_000_000n),
      time: new Date(Number(run.clock.nowNs() / 1_000_000n)).toISOString(),
      slot: 417n,
      method: "sendTransaction",
      bundleId: null,
      transactions: listed(run, first),
    });
    expect(memberOf(answer.body)).not.toContain("good");
  });

  it("is absent, with an unchanged response, if nobody asks for it", async () => {
    const run = await opened();
    for (const [path, more] of [
      ["/relay?api-key=good", {}],
      ["/relay?api-key=good&receipt=0", { receipt: false }],
      ["/relay?api-key=good", { receipt: null }],
    ] as const) {
      const answer = await run.call(
        "sendTransaction",
        [base64(first), { ...options, ...more }],
        path,
      );
      expect(answer.text).toBe(`{"jsonrpc":"2.0","result":"${signatureOf(first)}","id":1}`);
      expect(answer.headers.has("x-shredway-receipt")).toBe(false);
    }
  });

  it("is refused with an invalid request for it, before anything is submitted", async () => {
    const run = await opened();
    const params = [base64(first), options];
    for (const answer of [
      await run.call("sendTransaction", params, "/relay?api-key=good&receipt=yes"),
      await run.call("sendTransaction", [base64(first), { ...options, receipt: "yes" }]),
      await run.post(
        JSON.stringify({ jsonrpc: "2.0", id: 1, method: "sendTransaction", params }),
        "/relay?api-key=good",
        { "x-shredway-receipt": "yes" },
      ),
    ]) {
      const data = { reason: "value_invalid" };
      expect(answer.body).toMatchObject({ error: { code: -32602, data } });
      expect(answer.text).toContain('invalid value \\"yes\\"');
    }
    expect(run.submitted).toEqual([]);
  });

  it.each([
    ["sendBundle", [[base64(first), base64(second)], { receipt: true }]],
    ["sendBatch", [[base64(first), base64(second)], { receipt: true }]],
  ])("%s lists all transactions in order", async (method, params) => {
    const run = await opened();
    const answer = await run.call(method, params);
    const result = [first, second].map(signatureOf);
    expect(answer.body).toMatchObject({ result });
    expect(await contentOf(run, answer)).toMatchObject({
      method,
      bundleId: method === "sendBundle" ? "b".repeat(64) : null,
      transactions: listed(run, first, second),
    });
  });

  it("below /api/v1, the result of a bundle stays its id", async () => {
    const run = await opened();
    const path = "/api/v1/bundles?uuid=good&receipt=1";
    const answer = await run.call("sendBundle", [[base64(first)], options], path);
    expect(answer.body).toMatchObject({ result: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(await contentOf(run, answer)).toMatchObject({ transactions: listed(run, first) });
  });

  it("sendAlt and sendIdeal have one as well", async () => {
    const alt = await GatewayRun.open({ partnerUnitLamports: 0n }, { tracker: noPartners });
    accept(alt);
    const params = [base64(first), { enableFallback: true, receipt: true }];
    const answer = await alt.call("sendAlt", params);
    expect(await contentOf(alt, answer)).toMatchObject({ transactions: listed(alt, first) });
    const { run } = await openPairs();
    const pair = pairOf({});
    run.submit = () => {
      accept(run);
      for (const request of run.submitted) void run.submit(request);
      return Promise.resolve();
    };
    const ideal = await run.call("sendIdeal", paramsOf(pair, { receipt: true }));
    expect(ideal.body).toMatchObject({ result: pair.map(signatureOf) });
    expect(await contentOf(run, ideal)).toMatchObject({
      method: "sendIdeal",
      transactions: listed(run, ...pair),
    });
  });

  it("of a protected transaction says why it waits", async () => {
    const run = await opened();
    accept(run, [{ kind: "held", atNs: run.clock.nowNs(), reason: "leader_denied" }]);
    const answer = await run.call("sendTransaction", [
      base64(first),
      { ...options, receipt: true },
    ]);
    expect(await contentOf(run, answer)).toMatchObject({
      transactions: [{ routes: [], held: "leader_denied" }],
    });
  });

  it("in an array of calls, each submission has its own, in the body only", async () => {
    const run = await opened();
    const call = (id: number, method: string, params: unknown) => ({
      jsonrpc: "2.0",
      id,
      method,
      params,
    });
    const calls = [
      call(1, "sendTransaction", [base64(first), options]),
      call(2, "getHealth", []),
      call(3, "sendTransaction", ["AAAA", options]),
      call(4, "sendTransaction", [base64(second), options]),
    ];
    const answer = await run.post(JSON.stringify(calls), "/relay?api-key=good&receipt=1");
    expect(answer.headers.has("x-shredway-receipt")).toBe(false);
    const bodies: unknown[] = Array.isArray(answer.body) ? answer.body : [];
    const keys = await keysOf(run);
    expect(await verifyReceipt(memberOf(bodies[0]), keys)).toMatchObject({
      transactions: listed(run, first),
    });
    expect(bodies[1]).toEqual({ jsonrpc: "2.0", id: 2, result: "ok" });
    expect(bodies[2]).toEqual({ jsonrpc: "2.0", id: 3, error: expect.anything() });
    expect(await verifyReceipt(memberOf(bodies[3]), keys)).toMatchObject({
      transactions: listed(run, second),
    });
  });

  it("raw bodies have one as well", async () => {
    const run = await opened();
    for (const [path, body] of [
      ["/relayb", first],
      ["/relay2", base64(first)],
    ] as const) {
      const answer = await run.post(body, `${path}?api-key=good&receipt=1`);
      expect(answer.body).toMatchObject({ jsonrpc: "2.0", id: 1, result: signatureOf(first) });
      expect(await contentOf(run, answer)).toMatchObject({ transactions: listed(run, first) });
    }
  });

  it("a long one is in the body only, because proxies limit headers", async () => {
    const run = await opened();
    const routes = Array.from({ length: 60 }, (_, i): TimelineEvent => {
      const route = `${"long-route-name-".repeat(3)}${i}`;
      return { kind: "queued", atNs: 0n, route, attempt: 1 };
    });
    accept(run, routes);
    const answer = await run.call("sendTransaction", [
      base64(first),
      { ...options, receipt: true },
    ]);
    expect(answer.headers.has("x-shredway-receipt")).toBe(false);
    const { transactions } = await verifyReceipt(memberOf(answer.body), await keysOf(run));
    expect(transactions[0]?.routes).toHaveLength(60);
  });

  it("is null if it cannot be made, and the accepted submission is still a success", async () => {
    const run = await opened();
    run.submit = () => Promise.resolve();
    const answer = await run.call("sendTransaction", [
      base64(first),
      { ...options, receipt: true },
    ]);
    expect(answer.body).toEqual({
      jsonrpc: "2.0",
      id: 1,
      result: signatureOf(first),
      receipt: null,
    });
    expect(answer.headers.has("x-shredway-receipt")).toBe(false);
  });

  it("is ignored by methods that submit nothing: no member and no line of the log", async () => {
    const { log, lines } = logged();
    const run = await GatewayRun.open({}, { log });
    const path = "/relay?api-key=good&receipt=1";
    for (const [method, params] of [
      ["getTransactionStatus", [signatureOf(first)]],
      ["getTransactionStatus", [signatureOf(first), { receipt: true }]],
      ["getRegions", []],
      ["getTipAccounts", []],
      ["getSlot", []],
    ] as const) {
      const { body, headers } = await run.call(method, params, path);
      expect(Object.keys(Object(body)).toSorted()).toEqual(["id", "jsonrpc", "result"]);
      expect(headers.has("x-shredway-receipt")).toBe(false);
    }
    const call = { jsonrpc: "2.0", id: 1, method: "getRegions" };
    const header = { "x-shredway-receipt": "1" };
    const { body } = await run.post(JSON.stringify(call), "/relay?api-key=good", header);
    expect(body).not.toHaveProperty("receipt");
    expect(lines).toEqual([]);
  });

  it("is signed only after the submission was accepted", async () => {
    const run = await opened();
    const order: string[] = [];
    const sign = run.signer.sign.bind(run.signer);
    run.signer.sign = (type, payload) => {
      order.push("signed");
      return sign(type, payload);
    };
    accept(run);
    const { submit } = run;
    run.submit = async (request) => {
      await new Promise((resolve) => setImmediate(resolve));
      await submit(request);
      order.push("accepted");
    };
    await run.call("sendTransaction", [base64(first), { ...options, receipt: true }]);
    expect(order).toEqual(["accepted", "signed"]);
  });
});

describe("over WebSockets", () => {
  async function ask(run: GatewayRun, path: string, params: unknown): Promise<unknown> {
    const socket = new Client(run.url(path).replace("http", "ws"));
    await once(socket, "open");
    const messages: unknown[] = [];
    socket.on("message", (data: Buffer) => messages.push(JSON.parse(data.toString())));
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "sendTransaction", params }));
    await until(() => messages.length > 0, "a response");
    socket.terminate();
    return messages[0];
  }

  it.each([
    ["/?api-key=good&receipt=1", {}],
    ["/relay?api-key=good", { receipt: true }],
    ["/stream?api-key=good&receipt=true", {}],
  ])("%s: the receipt is beside the result", async (path, more) => {
    const run = await opened();
    const answer = await ask(run, path, [base64(first), { ...options, ...more }]);
    expect(answer).toMatchObject({ result: signatureOf(first) });
    expect(await verifyReceipt(memberOf(answer), await keysOf(run))).toMatchObject({
      transactions: listed(run, first),
    });
  });

  it("the URL's protective options apply to every call", async () => {
    const run = await opened();
    await ask(run, "/?api-key=good&mev-protect=true", [base64(first), options]);
    expect(run.submitted).toMatchObject([{ options: { mevProtect: true } }]);
  });

  it("with binary messages they are refused in the handshake", async () => {
    const run = await opened();
    const { status, body } = await refusedHandshake(run.url("/relayb?api-key=good&receipt=1"));
    expect(status).toBe(400);
    expect(body).toContain("call getReceipt");
  });
});

describe("getReceipt", () => {
  const signature = base58.encode(new Uint8Array(64).fill(9));
  const landed: TransactionStatus = {
    signature,
    state: "landed",
    method: "sendTransaction",
    bundleId: null,
    receivedNs: 1_000_000_000n,
    slot: 90n,
    reason: "confirmed",
    err: null,
    events: [
      { kind: "received", atNs: 1_000_000_000n, method: "sendTransaction", tipLamports: 2n ** 60n },
      { kind: "queued", atNs: 1_000_000_000n, route: "a", attempt: 1 },
      { kind: "landed", atNs: 2_000_000_000n, reason: "confirmed", slot: 90n, err: null },
    ],
  };
  const open = {
    ...landed,
    state: "open",
    reason: null,
    events: landed.events.slice(0, 2),
  } as const;

  async function receipt(run: GatewayRun, ...params: unknown[]) {
    const { body } = await run.call("getReceipt", params);
    const result = isObject(body) ? body["result"] : undefined;
    if (typeof result !== "string") throw new Error(JSON.stringify(body));
    return verifyReceipt(result, await keysOf(run));
  }

  it("states the final state, with exact lamports", async () => {
    const run = await GatewayRun.open();
    run.statuses.set(`a_1 ${signature}`, landed);
    const [transaction] = (await receipt(run, signature)).transactions;
    expect(transaction).toMatchObject({ tipLamports: 2n ** 60n, routes: ["a"] });
    expect(transaction?.end).toEqual({
      state: "landed",
      at: "1970-01-01T00:00:02.000Z",
      reason: "confirmed",
      slot: 90n,
      err: null,
      sibling: null,
    });
    const accepted = await receipt(run, signature, { statement: "accepted" });
    expect(accepted).toMatchObject({ statement: "accepted", transactions: [{ end: null }] });
  });

  it("states failures and successors", async () => {
    const run = await GatewayRun.open();
    const err = { InstructionError: [0, { Custom: 1 }] };
    const ends: [TransactionStatus["state"], object, object][] = [
      ["landed_failed", { slot: 91n, err }, { slot: 91n, err }],
      ["superseded", { slot: 91n, err: null, sibling: "5x" }, { slot: null, sibling: "5x" }],
      ["expired", { slot: null, err: null }, { slot: null, err: null }],
    ];
    for (const [state, more, shown] of ends) {
      const end = { kind: state, atNs: 3_000_000_000n, reason: "why", ...more };
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an end of each state
      const events = [...open.events, end] as TimelineEvent[];
      run.statuses.set(`a_1 ${signature}`, { ...landed, state, reason: "why", events });
      const [transaction] = (await receipt(run, signature)).transactions;
      expect(transaction?.end).toMatchObject({ state, reason: "why", ...shown });
    }
  });

  it("rejects open, unknown and foreign submissions, and invalid signatures", async () => {
    const run = await GatewayRun.open();
    run.keys.set("other", apiKey("other", { accountId: "a_2" }));
    run.statuses.set(`a_1 ${signature}`, open);
    const refusal = (reason: string, text: string) => ({
      error: { code: -32602, message: expect.stringContaining(text), data: { reason } },
    });
    expect((await run.call("getReceipt", [signature])).body).toMatchObject(
      refusal("receipt_not_final", "is open; expected a final state"),
    );
    expect(await receipt(run, signature, { statement: "accepted" })).toMatchObject({
      transactions: [{ routes: ["a"], end: null }],
    });
    run.statuses.set(`a_1 ${signature}`, landed);
    const unknown = refusal("receipt_unknown", `no submission ${signature}`);
    const foreign = await run.call("getReceipt", [signature], "/relay?api-key=other");
    expect(foreign.body).toMatchObject(unknown);
    run.statuses.clear();
    expect((await run.call("getReceipt", [signature])).body).toMatchObject(unknown);
    for (const params of [["zz"], [], [signature, { statement: "final " }], [7]]) {
      const { body } = await run.call("getReceipt", params);
      expect(body).toMatchObject({ error: { data: { reason: "value_invalid" } } });
    }
    const reader = await run.call("getReceipt", [signature], "/relay?api-key=reader");
    expect(reader.body).toMatchObject({ error: { data: { reason: "scope_missing" } } });
  });
});
