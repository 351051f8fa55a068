// Every HTTP path responds as the table of paths describes: status, content type and body.

import { base58 } from "@scure/base";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { isObject } from "../../../src/core/values.ts";
import { operations } from "../../../src/gateway/endpoints/description/paths.ts";
import type { GatewayDependencies } from "../../../src/gateway/methods/dependencies.ts";
import type { TimelineEvent } from "../../../src/gateway/submission/types.ts";
import { OperatorPages } from "../../../src/platform/metrics/pages.ts";
import type { TipHistoryReader } from "../../../src/tips/tip-types.ts";
import { Files } from "../../platform/store/files.ts";
import { entry, openHarness, presentSlot, tip } from "../../shreds/registrations/harness.ts";
import { closing } from "../../support/closing.ts";
import { schemaCheck } from "../../support/gateway/described-answers.ts";
import { fixedTipFloor } from "../../support/gateway/fixed-tip-floor.ts";
import { GatewayRun } from "../../support/gateway/gateway.ts";
import { addressOf, wallet } from "../../support/transactions/chain.ts";
import { base64, tipping } from "../../support/transactions/tipping.ts";

const files = new Files();
afterEach(() => files.clean());

const { percentiles } = fixedTipFloor.snapshot;
const tipHistory: TipHistoryReader = {
  generation: 1,
  last: () => [
    { quarter: 1, timeMs: 900_000, count: 0, percentiles: null },
    { quarter: 2, timeMs: 1_800_000, count: 5, percentiles },
  ],
};

function tracker(isKnown: boolean): GatewayDependencies["tracker"] {
  const pubkey = addressOf(wallet(1));
  return {
    members: () => [pubkey],
    memberSet: () => new Set([pubkey]),
    next: () => (isKnown ? { pubkey, leaderSlot: 8n, contextSlot: 2n ** 60n } : null),
  };
}

async function open(isKnown = true): Promise<GatewayRun> {
  const { registrar } = await openHarness(files);
  const none = () => Promise.reject(new Error("expected no call"));
  const shreds = {
    registrar,
    tiers: {
      view: () => ({ tier: null, sumLamports: 0n, graceSinceMs: null, graceEndsMs: null }),
      tierOf: () => null,
      onChange: () => () => {},
      history: () => Promise.resolve([]),
      nowMs: () => 0,
    },
    tierRules: () => ({ tiers: [], windowMs: 1, graceMs: 1 }),
    destinations: {
      ofAccount: () => [],
      refusalOf: () => null,
      nextChallengeMs: () => null,
      add: none,
      update: none,
      remove: none,
      challenge: none,
      prove: none,
    },
  };
  return GatewayRun.open(
    {},
    { shreds, tipFloor: fixedTipFloor, tipHistory, tracker: tracker(isKnown) },
  );
}

const seen = new Set<string>();

/** Throws if no operation describes the response. */
function checkDescribed(place: string, status: number, type: string, text: string): void {
  const operation = operations.find((each) => `${each.method} ${each.path}` === place);
  const answer = operation?.answers[status];
  if (!answer) throw new Error(`${place}: expected a described status, got ${status}: ${text}`);
  seen.add(place);
  const { content } = answer;
  expect(type, place).toBe(content?.type ?? "");
  if (!content) return;
  const validate = schemaCheck(content.schema);
  const body: unknown = content.type === "text/plain" ? text : JSON.parse(text);
  if (validate(body)) return;
  throw new Error(`${place} ${status}: ${text} does not fit: ${JSON.stringify(validate.errors)}`);
}

interface Question {
  readonly path?: string;
  readonly query?: string;
  readonly body?: string | Uint8Array;
  readonly headers?: Record<string, string>;
}

async function ask(run: GatewayRun, place: string, question: Question = {}): Promise<number> {
  const [method = "", described = ""] = place.split(" ");
  const { path = described, query = "", body, headers = {} } = question;
  const response = await fetch(run.url(`${path}${query}`), {
    method: method.toUpperCase(),
    headers,
    ...(body !== undefined && { body: typeof body === "string" ? body : Uint8Array.from(body) }),
  });
  const text = await response.text();
  checkDescribed(place, response.status, response.headers.get("content-type") ?? "", text);
  return response.status;
}

const key = "?api-key=good";
const send = (extra: object = {}): string =>
  JSON.stringify({
    jsonrpc: "2.0",
    id: "a",
    method: "sendTransaction",
    params: [base64(tipping()), { skipPreflight: true }],
    ...extra,
  });
const jsonOperations = operations.filter(({ id }) => id.startsWith("call"));

describe("the HTTP paths", () => {
  it.each(jsonOperations.map(({ path }) => path))(
    "return described responses to calls at %s",
    async (path) => {
      const run = await open();
      const place = `post ${path}`;
      const bodies = [send(), send({ id: null, params: [] }), `[${send()},{}]`, "{", "5", "[]"];
      for (const body of bodies) expect(await ask(run, place, { query: key, body })).toBe(200);
      expect(await ask(run, place, { body: send() })).toBe(401);
      expect(await ask(run, place, { query: "?api-key=wrong", body: send() })).toBe(401);
      expect(await ask(run, place, { query: key, body: "x".repeat(300_000) })).toBe(413);
      run.verifierIsFull = true;
      expect(await ask(run, place, { query: key, body: send() })).toBe(429);
    },
  );

  it.each(operations.filter(({ method }) => method === "post").map(({ path }) => path))(
    "refuse a compressed body at %s with 415",
    async (path) => {
      const run = await open();
      const headers = { "content-encoding": "gzip" };
      expect(await ask(run, `post ${path}`, { query: key, body: send(), headers })).toBe(415);
    },
  );

  it("return the server's own refusals in the form of the path", async () => {
    const run = await open();
    const reasonAt = async (path: string, init: RequestInit): Promise<unknown> => {
      const { error } = JSON.parse(await (await fetch(run.url(path), init)).text());
      return error.reason ?? `JSON-RPC ${error.data.reason}`;
    };
    const large = { method: "POST", body: "x".repeat(300_000) };
    const coded = { method: "POST", body: "x", headers: { "content-encoding": "gzip" } };
    const other = { method: "DELETE" };
    for (const path of ["/shred-pay", "//shred-pay/"]) {
      expect(await reasonAt(path, large)).toBe("body_too_large");
      expect(await reasonAt(path, coded)).toBe("request_invalid");
      expect(await reasonAt(path, other)).toBe("http_method");
    }
    for (const path of ["/tip_floor", "/api/alt_validators", "/api/next_alt_validator/5"]) {
      expect(await reasonAt(path, other)).toBe("http_method");
    }
    for (const path of ["/relay", "/nowhere"]) {
      expect(await reasonAt(path, large)).toBe("JSON-RPC body_too_large");
    }
  });

  it.each([true, false])("are named for an unknown path; operators: %s", async (mayRead) => {
    const dependencies = { mayRead: () => mayRead, metrics: () => "", checks: () => [] };
    const run = await GatewayRun.open({}, { pages: [new OperatorPages(dependencies)] });
    const response = await fetch(run.url("/nowhere"));
    const text = await response.text();
    expect(response.status).toBe(404);
    expect(text).toContain("unknown path; expected one of /relay, ");
    for (const path of ["/health/live", "/health/ready", "/metrics"]) {
      expect((await fetch(run.url(path))).status).toBe(mayRead ? 200 : 404);
      expect(text.includes(path)).toBe(mayRead);
    }
  });

  it("name POST and the handshake for a GET of /relayb", async () => {
    const run = await GatewayRun.open();
    const textOf = async (path: string) => (await fetch(run.url(path))).text();
    expect(await textOf("/relayb")).toContain(": expected POST, or a WebSocket handshake (header");
    expect(await textOf("/stream")).toContain(": expected a WebSocket handshake (header");
  });

  it("return the described responses", async () => {
    const run = await open();
    const wire = tipping();
    await ask(run, "post /relayb", { query: key, body: wire });
    await ask(run, "post /relayb", { query: `${key}&max-retries=x`, body: wire });
    await ask(run, "post /relayb", { body: wire });
    expect(await ask(run, "get /relayb", { query: key })).toBe(426);
    await ask(run, "post /relay2", { query: `${key}&method=sendBundle`, body: base64(wire) });
    await ask(run, "post /relay2", { query: "?method=getHealth", body: "" });
    for (const query of ["", "?format=sol", "?format=x"])
      await ask(run, "get /tip_floor", { query });
    expect(await ask(run, "get /api/v1/bundles/tip_floor")).toBe(200);
    for (let i = 0; i < 12; i++) await ask(run, "get /tip_floor");
    for (const query of ["?period=7d&signed=1", "?format=sol"]) {
      expect(await ask(run, "get /tip_floor/history", { query })).toBe(200);
    }
    expect(await ask(run, "get /tip_floor/history")).toBe(429);
    await run.clock.advance(1000);
    expect(await ask(run, "get /tip_floor/history", { query: "?period=x" })).toBe(400);
    await ask(run, "get /tip_stream");
    await ask(run, "get /status", { query: key });
    expect(await ask(run, "get /stream", { query: key })).toBe(426);
    await ask(run, "get /gethealth");
    await ask(run, "get /.well-known/shredway-keys.json");
    await ask(run, "get /openrpc.json");
    await ask(run, "get /openapi.json");
    expect(await ask(run, "get /openapi.json", { headers: { "if-none-match": "*" } })).toBe(304);
    const body = JSON.stringify([{ ...entry(tip(5n, 1n)), slot: Number(presentSlot) }, 5]);
    for (const query of [key, `${key}&verbose=true`, "", `${key}&verbose=x`, "?api-key=reader"]) {
      await ask(run, "post /shred-pay", { query, body });
    }
    await ask(run, "post /shred-pay", { query: key, body: "{" });
    await ask(run, "post /shred-pay", { query: key, body: "x".repeat(300_000) });
    const slotPath = "get /api/next_alt_validator/{slot}";
    for (const each of [run, await open(false)]) {
      await ask(each, "get /api/alt_validators");
      await ask(each, "get /api/next_alt_validator");
      await ask(each, slotPath, { path: "/api/next_alt_validator/7" });
      await ask(each, slotPath, { path: "/api/next_alt_validator/x" });
    }
    const rest = operations.filter(({ id }) => !id.startsWith("call"));
    for (const { method, path } of rest) expect(seen).toContain(`${method} ${path}`);
  });

  it("are checked: an undescribed response fails", () => {
    const json = "application/json";
    expect(() => checkDescribed("get /gethealth", 201, json, "")).toThrow(/described status/);
    const text = '{"accepted":[],"planted":1}';
    expect(() => checkDescribed("post /shred-pay", 200, json, text)).toThrow(/does not fit/);
  });
});

describe("the WebSockets", () => {
  /** Reads the next message and checks it against its schema. */
  async function nextMessage(socket: WebSocket, path: string): Promise<unknown> {
    const message = await new Promise<unknown>((resolve, reject) => {
      socket.once("message", (data: Buffer) => resolve(JSON.parse(data.toString())));
      socket.once("error", reject);
    });
    const operation = operations.find((each) => each.path === path);
    const validate = schemaCheck(operation?.webSocket?.message);
    expect(validate(message), JSON.stringify([message, validate.errors])).toBe(true);
    expect(validate({ planted: 1 })).toBe(false);
    return message;
  }

  function socketTo(run: GatewayRun, path: string): WebSocket {
    const socket = new WebSocket(run.url(path).replace("http", "ws"));
    closing({ close: () => socket.terminate() });
    return socket;
  }

  it("push snapshots as described", async () => {
    const run = await open();
    for (const query of ["", "?format=sol"]) {
      await nextMessage(socketTo(run, `/tip_stream${query}`), "/tip_stream");
    }
  });

  it("push every kind of event as described", async () => {
    const run = await open();
    const socket = socketTo(run, "/status?api-key=good");
    await new Promise((resolve) => socket.once("open", resolve));
    const signature = base58.encode(new Uint8Array(64).fill(9));
    const at = { atNs: run.clock.nowNs(), route: "a", attempt: 1, reason: "r", err: null };
    const { atNs, route, attempt, reason, err } = at;
    const leader = addressOf(wallet(1));
    const events: TimelineEvent[] = [
      { kind: "received", atNs, method: "sendIdeal" },
      {
        kind: "received",
        atNs,
        method: "sendIdeal",
        tipLamports: 0n,
        priorityFeeLamports: 2n ** 64n - 1n,
      },
      { kind: "held", atNs, reason },
      { kind: "queued", atNs, route, attempt },
      { kind: "sent", atNs, route, attempt, bytes: 1, slot: 2n, leader },
      { kind: "acknowledged", atNs, route, attempt },
      { kind: "refused", atNs, route, attempt, reason },
      { kind: "failed", atNs, route, attempt, reason },
      { kind: "dropped", atNs, route, attempt, reason },
      { kind: "seen", atNs, slot: 2n ** 64n - 1n },
      { kind: "landed_failed", atNs, reason, slot: 3n, err: { InstructionError: [0, "x"] } },
      { kind: "superseded", atNs, reason, slot: null, err, sibling: signature },
    ];
    for (const event of events) {
      const message = nextMessage(socket, "/status");
      run.notify("a_1", signature, event);
      expect(await message).toMatchObject({ signature, event: { kind: event.kind } });
    }
    for (const filter of ['{"signatures":null}', `{"signatures":["${signature}"]}`, "{}"]) {
      const message = nextMessage(socket, "/status");
      socket.send(filter);
      expect(isObject(await message)).toBe(true);
    }
  });
});
