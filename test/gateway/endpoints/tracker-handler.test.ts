// The tracker over HTTP: exact bodies without a key, and refusals.

import { describe, expect, it } from "vitest";
import { PartnerTracker } from "../../../src/gateway/tracker/partner-tracker.ts";
import type { Tracker } from "../../../src/gateway/tracker/types.ts";
import { buildSchedule } from "../../../src/relay/leaders/schedule.ts";
import { GatewayRun } from "../../support/gateway/gateway.ts";
import { addressOf, wallet } from "../../support/transactions/chain.ts";

const [one, two, three] = [wallet(1), wallet(2), wallet(3)];
const name = addressOf(one);
const u64Max = 2n ** 64n - 1n;

/** `one` leads slots 104 to 107, `two` leads 108 to 111; no other member leads. */
function trackerAt(slot: bigint | null): PartnerTracker {
  const tracker = new PartnerTracker(() => slot);
  tracker.replaceSchedule(
    buildSchedule(100n, [
      { key: three.publicKey.toBytes(), slots: [0, 1, 2, 3] },
      { key: one.publicKey.toBytes(), slots: [4, 5, 6, 7] },
      { key: two.publicKey.toBytes(), slots: [8, 9, 10, 11] },
    ]),
  );
  tracker.replaceMembers(new Set([one, two].map(addressOf)));
  return tracker;
}

async function ask(tracker: Tracker, path: string, init: RequestInit = {}) {
  const run = await GatewayRun.open({}, { tracker });
  const response = await fetch(run.url(path), init);
  return { status: response.status, headers: response.headers, text: await response.text() };
}

describe("the tracker", () => {
  it("lists the validators of the current epoch without a key", async () => {
    const { status, headers, text } = await ask(trackerAt(100n), "/api/alt_validators");
    expect([status, text]).toEqual([200, JSON.stringify([one, two].map(addressOf).toSorted())]);
    expect(headers.get("content-type")).toBe("application/json");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("access-control-allow-origin")).toBe("*");
  });

  it("returns an empty list without members", async () => {
    const tracker = new PartnerTracker(() => null);
    expect(await ask(tracker, "/api/alt_validators")).toMatchObject({ status: 200, text: "[]" });
  });

  it.each([
    ["/api/next_alt_validator", `{"pubkey":"${name}","leader_slot":104,"context_slot":101}`],
    [
      "/api/next_alt_validator?api-key=x",
      `{"pubkey":"${name}","leader_slot":104,"context_slot":101}`,
    ],
    ["/api/next_alt_validator/0", `{"pubkey":"${name}","leader_slot":104,"context_slot":101}`],
    ["/api/next_alt_validator/106", `{"pubkey":"${name}","leader_slot":106,"context_slot":101}`],
    ["/api/next_alt_validator/000106", `{"pubkey":"${name}","leader_slot":106,"context_slot":101}`],
  ])("answers %s with three fields", async (path, expected) => {
    expect(await ask(trackerAt(101n), path)).toMatchObject({ status: 200, text: expected });
  });

  it("writes slots as exact integers, whatever their size", async () => {
    const tracker: Tracker = {
      members: () => [],
      memberSet: () => new Set(),
      next: (slot) => ({ pubkey: name, leaderSlot: slot ?? 0n, contextSlot: u64Max - 1n }),
    };
    const { text } = await ask(tracker, `/api/next_alt_validator/${u64Max}`);
    expect(text).toBe(
      `{"pubkey":"${name}","leader_slot":18446744073709551615,"context_slot":18446744073709551614}`,
    );
  });

  it.each([
    ["no partner leads later", trackerAt(100n), "/api/next_alt_validator/112"],
    ["no partner leads later, far ahead", trackerAt(100n), `/api/next_alt_validator/${u64Max}`],
    ["the current slot is unknown", trackerAt(null), "/api/next_alt_validator"],
    ["the schedule has ended", trackerAt(500n), "/api/next_alt_validator"],
  ])("answers 404 when %s", async (_, tracker, path) => {
    const { status, headers, text } = await ask(tracker, path);
    expect(status).toBe(404);
    expect(JSON.parse(text)).toEqual({
      error: {
        reason: "leader_unknown",
        message: expect.stringMatching(/^no alternative partner is known to lead at or after .+$/),
      },
    });
    expect(headers.get("cache-control")).toBe("no-store");
  });

  it.each([
    "-1",
    "+1",
    "1.0",
    "1e3",
    "0x10",
    "abc",
    "",
    "%201",
    "%31",
    "1/2",
    "١",
    `${u64Max + 1n}`,
  ])("answers 400 for the slot %j", async (slot) => {
    const { status, text } = await ask(trackerAt(100n), `/api/next_alt_validator/${slot}`);
    expect(status).toBe(400);
    expect(JSON.parse(text)).toEqual({
      error: {
        reason: "value_invalid",
        message: expect.stringMatching(
          /^slot: invalid value .*; expected an integer from 0 to 18446744073709551615 /,
        ),
      },
    });
  });

  it("supports GET and HEAD, including cross-origin requests", async () => {
    for (const path of [
      "/api/alt_validators",
      "/api/next_alt_validator",
      "/api/next_alt_validator/1",
    ]) {
      const tracker = trackerAt(100n);
      const refused = await ask(tracker, path, { method: "POST", body: "{}" });
      expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
      const head = await ask(tracker, path, { method: "HEAD" });
      expect([head.status, head.text]).toEqual([200, ""]);
      const preflight = await ask(tracker, path, {
        method: "OPTIONS",
        headers: { origin: "http://page.example", "access-control-request-method": "GET" },
      });
      expect(preflight.status).toBe(204);
      expect(preflight.headers.get("access-control-allow-methods")).toBe("GET, HEAD, OPTIONS");
      const page = await ask(tracker, path, { headers: { origin: "http://page.example" } });
      expect(page.headers.get("access-control-allow-origin")).toBe("*");
    }
  });

  it("is in the list of paths in a 404 response", async () => {
    const { status, text } = await ask(trackerAt(100n), "/api/alt_validator");
    expect(status).toBe(404);
    for (const path of ["/api/alt_validators", "/api/next_alt_validator/{slot}"]) {
      expect(text).toContain(path);
    }
  });
});
