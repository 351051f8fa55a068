import { base58 } from "@scure/base";
import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import { sendBundle } from "../../../src/gateway/methods/send-bundle.ts";
import { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import { parseTransaction } from "../../../src/sandbox/chain/wire.ts";
import {
  frontWallet,
  GatewayRun,
  otherTipAddress,
  tipAddress,
  tipWallet,
} from "../../support/gateway/gateway.ts";
import { base64, forged, tipping, tippingV0 } from "../../support/transactions/tipping.ts";
import { v1Transfer } from "../../support/transactions/v1-transaction.ts";

const skip = { encoding: "base64", skipPreflight: true };

function signatureOf(wire: Uint8Array): string {
  return base58.encode(parseTransaction(wire).signatures[0] ?? new Uint8Array(0));
}

function error(code: number, message: string | RegExp, reason: string): object {
  return {
    status: 200,
    body: {
      jsonrpc: "2.0",
      id: 1,
      error: {
        code,
        message: message instanceof RegExp ? expect.stringMatching(message) : message,
        data: expect.objectContaining({ reason }),
      },
    },
  };
}

describe("sendTransaction", () => {
  it.each([
    ["legacy", tipping()],
    ["v0", tippingV0()],
    [
      "v1",
      v1Transfer(
        new SandboxKeyPair(new Uint8Array(32).fill(1)),
        tipWallet.publicKey.toBytes(),
        10_000n,
        {
          blockhash: new Uint8Array(32).fill(7),
        },
      ),
    ],
  ])("submits a %s transaction in base64, base58 or a detected encoding", async (_, wire) => {
    const run = await GatewayRun.open();
    const signature = signatureOf(wire);
    for (const [text, encoding] of [
      [base64(wire), "base64"],
      [base64(wire), undefined],
      [base58.encode(wire), "base58"],
      [base58.encode(wire), undefined],
    ]) {
      const answer = await run.call("sendTransaction", [text, { ...skip, encoding }]);
      expect(answer).toMatchObject({
        status: 200,
        body: { jsonrpc: "2.0", result: signature, id: 1 },
      });
    }
    expect(run.submitted).toHaveLength(4);
    for (const request of run.submitted) {
      expect(request).toMatchObject({
        accountId: "a_1",
        method: "sendTransaction",
        isBundle: false,
      });
      expect(Buffer.from(request.transactions[0]?.wire ?? []).equals(wire)).toBe(true);
      expect(request.receivedNs).toBe(run.clock.nowNs());
    }
  });

  it.each([
    [{ maxRetries: 0 }, 0],
    [{ maxRetries: null }, 0],
    [{ max_retries: null }, 0],
    [{ max_retries: 3 }, 3],
    [{ maxRetries: 5 }, 5],
    [{}, null],
  ])("reads %j as the number of resends", async (config, resendsMax) => {
    const run = await GatewayRun.open();
    await run.call("sendTransaction", [base64(tipping()), { ...skip, ...config }]);
    expect(run.submitted[0]?.options.resendsMax).toBe(resendsMax);
  });

  it("applies the options of the third parameter and the URL", async () => {
    const run = await GatewayRun.open();
    const text = base64(tipping());
    await run.call("sendTransaction", [text, skip, { mevProtect: true }]);
    await run.call("sendTransaction", [text, skip], "/relay?api-key=good&mev-protect=true");
    await run.call("sendTransaction", [text, skip], "/relay?api-key=good&swqos-only=true");
    await run.call("sendTransaction", [text, skip, { mevProtect: false }]);
    expect(run.submitted.map(({ options }) => options)).toMatchObject([
      { mevProtect: true, swqosOnly: false },
      { mevProtect: true, swqosOnly: false },
      { mevProtect: false, swqosOnly: true },
      { mevProtect: false, swqosOnly: false },
    ]);
    expect(
      await run.call("sendTransaction", [text], "/?api-key=good&swqos-only=yes"),
    ).toMatchObject(
      error(
        -32602,
        /^value_invalid: URI parameter swqos-only: invalid value "yes"; expected true or false$/,
        "value_invalid",
      ),
    );
  });

  it.each([
    [[]],
    [[5]],
    [[""]],
    [["A", skip]],
    [[base64(tipping()).replace("A", " "), skip]],
    [[`${base64(tipping())}\n`, skip]],
    [[base64(tipping()), { encoding: "hex" }]],
    [[base64(tipping()), { skipPreflight: 1 }]],
    [[base64(tipping()), { maxRetries: -1 }]],
    [[base64(tipping()), { maxRetries: 1.5 }]],
    [[base64(tipping()), { preflightCommitment: "soon" }]],
    [[base64(tipping()), { minContextSlot: "1" }]],
    [[base64(tipping()), []]],
    [[base64(tipping()), skip, { mevProtect: "true" }]],
    [["1".repeat(2000), { encoding: "base58" }]],
    [["A".repeat(5468), skip]],
  ])("refuses the parameters %j", async (params) => {
    const run = await GatewayRun.open();
    const answer = await run.call("sendTransaction", params);
    expect(answer).toMatchObject(error(-32602, /^value_invalid: params/, "value_invalid"));
    expect(run.submitted).toEqual([]);
  });

  it("ignores unknown options and null", async () => {
    const run = await GatewayRun.open();
    const config = { ...skip, other: { a: 1 }, preflightCommitment: null, minContextSlot: null };
    expect(
      (await run.call("sendTransaction", [base64(tipping()), config, null])).body,
    ).toHaveProperty("result");
  });

  it("rejects invalid transactions, missing tips and invalid signatures, in this order", async () => {
    const run = await GatewayRun.open();
    const send = (wire: Uint8Array) => run.call("sendTransaction", [base64(wire), skip]);
    expect(await send(Uint8Array.of(1, 2, 3))).toMatchObject(
      error(-32602, /^transaction_invalid: params\[0\]: /, "transaction_invalid"),
    );
    expect(await send(forged(tipping({ tip: 0n })))).toMatchObject(
      error(
        -32602,
        `tip_missing: params[0]: tip 0 lamports, minimum 10000 lamports, addresses: ${tipAddress}, ${otherTipAddress}`,
        "tip_missing",
      ),
    );
    expect(await send(forged(tipping({ tip: 9_999n })))).toMatchObject(
      error(-32602, /^tip_too_low: params\[0\]: tip 9999 lamports, minimum 10000/, "tip_too_low"),
    );
    expect(await send(forged(tipping()))).toMatchObject(
      error(-32003, /^signature_invalid: params\[0\]: /, "signature_invalid"),
    );
    expect(run.submitted).toEqual([]);
  });

  it("requires no tip if the minimum is 0", async () => {
    const run = await GatewayRun.open({ minimumTipLamports: 0n });
    await run.call("sendTransaction", [base64(tipping({ tip: 0n })), skip]);
    expect(run.submitted).toHaveLength(1);
  });

  it("returns 429 if the verification queue is full", async () => {
    const run = await GatewayRun.open();
    run.verifierIsFull = true;
    const answer = await run.call("sendTransaction", [base64(tipping()), skip]);
    expect(answer).toMatchObject({
      ...error(-32603, /^overloaded: /, "overloaded"),
      status: 429,
    });
    expect(answer.headers.get("retry-after")).toBe("1");
    expect(run.submitted).toEqual([]);
  });

  it("applies minContextSlot", async () => {
    const run = await GatewayRun.open();
    const send = (config: object) =>
      run.call("sendTransaction", [base64(tipping()), { ...skip, ...config }]);
    expect((await send({ minContextSlot: 0 })).body).toHaveProperty("result");
    expect(await send({ minContextSlot: 1 })).toMatchObject(
      error(
        -32016,
        /^context_slot_ahead: .* slot 1 or later, but the current slot is not known: solana\.rpc /,
        "context_slot_ahead",
      ),
    );
    expect(run.submitted).toHaveLength(1);
    run.slot = 8n;
    for (const config of [{ minContextSlot: 9 }, { min_context_slot: 9 }]) {
      expect(await send(config)).toMatchObject(
        error(-32016, /^context_slot_ahead: .*slot 9 or later, got 8$/, "context_slot_ahead"),
      );
    }
    expect((await send({ minContextSlot: 8 })).body).toHaveProperty("result");
    expect((await send({ min_context_slot: null })).body).toHaveProperty("result");
  });

  it("simulates unless skipPreflight is set", async () => {
    const run = await GatewayRun.open();
    const value = {
      err: { InstructionError: [0, { Custom: 1 }] },
      logs: ["Program 1 invoke [1]"],
      unitsConsumed: 150,
      accounts: null,
    };
    run.simulation = () => Promise.resolve(value);
    run.slot = 3n;
    const text = base64(tipping());
    const config = { encoding: "base64", preflightCommitment: "processed", minContextSlot: 3 };
    const answer = await run.call("sendTransaction", [text, config]);
    expect(answer).toMatchObject(
      error(
        -32002,
        "preflight_failed: Transaction simulation failed: Error processing Instruction 0: custom program error: 0x1",
        "preflight_failed",
      ),
    );
    expect(answer.body).toHaveProperty("error.data", { ...value, reason: "preflight_failed" });
    expect(run.simulated).toMatchObject([
      { options: { commitment: "processed", minContextSlot: 3n } },
    ]);
    expect(run.submitted).toEqual([]);
    await run.call("sendTransaction", [text, { skipPreflight: true }]);
    expect(run.simulated).toHaveLength(1);
    run.simulation = () => Promise.reject(new ShredwayError("rpc_failed", "the node is away"));
    expect(await run.call("sendTransaction", [text])).toMatchObject(
      error(
        -32603,
        "rpc_failed: the Solana node behind this service did not return a valid answer; retry later",
        "rpc_failed",
      ),
    );
    run.simulation = () => Promise.resolve({ err: null });
    expect((await run.call("sendTransaction", [text])).body).toHaveProperty("result");
  });

  it("skips the preflight without a node", async () => {
    const run = await GatewayRun.open({}, { preflight: null });
    expect((await run.call("sendTransaction", [base64(tipping())])).body).toHaveProperty("result");
  });

  it("returns errors of the pipeline, and internal errors without their text", async () => {
    const run = await GatewayRun.open();
    const send = () => run.call("sendTransaction", [base64(tipping()), skip]);
    run.submit = () => Promise.reject(new ShredwayError("no_route", "no route is up"));
    expect(await send()).toMatchObject(error(-32603, "no_route: no route is up", "no_route"));
    run.submit = () => Promise.reject(new ShredwayError("overloaded", "50000 are open"));
    expect(await send()).toMatchObject({ status: 429, body: { error: { code: -32603 } } });
    run.submit = () => Promise.reject(new TypeError("secret"));
    const answer = await send();
    expect(answer).toMatchObject(
      error(-32603, /^internal: Internal error, reference gateway-\d+$/, "internal"),
    );
    expect(answer.text).not.toContain("secret");
  });

  it("sends a bundle for bundleOnly, only below /api/v1", async () => {
    const run = await GatewayRun.open();
    const params = [base64(tipping()), skip];
    const answer = await run.call(
      "sendTransaction",
      params,
      "/api/v1/transactions?bundleOnly=true&uuid=good",
    );
    expect(answer.headers.get("x-bundle-id")).toMatch(/^[0-9a-f]{64}$/);
    expect(run.submitted[0]).toMatchObject({ isBundle: true, options: { revertProtection: true } });
    const elsewhere = "/relay?bundleOnly=true&api-key=good";
    expect(await run.call("sendTransaction", params, elsewhere)).toMatchObject(
      error(-32602, /unknown URI parameter "bundleOnly"/, "value_invalid"),
    );
    expect(run.submitted).toHaveLength(1);
  });
});

describe("sendBundle", () => {
  const wires = [0n, 1n, 2n, 3n, 4n].map((amount) =>
    tipping({ amount, tip: amount === 1n ? 10_000n : 0n }),
  );
  const wireTexts = wires.map(base64);

  it("submits 1 to 4 transactions as one bundle, with order and options", async () => {
    const run = await GatewayRun.open();
    const four = wireTexts.slice(0, 4);
    const config = { encoding: "base64", mevProtect: true, revertProtection: true };
    const answer = await run.call("sendBundle", [four, config]);
    expect(answer.body).toEqual({
      jsonrpc: "2.0",
      result: wires.slice(0, 4).map(signatureOf),
      id: 1,
    });
    expect(run.submitted).toMatchObject([
      {
        method: "sendBundle",
        isBundle: true,
        options: { mevProtect: true, revertProtection: true, swqosOnly: false },
      },
    ]);
    await run.call("sendBundle", [[wireTexts[1]]]);
    expect(run.submitted[1]).toMatchObject({
      transactions: [{ signature: signatureOf(wires[1] ?? new Uint8Array(0)) }],
      options: { mevProtect: false, revertProtection: false },
    });
  });

  it("returns the bundle id below /api/v1", async () => {
    const run = await GatewayRun.open();
    const answer = await run.call("sendBundle", [[wireTexts[1]]], "/api/v1/bundles?uuid=good");
    expect(answer.body).toMatchObject({ result: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(answer.headers.get("x-bundle-id")).toBe(Object(answer.body).result);
  });

  it("submits five transactions below /api/v1, as block engines do", async () => {
    const run = await GatewayRun.open();
    const path = "/api/v1/bundles?uuid=good";
    const answer = await run.call("sendBundle", [wireTexts, { encoding: "base64" }], path);
    expect(answer.body).toMatchObject({ result: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(run.submitted[0]?.transactions.map(({ signature }) => signature)).toEqual(
      wires.map(signatureOf),
    );
    const six = [...wireTexts, base64(tipping({ amount: 9n }))];
    const refused = await run.call("sendBundle", [six], path);
    const text = "value_invalid: params[0]: got 6 elements; expected 1 to 5";
    expect(refused).toMatchObject(error(-32602, text, "value_invalid"));
    expect(run.submitted).toHaveLength(1);
  });

  it.each([
    [wireTexts, "got 5 elements; expected 1 to 4, or up to 5 at /api/v1/bundles"],
    [[], "got 0 elements; expected 1 to 4, or up to 5 at /api/v1/bundles"],
    ["A", 'invalid value "A"; expected an array of 1 to 4 strings, or up to 5 at /api/v1/bundles'],
  ])("names the limit of /relay for %j", async (transactions, message) => {
    const run = await GatewayRun.open();
    const answer = await run.call("sendBundle", [transactions]);
    const text = `value_invalid: params[0]: ${message}`;
    expect(answer).toMatchObject(error(-32602, text, "value_invalid"));
    expect(sendBundle.params[0]?.schema).toMatchObject({ minItems: 1, maxItems: 4 });
  });

  it.each([
    [[], "value_invalid"],
    [wireTexts, "value_invalid"],
    ["text", "value_invalid"],
    [[wireTexts[1], 5], "value_invalid"],
    [[wireTexts[0], wireTexts[2]], "tip_missing"],
    [[base64(tipping({ tip: 5n }))], "tip_too_low"],
    [[wireTexts[1], wireTexts[1]], "bundle_invalid"],
    [[wireTexts[1], base64(Uint8Array.of(9))], "transaction_invalid"],
  ])("refuses %j", async (transactions, reason) => {
    const run = await GatewayRun.open();
    const answer = await run.call("sendBundle", [transactions, { encoding: "base64" }]);
    expect(answer).toMatchObject(error(-32602, new RegExp(`^${reason}: `), reason));
    expect(run.submitted).toEqual([]);
  });

  it("submits nothing if one signature is invalid", async () => {
    const run = await GatewayRun.open();
    const bundle = [wireTexts[1], base64(forged(wires[2] ?? new Uint8Array(0)))];
    expect(await run.call("sendBundle", [bundle])).toMatchObject(
      error(-32003, /^signature_invalid: params\[0\]\[1\]: /, "signature_invalid"),
    );
    expect(run.submitted).toEqual([]);
  });

  it("accepts a don't-front marker only in the first transaction", async () => {
    const run = await GatewayRun.open();
    const front = base64(tipping({ mention: frontWallet.publicKey }));
    expect((await run.call("sendBundle", [[front, wireTexts[0]]])).body).toHaveProperty("result");
    expect(await run.call("sendBundle", [[wireTexts[1], front]])).toMatchObject(
      error(-32602, /^bundle_invalid: .* at index 1; expected it at index 0$/, "bundle_invalid"),
    );
    expect(run.submitted).toHaveLength(1);
  });
});

describe("sendBatch", () => {
  const wires = Array.from({ length: 25 }, (_, i) => tipping({ amount: BigInt(i) }));
  const wireTexts = wires.map(base64);

  function exactly(code: number, message: string, data: object): object {
    return { status: 200, body: { error: { code, message, data } } };
  }

  it("submits up to 25 independent transactions, base58 and base64 mixed", async () => {
    const run = await GatewayRun.open();
    const mixed = wires.map((wire, i) => (i % 2 === 0 ? base64(wire) : base58.encode(wire)));
    const answer = await run.call("sendBatch", [mixed, { mevProtect: true }]);
    expect(answer.body).toMatchObject({ result: wires.map(signatureOf) });
    expect(run.submitted).toHaveLength(25);
    for (const request of run.submitted) {
      expect(request).toMatchObject({
        method: "sendBatch",
        isBundle: false,
        options: { mevProtect: true },
      });
      expect(request.transactions).toHaveLength(1);
    }
  });

  it("rejects with the exact texts of the specification", async () => {
    const run = await GatewayRun.open();
    const reason = "batch_refused";
    expect(await run.call("sendBatch", [[...wireTexts, "x"]])).toMatchObject(
      exactly(-32600, "request size 26 exceeded max batch size 25", { reason, size: 26, max: 25 }),
    );
    expect(await run.call("sendBatch", [[wireTexts[0], wireTexts[1], wireTexts[0]]])).toMatchObject(
      exactly(-32600, "contains duplicate signature", { reason }),
    );
    const sanitization = (index: number, cause: string) =>
      exactly(-32600, "Transaction sanitization errors", { reason, index, cause });
    const refused = [
      [base64(Uint8Array.of(1)), "transaction_invalid"],
      [base64(tipping({ tip: 0n })), "tip_missing"],
      [base64(tipping({ tip: 1n })), "tip_too_low"],
      ["~", "value_invalid"],
    ];
    for (const [text, cause = ""] of refused) {
      expect(await run.call("sendBatch", [[wireTexts[0], text]])).toMatchObject(
        sanitization(1, cause),
      );
    }
    const forgedText = base64(forged(wires[1] ?? new Uint8Array(0)));
    const answer = await run.call("sendBatch", [[wireTexts[0], forgedText]]);
    expect(answer).toMatchObject(sanitization(1, "signature_invalid"));
    expect(answer.text).toContain("params[0][1]: signature verification failed");
    expect(run.submitted).toEqual([]);
  });

  it("reports what was sent and what was not after a failure of the pipeline", async () => {
    const run = await GatewayRun.open();
    run.submit = () =>
      run.submitted.length === 2
        ? Promise.reject(new ShredwayError("no_route", "none is up"))
        : Promise.resolve();
    const three = wires.slice(0, 3).map(signatureOf);
    expect(await run.call("sendBatch", [wireTexts.slice(0, 3)])).toMatchObject(
      exactly(-32603, "failed to send batch, internal error", {
        reason: "batch_failed",
        sent: [three[0], three[2]],
        failed: [{ index: 1, cause: "no_route", detail: "none is up" }],
      }),
    );
  });

  it("requires a key with its scope", async () => {
    const run = await GatewayRun.open();
    const params = [[wireTexts[0]]];
    expect(await run.call("sendBatch", params, "/relay?api-key=submitter")).toMatchObject(
      error(
        -32600,
        "scope_missing: sendBatch: the API key has the scopes submit; expected batch",
        "scope_missing",
      ),
    );
    expect((await run.call("sendBatch", params, "/relay?api-key=batcher")).body).toHaveProperty(
      "result",
    );
    expect(
      await run.call("sendTransaction", [wireTexts[0]], "/relay?api-key=batcher"),
    ).toMatchObject(error(-32600, /^scope_missing: sendTransaction: /, "scope_missing"));
  });
});
