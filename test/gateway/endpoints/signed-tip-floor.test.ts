// Signed tip statistics over real HTTP, verified by the formulas of RFC 8032 and by the typed client.

import { expect, it } from "vitest";
import { type KeySet, verifyTipFloor } from "../../../src/client/index.ts";
import type { TipFloor, TipSnapshot } from "../../../src/tips/tip-types.ts";
import { GatewayRun } from "../../support/gateway/gateway.ts";
import { refusedHandshake } from "../../support/gateway/refused-handshake.ts";
import { verifyByReference } from "../../support/signing/ed25519-reference.ts";

const snapshot: TipSnapshot = {
  timeMs: 1_767_226_500_000,
  percentiles: { p25: 6_001n, p50: 10_000n, p75: 36_196n, p95: 1_447_905n, p99: 10_000_799n },
  emaP50: 9_836n,
  count: 123,
  windowStartMs: 1_767_225_600_000,
  isStale: false,
};

async function opened() {
  const listeners = new Set<(snapshot: TipSnapshot) => void>();
  const tipFloor: TipFloor = {
    snapshot,
    onRefresh: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  const run = await GatewayRun.open({}, { tipFloor, slot: () => 417n });
  const refresh = (changes: Partial<TipSnapshot>): void => {
    for (const listener of listeners) listener({ ...snapshot, ...changes });
  };
  return { run, refresh };
}

async function get(run: GatewayRun, path: string) {
  const response = await fetch(run.url(path));
  const signature = response.headers.get("x-shredway-signature");
  return { status: response.status, signature, body: await response.text() };
}

async function keysOf(run: GatewayRun): Promise<KeySet> {
  return JSON.parse((await get(run, "/.well-known/shredway-keys.json")).body);
}

function isSigned({ signer }: GatewayRun, body: string, jws: string): boolean {
  const [header = "", content = "", signature = ""] = jws.split(".");
  expect(content).toBe("");
  const signed = `${header}.${Buffer.from(body).toString("base64url")}`;
  const bytes = Buffer.from(signature, "base64url");
  return verifyByReference(signer.publicKey, Buffer.from(signed), bytes);
}

it("signs count, window, newest slot and staleness with the percentiles", async () => {
  const { run, refresh } = await opened();
  refresh({ count: 7, isStale: true });
  for (const format of ["lamports", "sol"]) {
    const { status, signature, body } = await get(run, `/tip_floor?signed=1&format=${format}`);
    expect(status).toBe(200);
    expect(JSON.parse(body)).toMatchObject([
      {
        time: "2026-01-01T00:15:00.000Z",
        window_start: "2026-01-01T00:00:00.000Z",
        count: 7,
        stale: true,
        newest_slot: 417,
      },
    ]);
    expect(isSigned(run, body, signature ?? "")).toBe(true);
    expect(isSigned(run, body.replace('"count":7', '"count":8'), signature ?? "")).toBe(false);
  }
});

it("is verified by the client, and each refresh has its own signature", async () => {
  const { run, refresh } = await opened();
  const first = await get(run, "/tip_floor?signed=true");
  expect(JSON.parse(first.body)).toMatchObject([{ count: 123, newest_slot: null }]);
  const keys = await keysOf(run);
  const verify = verifyTipFloor(first.body, first.signature ?? "", keys);
  expect(await verify).toMatchObject({ p50: 10_000n, count: 123n, stale: false });
  refresh({ count: 124 });
  const second = await get(run, "/tip_floor?signed=1");
  expect(second.signature).not.toBe(first.signature);
  await verifyTipFloor(second.body, second.signature ?? "", keys);
  for (const [body, signature] of [
    [first.body, second.signature ?? ""],
    [`${first.body} `, first.signature ?? ""],
    [first.body, run.signer.signDetached("shredway-receipt", first.body)],
    [first.body, run.signer.sign("shredway-tips", first.body)],
  ] as const) {
    await expect(verifyTipFloor(body, signature, keys)).rejects.toMatchObject({
      reason: "statement_invalid",
    });
  }
});

it("is unchanged without the parameter; invalid values and streams are refused", async () => {
  const { run } = await opened();
  for (const path of ["/tip_floor", "/tip_floor?signed=0"]) {
    const { signature, body } = await get(run, path);
    expect(signature).toBe(null);
    expect(body).not.toContain("newest_slot");
  }
  const invalid = await get(run, "/tip_floor?signed=yes");
  expect(invalid.status).toBe(400);
  expect(JSON.parse(invalid.body)).toMatchObject({ error: { reason: "value_invalid" } });
  const { status } = await refusedHandshake(run.url("/tip_stream?signed=1"));
  expect(status).toBe(400);
});
