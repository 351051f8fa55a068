// sendAlt over HTTP: its submissions, refusals and results.

import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import { GatewayRun, inspectorFor, scoped, tipAddress } from "../../support/gateway/gateway.ts";
import { base64, forged, tipping } from "../../support/transactions/tipping.ts";

const inspector = inspectorFor([tipAddress]);

/** Fee facts of a transaction that pays exactly the minimum. */
const paid: Partial<TransactionFacts> = {
  computeUnitPrice: 10_000_000n,
  priorityFeeLamports: 2_000_000n,
};
const withoutFallback = { enableFallback: false };
const v1 = { version: 1, computeUnitPrice: 0n, computeUnitLimit: 200_000 } as const;

/** A gateway whose inspector returns `fee` for every transaction. */
function open(fee = paid): Promise<GatewayRun> {
  return GatewayRun.open(
    {},
    { inspector: { inspect: (wire) => ({ ...inspector.inspect(wire), ...fee }) } },
  );
}

function refused(reason: string, message: string | RegExp, code = -32602) {
  return {
    status: 200,
    body: {
      error: {
        code,
        message: message instanceof RegExp ? expect.stringMatching(message) : message,
        data: expect.objectContaining({ reason }),
      },
    },
  };
}

const fallbackExpected = "expected true or false; sendAlt requires it";

describe("sendAlt", () => {
  it.each([
    [{ enableFallback: false }, {}],
    [{ enableFallback: false, revertProtection: true }, { revertProtection: true }],
    [{ enableFallback: true, revertProtection: false }, { enableFallback: true }],
    [{ enableFallback: false, revertProtection: null, encoding: "base64", skipPreflight: 7 }, {}],
  ])(
    "with %j submits one transaction and returns its signature in an array",
    async (given, options) => {
      const run = await open();
      const wire = tipping();
      const { signature } = inspector.inspect(wire);
      expect(await run.call("sendAlt", [base64(wire), given])).toMatchObject({
        status: 200,
        body: { result: [signature] },
      });
      expect(run.submitted).toMatchObject([
        { method: "sendAlt", accountId: "a_1", isBundle: false, transactions: [{ signature }] },
      ]);
      expect(run.submitted[0]?.options).toEqual({
        swqosOnly: false,
        mevProtect: false,
        revertProtection: false,
        enableFallback: false,
        resendsMax: null,
        ...options,
      });
    },
  );

  it("applies the protection of the URL and rejects swqosOnly", async () => {
    const run = await open();
    const path = "/relay?api-key=good";
    await run.call("sendAlt", [base64(tipping()), withoutFallback], `${path}&mev-protect=true`);
    expect(run.submitted[0]?.options.mevProtect).toBe(true);
    expect(
      await run.call("sendAlt", [base64(tipping()), withoutFallback], `${path}&swqos-only=true`),
    ).toMatchObject(refused("value_invalid", /^value_invalid: swqosOnly: expected false/));
  });

  it.each([
    [[base64(tipping())], `params[1].enableFallback: missing value; ${fallbackExpected}`],
    [[base64(tipping()), null], `params[1].enableFallback: missing value; ${fallbackExpected}`],
    [[base64(tipping()), {}], `params[1].enableFallback: missing value; ${fallbackExpected}`],
    [
      [base64(tipping()), { enableFallback: null }],
      `params[1].enableFallback: invalid value null; ${fallbackExpected}`,
    ],
    [[base64(tipping()), []], "params[1]: invalid value []; expected an object"],
    [
      [base64(tipping()), { enableFallback: "true" }],
      `params[1].enableFallback: invalid value "true"; ${fallbackExpected}`,
    ],
    [
      [base64(tipping()), { ...withoutFallback, revertProtection: 1 }],
      "params[1].revertProtection: invalid value 1; expected true or false",
    ],
    [[7, withoutFallback], "params[0]: invalid value 7; expected a string"],
    [
      [[base64(tipping())], withoutFallback],
      /^value_invalid: params\[0\]: invalid value \["[^;]*; expected a string/,
    ],
  ])("refuses %j", async (params, message) => {
    const run = await open();
    const text = message instanceof RegExp ? message : `value_invalid: ${message}`;
    expect(await run.call("sendAlt", params)).toMatchObject(refused("value_invalid", text));
    expect(run.submitted).toEqual([]);
  });

  it.each<[string, Partial<TransactionFacts>, string]>([
    [
      "legacy and v0 by their price",
      { computeUnitPrice: 9_999_999n },
      "too low: 9999999 micro-lamports per compute unit; minimum 10 lamports per compute unit (10000000 micro-lamports)",
    ],
    [
      "v1 by its total",
      { ...v1, priorityFeeLamports: 1_999_999n },
      "too low: 1999999 lamports for 200000 compute units; minimum 10 lamports per compute unit (2000000 lamports)",
    ],
    [
      "v1 without units",
      { ...v1, computeUnitLimit: 0, priorityFeeLamports: 1_999_999n },
      "unknown: the transaction sets no compute unit limit; minimum 10 lamports per compute unit",
    ],
  ])("rejects too low a fee, with and without fallback: %s", async (_, fee, expected) => {
    const run = await open(fee);
    for (const enableFallback of [false, true]) {
      expect(await run.call("sendAlt", [base64(tipping()), { enableFallback }])).toMatchObject(
        refused(
          "priority_fee_too_low",
          `priority_fee_too_low: params[0]: priority fee ${expected}`,
        ),
      );
    }
    expect(run.submitted).toEqual([]);
  });

  it("accepts v1 with the minimum fee", async () => {
    const run = await open({ ...v1, priorityFeeLamports: 2_000_000n });
    await run.call("sendAlt", [base64(tipping()), withoutFallback]);
    expect(run.submitted).toHaveLength(1);
  });

  it("rejects a tip below the minimum and invalid signatures", async () => {
    const run = await open();
    expect(
      await run.call("sendAlt", [base64(tipping({ tip: 5n })), withoutFallback]),
    ).toMatchObject(refused("tip_too_low", /tip 5 lamports/));
    expect(await run.call("sendAlt", [base64(forged(tipping())), withoutFallback])).toMatchObject(
      refused("signature_invalid", /^signature_invalid: params\[0\]/, -32003),
    );
    expect(run.submitted).toEqual([]);
  });

  it("reports a non-partner slot", async () => {
    const run = await open();
    const message =
      "slot 5 (leader X): received in a non-partner slot without fallback and is dropped";
    run.submit = () => Promise.reject(new ShredwayError("non_partner_slot", message));
    expect(await run.call("sendAlt", [base64(tipping()), withoutFallback])).toMatchObject(
      refused("non_partner_slot", `non_partner_slot: ${message}`),
    );
  });

  it('requires a key with the scope "submit"', async () => {
    const run = await open();
    run.keys.set(...scoped("reader", "read"));
    const answer = await run.call(
      "sendAlt",
      [base64(tipping()), withoutFallback],
      "/relay?api-key=reader",
    );
    expect(answer).toMatchObject(refused("scope_missing", /^scope_missing: /, -32600));
    const stranger = await run.call("sendAlt", [base64(tipping()), withoutFallback], "/relay");
    expect(stranger.status).toBe(401);
  });
});
