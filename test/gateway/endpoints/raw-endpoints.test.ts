// sendAlt and sendIdeal on the raw paths: bodies as bytes and as base64, options in the URL.

import { describe, expect, it } from "vitest";
import { GatewayRun } from "../../support/gateway/gateway.ts";
import {
  one,
  openPairs,
  own,
  pairOf,
  signatureOf,
} from "../../support/transactions/nonce-pairs.ts";
import { authority } from "../../support/transactions/nonce-transactions.ts";
import { base64, forged, tipping } from "../../support/transactions/tipping.ts";

type RawPath = "relayb" | "relay2";

const paths = ["relayb", "relay2"] as const;

/** The transactions as the body of the path. */
function bodyOf(
  path: RawPath,
  wires: readonly Uint8Array[],
  isSingle = false,
): Uint8Array | string {
  if (path === "relay2") return wires.map(base64).join(",");
  if (isSingle) return Buffer.concat(wires);
  return Buffer.concat(
    wires.flatMap((wire) => [Uint8Array.of(wire.length >> 8, wire.length & 255), wire]),
  );
}

function refusal(reason: string, message: string): object {
  const error = { message: expect.stringContaining(message), data: { reason } };
  return { status: 200, body: { jsonrpc: "2.0", error, id: 1 } };
}

describe.each(paths)("sendAlt at /%s", (path) => {
  const wire = tipping();
  const body = bodyOf(path, [wire], true);
  const url = `/${path}?api-key=good&method=sendAlt`;
  const settings = { partnerUnitLamports: 0n };

  it.each([true, false])("submits with enable-fallback=%s", async (enableFallback) => {
    const run = await GatewayRun.open(settings);
    const options = `enable-fallback=${enableFallback}&revert-protection=true&mev-protect=true`;
    const answer = await run.post(body, `${url}&${options}`);
    expect(answer.body).toEqual({ jsonrpc: "2.0", result: [signatureOf(wire)], id: 1 });
    expect(run.submitted).toMatchObject([
      {
        method: "sendAlt",
        isBundle: false,
        options: { enableFallback, revertProtection: true, mevProtect: true, swqosOnly: false },
      },
    ]);
  });

  it.each([
    ["", "value_invalid", "URI parameter enable-fallback: missing value; expected true or false"],
    ["&enable-fallback=1", "value_invalid", 'enable-fallback: invalid value "1"; expected true or'],
    [
      "&enable-fallback=true&swqos-only=true",
      "value_invalid",
      "swqosOnly: expected false for send",
    ],
  ])("refuses the options %j", async (options, reason, message) => {
    const run = await GatewayRun.open(settings);
    expect(await run.post(body, url + options)).toMatchObject(refusal(reason, message));
    expect(run.submitted).toEqual([]);
  });

  it("checks tip, priority fee and signature", async () => {
    const run = await GatewayRun.open();
    const post = (bytes: Uint8Array) =>
      run.post(bodyOf(path, [bytes], true), `${url}&enable-fallback=true`);
    expect(await post(tipping({ tip: 3n }))).toMatchObject(refusal("tip_too_low", "body: tip 3"));
    expect(await post(wire)).toMatchObject(refusal("priority_fee_too_low", "body: "));
    const other = await GatewayRun.open(settings);
    const forgedBody = bodyOf(path, [forged(wire)], true);
    expect(await other.post(forgedBody, `${url}&enable-fallback=true`)).toMatchObject(
      refusal("signature_invalid", "body: signature verification failed"),
    );
    expect([...run.submitted, ...other.submitted]).toEqual([]);
  });
});

describe.each(paths)("sendIdeal at /%s", (path) => {
  const url = `/${path}?api-key=good&method=sendIdeal`;

  it("submits a pair", async () => {
    const { run } = await openPairs();
    const pair = pairOf();
    const answer = await run.post(bodyOf(path, pair), `${url}&mev-protect=true`);
    expect(answer.body).toEqual({ jsonrpc: "2.0", result: pair.map(signatureOf), id: 1 });
    expect(run.submitted.map(({ method, options }) => [method, options.mevProtect])).toEqual([
      ["sendIdeal", true],
      ["sendIdeal", true],
    ]);
  });

  it("adds the signatures of the managed authority", async () => {
    const { run, nonces } = await openPairs(own);
    const pair = [one({ missing: [authority] }), one({ tip: 20_000n, missing: [authority] })];
    expect((await run.post(bodyOf(path, pair), url)).body).toHaveProperty("result");
    expect([nonces.coSigned, run.submitted.length]).toEqual([2, 2]);
  });

  it.each([1, 3])("refuses %i transactions", async (count) => {
    const { run } = await openPairs();
    const wires = Array.from({ length: count }, (_, i) => one({ tip: 10_000n + BigInt(i) }));
    expect(await run.post(bodyOf(path, wires), url)).toMatchObject(
      refusal("value_invalid", `body: expected 2 transactions, got ${count}`),
    );
    expect(run.submitted).toEqual([]);
  });

  it("names the transaction that is wrong", async () => {
    const { run } = await openPairs();
    const untipped = [one(), one({ tip: 0n })];
    expect(await run.post(bodyOf(path, untipped), url)).toMatchObject(
      refusal("tip_missing", "transaction 1: tip 0 lamports"),
    );
    const plain = [one(), tipping()];
    expect(await run.post(bodyOf(path, plain), url)).toMatchObject(
      refusal("pair_invalid", "transaction 1: expected an AdvanceNonceAccount instruction first"),
    );
    const twice = [one(), one()];
    expect(await run.post(bodyOf(path, twice), url)).toMatchObject(
      refusal(
        "pair_invalid",
        "transaction 1: expected a signature other than that of transaction 0",
      ),
    );
    expect(run.submitted).toEqual([]);
  });
});
