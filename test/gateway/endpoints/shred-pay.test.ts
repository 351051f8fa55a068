// POST /shred-pay and getRegistrations over real HTTP with the real registrar.

import { afterEach, describe, expect, it } from "vitest";
import type { Registrar } from "../../../src/shreds/registrations/registration-types.ts";
import { Files } from "../../platform/store/files.ts";
import {
  entry,
  openHarness,
  presentSlot,
  signatureOf,
  signed,
  tip,
} from "../../shreds/registrations/harness.ts";
import { apiKey, GatewayRun, scoped } from "../../support/gateway/gateway.ts";
import { alice, bob, transferOf } from "../../support/transactions/chain.ts";

const files = new Files();
afterEach(() => files.clean());

const path = "/shred-pay?api-key=good";
const tiers = {
  view: () => ({ tier: null, sumLamports: 0n, graceSinceMs: null, graceEndsMs: null }),
  tierOf: () => null,
  onChange: () => () => {},
  history: () => Promise.resolve([]),
  nowMs: () => 0,
};
const rules = { tiers: [], windowMs: 1, graceMs: 1 };
const none = () => Promise.reject(new Error("expected no call"));
const destinations = {
  ofAccount: () => [],
  refusalOf: () => null,
  nextChallengeMs: () => null,
  add: none,
  update: none,
  remove: none,
  challenge: none,
  prove: none,
};

async function openRun(registrar?: Registrar): Promise<GatewayRun> {
  const own = registrar ?? (await openHarness(files)).registrar;
  const run = await GatewayRun.open(
    {},
    { shreds: { registrar: own, tiers, tierRules: () => rules, destinations } },
  );
  for (const [text, key] of [scoped("shredder", "shreds"), scoped("sender", "submit", "read")])
    run.keys.set(text, key);
  run.keys.set("second", apiKey("second", { accountId: "a_2" }));
  return run;
}

/** Entries in the format of callers. */
function body(...wires: Uint8Array[]): string {
  return JSON.stringify(wires.map((wire) => ({ ...entry(wire), slot: Number(presentSlot) })));
}

const forged = (wire: Uint8Array): Uint8Array => Uint8Array.from(wire).fill(9, 5, 8);

describe("POST /shred-pay", () => {
  it("returns only the accepted signatures", async () => {
    const run = await openRun();
    const wires = [tip(5n, 1n), forged(tip(5n, 2n)), tip(5n, 3n), tip(5n, 1n)];
    const answer = await run.post(body(...wires), path, { "content-type": "application/json" });
    const accepted = [wires[0], wires[2]].map((wire) => signatureOf(wire ?? tip()));
    expect(answer).toMatchObject({ status: 200, body: { accepted } });
    expect(answer.text).toBe(JSON.stringify({ accepted }));
    expect(answer.headers.get("content-type")).toBe("application/json");
    expect(answer.headers.get("access-control-allow-origin")).toBe("*");
    expect(answer.headers.get("x-ratelimit-limit")).toBe("50");
    expect(run.countedKeys.length).toBe(1);
  });

  it("returns the rejected entries with their reasons if requested", async () => {
    const run = await openRun();
    await run.post(body(tip(5n, 9n)), "/shred-pay?api-key=second");
    const given = [
      entry(tip(5n, 1n)),
      entry(forged(tip(5n, 2n))),
      entry(tip(5n, 9n)),
      entry(signed([transferOf(alice, bob, 1n)])),
      entry(tip(5n, 3n), presentSlot + 33n),
      entry(tip(5n, 4n), 0n),
      { transaction: 7, slot: 1 },
      { transaction: "x", slot: -1 },
      { transaction: "x", slot: 1.5 },
      { transaction: "x", slot: 2 ** 64 },
      { transaction: "x" },
      null,
      ["x", 1],
      entry(tip(5n, 5n)),
    ].map((one) => (one && "slot" in one ? { ...one, slot: Number(one.slot) } : one));
    const dry = await run.post(JSON.stringify(given), `${path}&verbose=true&dry_run=true`);
    const answer = await run.post(JSON.stringify(given), `${path}&verbose=true`);
    expect(answer.body).toEqual(dry.body);
    expect(answer.body).toMatchObject({
      accepted: [tip(5n, 1n), tip(5n, 5n)].map(signatureOf),
      rejected: [
        {
          index: 1,
          reason: "signature_invalid",
          message: expect.stringMatching(/signature verification failed/),
        },
        {
          index: 2,
          reason: "registered_before",
          message: expect.stringMatching(/another account/),
        },
        { index: 3, reason: "tip_missing" },
        { index: 4, reason: "slot_ahead" },
        { index: 5, reason: "slot_too_old" },
        ...[6, 7, 8, 9, 10, 11, 12].map((index) => ({ index, reason: "entry_invalid" })),
      ],
    });
    expect((await run.post(body(tip(5n, 1n)), `${path}&verbose=true`)).body).toMatchObject({
      accepted: [],
      rejected: [{ index: 0, reason: "registered_before" }],
    });
  });

  it("accepts slots as digits, up to 2^64 - 1", async () => {
    const seen: unknown[] = [];
    const run = await openRun({
      ofAccount: () => Promise.resolve([]),
      register: (accountId, entries, isDryRun) => {
        seen.push(accountId, entries, isDryRun);
        return Promise.resolve([]);
      },
    });
    const text = `[{"transaction":"x","slot":18446744073709551615,"more":{}},
      {"slot":"18446744073709551615","transaction":"y"},{"transaction":"z","slot":"-1"},
      {"transaction":"z","slot":"18446744073709551616"},{"transaction":"z","slot":18446744073709551616}]`;
    expect((await run.post(text, `${path}&dry_run=true`)).text).toBe('{"accepted":[]}');
    const slot = 2n ** 64n - 1n;
    const problem = expect.stringMatching(/^slot: invalid value .*; expected an integer from 0 to/);
    const invalid = { problem };
    const valid = ["x", "y"].map((transaction) => ({ transaction, slot }));
    const entries = [...valid, invalid, invalid, invalid];
    expect(seen).toEqual(["a_1", entries, true]);
  });

  it.each<[unknown, string]>([
    [{ transaction: "x" }, "slot: missing value; expected an integer from 0 to 2^64 - 1"],
    [{ transaction: "x", slot: "5x" }, 'slot: invalid value "5x"; expected an integer from 0'],
    [{ transaction: "x", slot: -1 }, "slot: invalid value -1; expected an integer from 0"],
    [{ slot: 1 }, "transaction: missing value; expected a string"],
    [{ transaction: 7, slot: 1 }, "transaction: invalid value 7; expected a string"],
    [{ transaction: ["secret"], slot: 1 }, 'transaction: invalid value ["…"]; expected a string'],
    [{ transaction: "x", slot: 1, proof: 7 }, "proof: invalid value 7; expected a string"],
    [null, "entry: invalid value null; expected an object with transaction and slot"],
    ["secret", 'entry: invalid value "…"; expected an object with transaction and slot'],
  ])("names the invalid member of %j", async (given, text) => {
    const run = await openRun();
    const { body: answer } = await run.post(JSON.stringify([given]), `${path}&verbose=true`);
    const message = expect.stringContaining(text);
    expect(answer).toEqual({
      accepted: [],
      rejected: [{ index: 0, reason: "entry_invalid", message }],
    });
  });

  const most = 256 * 1024;
  it.each<[string, string, number, string]>([
    ["no body", "", 400, "json_invalid"],
    ["no JSON", "[", 400, "json_invalid"],
    ["an object", '{"transaction":"x","slot":1}', 400, "request_invalid"],
    ["a text", '"x"', 400, "request_invalid"],
    ["no entry", "[]", 400, "request_invalid"],
    ["26 entries", JSON.stringify(Array(26).fill(null)), 400, "request_invalid"],
    ["excessive nesting", "[".repeat(200_000), 400, "json_invalid"],
    ["an excessive number", `[${"9".repeat(200_000)}]`, 400, "json_invalid"],
    ["many values", `[${"[],".repeat(60_000)}[]]`, 400, "json_invalid"],
  ])("refuses %s", async (_, text, status, reason) => {
    const run = await openRun(unused);
    const answer = await run.post(text, path);
    expect(answer).toMatchObject({ status, body: { error: { reason } } });
    expect(answer.text).toMatch(/^{"error":{"reason":"\w+","message":".*expected .*"}}$/);
  });

  it("accepts bodies of up to 256 kB", async () => {
    const run = await openRun();
    const given = body(tip());
    const answer = await run.post(given.padEnd(most), path);
    expect(answer).toMatchObject({ status: 200, body: { accepted: [signatureOf(tip())] } });
    expect(await run.post(given.padEnd(most + 1), path)).toMatchObject({ status: 413 });
  });

  it('requires a key with the scope "shreds" and refuses in its own format', async () => {
    const run = await openRun(unused);
    const given = body(tip());
    for (const key of ["", "api-key=unknown"]) {
      const answer = await run.post(given, `/shred-pay?${key}`);
      expect(answer).toMatchObject({ status: 401, body: { error: { reason: "unauthorized" } } });
      expect(answer.headers.get("www-authenticate")).toBe("Bearer");
      expect(answer.text).toMatch(
        /^{"error":{"reason":"unauthorized","message":"(missing|invalid) API key.*; expected a valid/,
      );
    }
    expect(await run.post(given, "/shred-pay?api-key=sender")).toMatchObject({
      status: 403,
      body: { error: { reason: "scope_missing" } },
    });
    expect(run.countedKeys.length).toBe(1);
    run.verdict = () => ({
      allowed: false,
      limit: 1,
      remaining: 0,
      retryAfterSeconds: 2.5,
      resetSeconds: 3,
    });
    const limited = await run.post(given, "/shred-pay", { api_key: "shredder" });
    expect(limited).toMatchObject({ status: 429, body: { error: { reason: "rate_limited" } } });
    expect(limited.headers.get("retry-after")).toBe("3");
  });

  it("is disabled without tip registration, and validates its parameters and methods", async () => {
    const off = await GatewayRun.open();
    expect(await off.post(body(tip()), path)).toMatchObject({
      status: 404,
      body: { error: { reason: "registration_off" } },
    });
    expect((await off.call("getRegistrations")).body).toMatchObject({
      error: { code: -32601, data: { reason: "registration_off" } },
    });
    const run = await openRun(unused);
    expect(await run.post(body(tip()), `${path}&dry_run=yes`)).toMatchObject({
      status: 400,
      body: { error: { reason: "value_invalid" } },
    });
    expect((await fetch(run.url(path))).status).toBe(405);
    const preflight = await fetch(run.url(path), { method: "OPTIONS" });
    expect(preflight.headers.get("access-control-allow-methods")).toBe("POST, OPTIONS");
  });

  it("reports internal errors by reference, and refuses requests above its limit", async () => {
    const waiting: (() => void)[] = [];
    let isFaulty = false;
    const run = await openRun({
      ofAccount: () => Promise.resolve([]),
      register: () =>
        isFaulty
          ? Promise.reject(new TypeError("secret"))
          : new Promise((resolve) => void waiting.push(() => resolve([]))),
    });
    const answers = Array.from({ length: 40 }, () => run.post(body(tip()), path));
    await expect.poll(() => waiting.length).toBe(40);
    const refused = await run.post(body(tip()), path);
    expect(refused).toMatchObject({ status: 429, body: { error: { reason: "overloaded" } } });
    expect(refused.headers.get("retry-after")).toBe("1");
    for (const end of waiting) end();
    for (const answer of answers) expect((await answer).status).toBe(200);
    isFaulty = true;
    const fault = await run.post(body(tip()), path);
    expect(fault).toMatchObject({ status: 500, body: { error: { reason: "internal" } } });
    expect(fault.text).not.toContain("secret");
  });
});

/** The request is refused before this. */
const unused: Registrar = {
  register: () => Promise.reject(new Error("expected no call")),
  ofAccount: () => Promise.reject(new Error("expected no call")),
};

describe("getRegistrations", () => {
  it("returns the account's registrations page by page", async () => {
    const { registrar, store, accounting } = await openHarness(files);
    const run = await openRun(registrar);
    for (const amount of [1n, 2n, 3n]) {
      accounting.ms += 1000;
      await run.post(body(tip(5n, amount)), path);
    }
    await run.post(body(tip(5n, 4n)), "/shred-pay?api-key=second");
    const signatures = [3n, 2n, 1n].map((amount) => signatureOf(tip(5n, amount)));
    const all = await run.call("getRegistrations");
    expect(all.body).toMatchObject({ result: signatures.map((signature) => ({ signature })) });
    const [newest] = (await store.ofAccount("a_1", null, 1)).map(
      ({ registeredMs }) => registeredMs,
    );
    const page = await run.call("getRegistrations", [{ beforeMs: newest, limit: 1 }]);
    const time = new Date(accounting.ms - 1000).toISOString();
    expect(page.body).toMatchObject({
      result: [
        {
          signature: signatures[1],
          state: "counted",
          reason: null,
          slot: Number(presentSlot),
          lamports: 5,
          countedLamports: 5,
          registeredAt: time,
          settledAt: time,
          registeredMs: accounting.ms - 1000,
        },
      ],
    });
    for (const wrong of [{ limit: 0 }, { limit: 1001 }, { beforeMs: -1 }, { beforeMs: "x" }, 7]) {
      expect((await run.call("getRegistrations", [wrong])).body).toMatchObject({
        error: { code: -32602 },
      });
    }
    expect((await run.call("getRegistrations", [], "/relay?api-key=sender")).body).toMatchObject({
      error: { data: { reason: "scope_missing" } },
    });
  });
});
