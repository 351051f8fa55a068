// The history of tips over real HTTP: periods, gaps, staleness, signatures, and limits.

import { expect, it } from "vitest";
import { type KeySet, verifyTipFloor, verifyTipHistory } from "../../../src/client/index.ts";
import { TipHistory } from "../../../src/tips/tip-history.ts";
import type { TipQuarter } from "../../../src/tips/tip-types.ts";
import { GatewayRun } from "../../support/gateway/gateway.ts";
import { verifyByReference } from "../../support/signing/ed25519-reference.ts";

const quarterMs = 15 * 60_000;
const percentiles = { p25: 10_000n, p50: 25_000n, p75: 120_000n, p95: 2n ** 53n, p99: 2n ** 62n };

async function opened() {
  const run: GatewayRun = await GatewayRun.open({}, { slot: () => 417n });
  const nowMs = (): number => Number(run.clock.nowNs() / 1_000_000n);
  const tipHistory = new TipHistory(nowMs);
  const served = await GatewayRun.open({}, { slot: () => 417n, tipHistory, clock: run.clock });
  const quarter = Math.floor(nowMs() / quarterMs);
  /** `ago`: quarter hours. */
  const add = (ago: number, changes: Partial<TipQuarter> = {}): void => {
    const timeMs = (quarter - ago) * quarterMs;
    tipHistory.add({ quarter: quarter - ago, timeMs, count: 7, percentiles, ...changes });
  };
  return { run: served, clock: run.clock, add, quarter };
}

async function get(run: GatewayRun, query = "") {
  const response = await fetch(run.url(`/tip_floor/history${query}`));
  const { status, headers } = response;
  return { status, headers, body: await response.text() };
}

it("has the entries of a period in ascending order; gaps have no entry, silence has null", async () => {
  const { run, add } = await opened();
  add(0);
  add(1, { count: 0, percentiles: null });
  add(4);
  add(95);
  add(96);
  add(671);
  add(672);
  const iso = (ago: number): string =>
    new Date(
      (Math.floor(Number(run.clock.nowNs() / 1_000_000n) / quarterMs) - ago) * quarterMs,
    ).toISOString();
  const day = await get(run);
  expect(day.status).toBe(200);
  const parsed = JSON.parse(day.body);
  expect(parsed).toMatchObject({
    period: "24h",
    resolution_seconds: 900,
    newest: iso(0),
    stale: false,
  });
  expect(
    parsed.entries.map(({ time, count }: { time: string; count: number }) => [time, count]),
  ).toEqual([
    [iso(95), 7],
    [iso(4), 7],
    [iso(1), 0],
    [iso(0), 7],
  ]);
  expect(parsed.entries[2].percentiles).toBe(null);
  // Integers are written in full.
  expect(day.body).toContain(`"landed_tips_99th_percentile":${2n ** 62n}`);
  const week = JSON.parse((await get(run, "?period=7d&format=sol")).body);
  expect([parsed.unit, week.unit]).toEqual(["lamports", "sol"]);
  expect(week.entries.map(({ time }: { time: string }) => time)).toEqual(
    [671, 96, 95, 4, 1, 0].map(iso),
  );
  expect(week.entries[0].percentiles.landed_tips_25th_percentile).toBe(0.00001);
});

it("is stale if the last refresh is missing or had no tips, and empty without any", async () => {
  const { run, clock, add } = await opened();
  expect(JSON.parse((await get(run)).body)).toMatchObject({
    newest: null,
    stale: true,
    entries: [],
  });
  add(0);
  const fresh = JSON.parse((await get(run)).body);
  expect(fresh.stale).toBe(false);
  await clock.advance(quarterMs + 21_000);
  expect(JSON.parse((await get(run)).body)).toMatchObject({ newest: fresh.newest, stale: true });
  await clock.advance(24 * 4 * quarterMs);
  expect(JSON.parse((await get(run)).body)).toMatchObject({
    newest: null,
    stale: true,
    entries: [],
  });
});

it("is signed on request, under a name of its own", async () => {
  const { run, add, clock } = await opened();
  add(0);
  const { body, headers } = await get(run, "?signed=1&period=7d");
  expect(JSON.parse(body)).toMatchObject({ newest_slot: 417, period: "7d" });
  const jws = headers.get("x-shredway-signature") ?? "";
  const [header = "", , signature = ""] = jws.split(".");
  const signed = Buffer.from(`${header}.${Buffer.from(body).toString("base64url")}`);
  expect(verifyByReference(run.signer.publicKey, signed, Buffer.from(signature, "base64url"))).toBe(
    true,
  );
  const keyAnswer = await fetch(run.url("/.well-known/shredway-keys.json"));
  const keys: KeySet = JSON.parse(await keyAnswer.text());
  const read = await verifyTipHistory(body, jws, keys);
  expect(read).toMatchObject({ period: "7d", resolutionSeconds: 900n, stale: false });
  expect(read.entries).toMatchObject([{ count: 7n, percentiles }]);
  const invalid = { reason: "statement_invalid" };
  await expect(verifyTipHistory(body.replace(":7,", ":8,"), jws, keys)).rejects.toMatchObject(
    invalid,
  );
  await expect(verifyTipFloor(body, jws, keys)).rejects.toMatchObject(invalid);
  await clock.advance(1000);
  const plain = await get(run);
  expect(plain.headers.get("x-shredway-signature")).toBe(null);
  expect(plain.body).not.toContain("newest_slot");
});

it("refuses invalid parameters, and more than two requests per second from an address", async () => {
  const { run, clock } = await opened();
  for (const [query, expected] of [
    ["?period=1h", 'URI parameter period: invalid value "1h"; expected 24h or 7d'],
    ["?format=eur", 'URI parameter format: invalid value "eur"; expected lamports or sol'],
    ["?signed=yes", 'URI parameter signed: invalid value "yes"; expected true or false'],
  ] as const) {
    const { status, body } = await get(run, query);
    expect(status).toBe(400);
    const { error } = JSON.parse(body);
    expect(error.reason).toBe("value_invalid");
    expect(error.message).toContain(expected);
    await clock.advance(1000);
  }
  const answers = [await get(run), await get(run), await get(run)];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
  expect(answers[2]?.headers.get("retry-after")).toBe("1");
  expect(answers[0]?.headers.get("x-ratelimit-limit")).toBe("2");
});
