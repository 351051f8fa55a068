// Sign-in: accepted keys, origin, duration and end of a session.

import { describe, expect, it } from "vitest";
import { parseAddress } from "../../../src/core/addresses/addresses.ts";
import { keyRandomBytes, newApiKey } from "../../../src/gateway/accounts/api-keys.ts";
import { KeyRing } from "../../../src/gateway/accounts/key-ring.ts";
import { Sessions, sessionsMax, sessionsPerKeyMax } from "../../../src/platform/portal/sessions.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { PortalHarness, type RecordedRequest } from "./harness.ts";

const hourMs = 3_600_000;

describe("signing in over HTTP", () => {
  it("accepts a valid key and restricts the cookie to the portal", async () => {
    const harness = await PortalHarness.open();
    const { text, key } = await harness.key("ann", ["submit", "operate"]);
    const answer = await harness.signIn(` ${text} `);
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({
      account: "ann",
      key: { id: key.id, hint: key.hint, scopes: ["submit", "operate"] },
      isOperator: true,
    });
    expect(answer.text).not.toContain(text);
    const cookie = answer.header("set-cookie");
    expect(cookie).toMatch(
      /^shredway_session=[\w-]{43}; Path=\/portal; Max-Age=43200; HttpOnly; SameSite=Strict$/,
    );
    const [pair = ""] = cookie.split(";");
    const session = await harness.ask("GET", "/portal/api/session", { cookie: pair });
    expect(session.json).toEqual(answer.json);
    expect(session.header("cache-control")).toBe("no-store");
    // Other cookies of the host do not interfere.
    const among = await harness.ask("GET", "/portal/api/session", { cookie: `a=b; ${pair}; c=d` });
    expect(among.status).toBe(200);
    expect(JSON.stringify(harness.lines)).not.toContain(text);
    expect(harness.lines.map(({ msg }) => msg)).toContain("portal: signed in");
  });

  it("refuses invalid bodies", async () => {
    const harness = await PortalHarness.open();
    const cases: [body: string, status: number, reason: string][] = [
      ["{}", 400, "value_invalid"],
      ['{"key":" "}', 400, "value_invalid"],
      ['{"key":7}', 400, "value_invalid"],
      ['{"key":"sw_wrong"}', 401, "unauthorized"],
      [`{"key":"${"1".repeat(4000)}"}`, 401, "unauthorized"],
      ["key=sw_1", 400, "json_invalid"],
      [`{"key":${"[".repeat(2000)}`, 400, "json_invalid"],
      [`{"key":"${"1".repeat(9000)}"}`, 413, "body_too_large"],
      [`{"key":"${"1".repeat(20_000)}"}`, 413, "body_too_large"],
    ];
    for (const [body, status, reason] of cases) {
      const answer = await harness.ask("POST", "/portal/api/session", { body });
      expect([status, reason]).toEqual([answer.status, answer.json.error.reason]);
      expect(answer.header("set-cookie")).toBe("");
      expect(answer.header("content-security-policy")).toContain("default-src 'none'");
    }
  });

  it("counts invalid keys together with the gateway's and limits attempts", async () => {
    const harness = await PortalHarness.open();
    const { text } = await harness.key("ann");
    for (let i = 0; i < 30; i++) await harness.signIn(`sw_wrong${i}`);
    const answer = await harness.signIn("sw_another");
    expect(answer.status).toBe(429);
    expect(Number(answer.header("retry-after"))).toBeGreaterThan(0);
    const right = await harness.signIn(text);
    expect(right.status).toBe(429);
    const call = { jsonrpc: "2.0", id: 1, method: "getTipAccounts" };
    const gateway = await harness.ask("POST", `/relay?api-key=${text}`, {
      body: JSON.stringify(call),
    });
    expect(gateway.status).toBe(429);
  });

  it("refuses revoked keys and keys for other addresses with the same text", async () => {
    const harness = await PortalHarness.open();
    const revoked = await harness.key("ann");
    await harness.gateway.keys.revokeKey(revoked.key.id, harness.clock.nowNs());
    await harness.gateway.refreshKeys();
    const elsewhere = await harness.key("ann", ["submit"], { allowedRanges: ["192.0.2.0/24"] });
    const [first, second, third] = [
      await harness.signIn(revoked.text),
      await harness.signIn(elsewhere.text),
      await harness.signIn("sw_never"),
    ];
    expect(first.status).toBe(401);
    expect(second.text).toBe(first.text);
    expect(third.text).toBe(first.text);
  });

  it("ends only by signing out", async () => {
    const harness = await PortalHarness.open();
    const key = await harness.key("ann");
    const cookie = await harness.cookie(key);
    const other = await harness.cookie(key);
    const strange = await harness.ask("DELETE", "/portal/api/session", {
      cookie,
      origin: "http://evil.example",
    });
    expect(strange.status).toBe(403);
    const out = await harness.ask("DELETE", "/portal/api/session", { cookie });
    expect(out.status).toBe(204);
    expect(out.header("set-cookie")).toContain("shredway_session=; Path=/portal; Max-Age=0");
    const status = async (pair: string) =>
      (await harness.ask("GET", "/portal/api/session", { cookie: pair })).status;
    expect(await status(cookie)).toBe(401);
    expect(await status(other)).toBe(200);
    expect(await status("shredway_session=x")).toBe(401);
    expect(await status(`${other}; ${other}`)).toBe(401);
  });

  it("ends after its time and immediately when its key is revoked", async () => {
    const harness = await PortalHarness.open({ portal: { sessionHours: 2 } });
    const key = await harness.key("ann");
    const cookie = await harness.cookie(key);
    const status = async () => (await harness.ask("GET", "/portal/api/session", { cookie })).status;
    harness.clock.move(2 * hourMs - 60_000);
    expect(await status()).toBe(200);
    harness.clock.move(61_000);
    expect(await status()).toBe(401);
    const second = await harness.cookie(key);
    await harness.gateway.keys.revokeKey(key.key.id, harness.clock.nowNs());
    await harness.gateway.refreshKeys();
    const after = await harness.call(second, "getTier");
    expect(after.status).toBe(401);
  });
});

describe("requests of other pages", () => {
  it("are refused for every foreign origin", async () => {
    const harness = await PortalHarness.open();
    const key = await harness.key("ann");
    const cookie = await harness.cookie(key);
    const foreignOrigin = "http://evil.example";
    const cases: RecordedRequest[] = [
      { origin: foreignOrigin },
      { origin: "http://127.0.0.1:1" },
      { origin: null },
      { origin: "null" },
      { origin: "file://127.0.0.1" },
      { origin: `${harness.origin}.evil.example` },
      // This caller is not a trusted proxy.
      { origin: foreignOrigin, headers: { "x-forwarded-host": "evil.example" } },
    ];
    for (const options of cases) {
      const signIn = await harness.signIn(key.text, options);
      expect(signIn.status).toBe(403);
      const body = '{"method":"getKeys"}';
      const call = await harness.ask("POST", "/portal/api/call", { cookie, body, ...options });
      expect(call.status).toBe(403);
      expect(call.header("access-control-allow-origin")).toBe("");
    }
  });

  it("are refused as forms and fail the CORS preflight", async () => {
    const harness = await PortalHarness.open();
    const cookie = await harness.cookie(await harness.key("ann"));
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"]) {
      const headers = { "content-type": type };
      const body = '{"method":"getKeys"}';
      const answer = await harness.ask("POST", "/portal/api/call", { cookie, body, headers });
      expect(answer.status).toBe(400);
    }
    const options = await harness.ask("OPTIONS", "/portal/api/call", {
      origin: "http://evil.example",
      headers: { "access-control-request-method": "POST" },
    });
    expect(options.status).toBe(405);
    expect(options.header("access-control-allow-origin")).toBe("");
    expect(options.header("content-security-policy")).toContain("default-src 'none'");
  });

  it("trusts configured proxies and then sets the cookie as secure", async () => {
    const harness = await PortalHarness.open({ http: { trustedProxies: ["127.0.0.0/8"] } });
    const { text } = await harness.key("ann", ["submit"], { allowedRanges: ["203.0.113.7"] });
    const headers = {
      "x-forwarded-for": "198.51.100.1, 203.0.113.7",
      "x-forwarded-proto": "https",
      "x-forwarded-host": "shreds.example",
    };
    const answer = await harness.signIn(text, { headers, origin: "https://shreds.example" });
    expect(answer.status).toBe(200);
    expect(answer.header("set-cookie")).toMatch(/; Secure$/);
    const cookie = answer.header("set-cookie").split(";")[0] ?? "";
    const get = (more: Record<string, string>) =>
      harness.ask("GET", "/portal/api/session", { cookie, headers: { ...headers, ...more } });
    expect((await get({})).status).toBe(200);
    // The key's address ranges apply to every request, not only to the sign-in.
    expect((await get({ "x-forwarded-for": "198.51.100.1" })).status).toBe(401);
    expect((await get({})).status).toBe(200);
    const plain = await harness.signIn(text, { headers, origin: "http://shreds.example" });
    expect(plain.status).toBe(403);
  });
});

describe("the table of sessions", () => {
  const address = parseAddress("127.0.0.1");
  const keyOf = (number: number) => {
    const random = new Uint8Array(keyRandomBytes).fill(number & 255);
    random[0] = number >> 8;
    random[keyRandomBytes - 2] = number >> 8;
    const keyOptions = {
      accountId: "a",
      accountName: "a",
      label: "",
      scopes: [],
      requestsPerSecond: null,
      burst: null,
      allowedRanges: [],
    };
    return newApiKey(keyOptions, random, 0n).key;
  };

  it("is bounded per key and in total; the least recently used session ends", () => {
    const clock = new ManualClock();
    const keys = new KeyRing();
    const all = Array.from({ length: sessionsMax / sessionsPerKeyMax + 1 }, (_, i) => keyOf(i));
    keys.replace(all);
    const sessions = new Sessions({ clock, keys, hours: 1 });
    const [first] = all;
    if (!first) throw new Error("expected a key");
    const tokens = Array.from({ length: sessionsPerKeyMax }, () => sessions.open(first).token);
    expect(sessions.find(tokens[0], address)).not.toBeNull(); // used, so the second is the oldest
    sessions.open(first);
    expect(sessions.count).toBe(sessionsPerKeyMax);
    expect(sessions.find(tokens[0], address)).not.toBeNull();
    expect(sessions.find(tokens[1], address)).toBeNull();
    for (const key of all.slice(1)) {
      for (let i = 0; i < sessionsPerKeyMax; i++) sessions.open(key);
    }
    expect(sessions.count).toBe(sessionsMax);
    expect(sessions.find(tokens[2], address)).toBeNull();
  });

  it("does not extend a session when the clock is set back", async () => {
    const clock = new ManualClock();
    const keys = new KeyRing();
    const key = keyOf(1);
    keys.replace([key]);
    let wallNs = clock.nowNs();
    clock.nowNs = () => wallNs;
    const sessions = new Sessions({ clock, keys, hours: 1 });
    const { token } = sessions.open(key);
    wallNs -= 10n ** 15n;
    await clock.advance(hourMs - 1);
    expect(sessions.find(token, address)).not.toBeNull();
    await clock.advance(1);
    expect(sessions.find(token, address)).toBeNull();
  });
});
