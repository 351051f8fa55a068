// URL parameters over real HTTP: a path refuses the ones that it does not have, those of another method, and
// repeated ones. None of them is ignored.

import { describe, expect, it } from "vitest";
import { checkNames, Query } from "../../../src/gateway/endpoints/query.ts";
import { TipHistory } from "../../../src/tips/tip-history.ts";
import { fixedTipFloor } from "../../support/gateway/fixed-tip-floor.ts";
import { GatewayRun } from "../../support/gateway/gateway.ts";
import { refusedHandshake } from "../../support/gateway/refused-handshake.ts";
import { SubmissionClient } from "../../support/gateway/submission-client.ts";
import { framed } from "../../support/quic/ingress-clients.ts";
import { base64, tipping } from "../../support/transactions/tipping.ts";

const raw =
  "api-key, mev-protect, swqos-only, revert-protection, receipt, method, max-retries, min-context-slot, enable-fallback";
const calls = "api-key, mev-protect, swqos-only, revert-protection, receipt";

function openTips(): Promise<GatewayRun> {
  return GatewayRun.open({}, { tipFloor: fixedTipFloor, tipHistory: new TipHistory(() => 0) });
}

function unknown(name: string, known: string): string {
  return `unknown URI parameter "${name}"; expected one of ${known}`;
}

function refusal(message: string) {
  return {
    status: 200,
    body: {
      error: {
        code: -32602,
        message: expect.stringContaining(message),
        data: { reason: "value_invalid" },
      },
    },
  };
}

describe.each(["relayb", "relay2"])("/%s", (path) => {
  const wire = tipping();
  const body = path === "relayb" ? wire : base64(wire);
  const several = path === "relayb" ? framed(wire) : base64(wire);
  const base = `/${path}?api-key=good`;

  it.each([
    ["&maxRetries=0", unknown("maxRetries", raw)],
    ["&anti-mev=true", unknown("anti-mev", raw)],
    ["&max-retries=0&max-retries=1", 'URI parameter max-retries: expected one value, got "0", "1"'],
    ["&mev-protect=true&mev-protect=true", "URI parameter mev-protect: expected one value"],
    ["&swqos-only=false&swqos-only=true", "URI parameter swqos-only: expected one value"],
    ["&method=sendTransaction&method=sendBatch", "URI parameter method: expected one value"],
    [
      "&enable-fallback=true",
      'URI parameter enable-fallback: expected none for sendTransaction, because only sendAlt has it; got "true"',
    ],
  ])("refuses %s and sends nothing", async (query, message) => {
    const run = await GatewayRun.open();
    const answer = await run.post(body, base + query);
    expect(answer).toMatchObject(refusal(message));
    expect(run.submitted).toEqual([]);
  });

  it.each(["sendBundle", "sendBatch", "sendIdeal", "sendAlt"])(
    "refuses the parameters of sendTransaction for %s",
    async (method) => {
      const run = await GatewayRun.open();
      for (const name of ["max-retries", "min-context-slot"]) {
        const answer = await run.post(several, `${base}&method=${method}&${name}=0`);
        const message = `URI parameter ${name}: expected none for ${method}, because only sendTransaction has it; got "0"`;
        expect(answer).toMatchObject(refusal(message));
      }
      expect(run.submitted).toEqual([]);
    },
  );

  it("accepts a health call with the URL of submissions, but no unknown parameter", async () => {
    const run = await GatewayRun.open();
    const url = `${base}&max-retries=0&mev-protect=true`;
    expect(await run.post("", url)).toMatchObject({ body: { result: "ok" } });
    const answer = await run.post("", `${base}&method=getHealth&x=1`);
    expect(answer).toMatchObject(refusal(unknown("x", raw)));
  });

  it("accepts a key that is repeated, and empty fields", async () => {
    const run = await GatewayRun.open();
    const answer = await run.post(body, `/${path}?&api-key=good&&max-retries=0&api-key=good&`);
    expect(answer).toMatchObject({ status: 200, body: { result: expect.any(String) } });
    expect(run.submitted).toMatchObject([{ options: { resendsMax: 0 } }]);
  });
});

describe("JSON-RPC paths", () => {
  it.each([
    ["/relay?api-key=good&max-retries=0", unknown("max-retries", calls)],
    ["/?api-key=good&uuid=good", unknown("uuid", calls)],
    ["/api/v1/bundles?uuid=good&x=1", unknown("x", `${calls}, uuid, bundleOnly`)],
    ["/relay?api-key=good&receipt=1&receipt=0", 'receipt: expected one value, got "1", "0"'],
  ])("refuse every call on %s", async (path, message) => {
    const run = await GatewayRun.open();
    for (const method of ["sendTransaction", "getTipAccounts", "getSlot", "getHealth"]) {
      const answer = await run.call(method, [], path);
      expect(answer).toMatchObject(refusal(message));
    }
  });

  it("do not quote a key that stands without its name, and no value of an unknown parameter", async () => {
    const run = await GatewayRun.open();
    for (const secret of ["sw_secret", "token=sw_secret"]) {
      const { text } = await run.call("getHealth", [], `/relay?${secret}`);
      expect(text).toContain("unknown URI parameter");
      expect(text).not.toContain("secret");
    }
  });
});

describe("paths without JSON-RPC", () => {
  it.each([
    ["/shred-pay?api-key=good&dryrun=true", "POST", unknown("dryrun", "api-key, verbose, dry_run")],
    ["/shred-pay?api-key=good&mev-protect=true", "POST", 'unknown URI parameter "mev-protect"'],
    ["/shred-pay?api-key=good&dry_run=false&dry_run=true", "POST", "dry_run: expected one value"],
    ["/tip_floor?fromat=sol", "GET", unknown("fromat", "api-key, format, signed")],
    ["/tip_floor?period=7d", "GET", 'unknown URI parameter "period"'],
    ["/tip_floor?format=sol&format=lamports", "GET", 'expected one value, got "sol", "lamports"'],
    ["/tip_floor/history?days=7", "GET", unknown("days", "api-key, format, signed, period")],
    ["/api/next_alt_validator?slot=5", "GET", unknown("slot", "api-key")],
    ["/api/next_alt_validator/5?slot=6", "GET", unknown("slot", "api-key")],
    ["/api/alt_validators?epoch=5", "GET", unknown("epoch", "api-key")],
  ])("refuse %s", async (path, method, message) => {
    const run = await openTips();
    const response = await fetch(run.url(path), {
      method,
      ...(method === "POST" && { body: "[]" }),
    });
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: { reason: "value_invalid", message: expect.stringContaining(message) } },
    ]);
  });

  it.each([
    "/tip_floor?api-key=any",
    "/api/alt_validators?api-key=any",
    "/gethealth?api-key=any&x=1",
  ])("accept %s", async (path) => {
    const run = await openTips();
    expect((await fetch(run.url(path))).status).toBe(200);
  });
});

describe("WebSockets", () => {
  it.each([
    "/relayb?api-key=good&x=1",
    "/relay?api-key=good&x=1",
    "/stream?api-key=good&x=1",
    "/status?api-key=good&x=1",
    "/tip_stream?x=1",
  ])("refuse the handshake %s", async (path) => {
    const run = await openTips();
    const { status, body } = await refusedHandshake(run.url(path));
    expect(status).toBe(400);
    expect(JSON.parse(body)).toMatchObject({
      error: { message: expect.stringContaining('unknown URI parameter "x"; expected one of') },
    });
  });

  it("refuse a bundle on /relayb whose URL has a parameter of sendTransaction", async () => {
    const run = await GatewayRun.open();
    const socket = await SubmissionClient.open(run, "api-key=good&responses=true&max-retries=0");
    expect(await socket.ask(framed(tipping(), tipping({ amount: 2n })))).toMatchObject({
      status: 400,
      body: expect.stringContaining("max-retries: expected none for sendBundle"),
    });
    expect(await socket.ask(tipping())).toMatchObject({ status: 200 });
    expect(run.submitted).toMatchObject([{ method: "sendTransaction" }]);
  });
});

it("bounds the number of fields", () => {
  const query = new Query(`${"api-key=a&".repeat(64)}mev-protect=true`);
  expect(() => checkNames(query, ["api-key", "mev-protect"])).toThrow("at most 64, got more");
});
