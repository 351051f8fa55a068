// Refusals of sendIdeal: nothing is submitted and no key signs.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import { type SandboxKeyPair, verifySignatures } from "../../../src/sandbox/chain/keys.ts";
import { parseTransaction } from "../../../src/sandbox/chain/wire.ts";
import {
  inCoSigning,
  type One,
  one,
  openPairs,
  otherLifetime,
  own,
  pairOf,
  paramsOf,
  refusal,
  signatureOf,
} from "../../support/transactions/nonce-pairs.ts";
import {
  advance,
  authority,
  bob,
  cosigner,
  lifetime,
  nonceAccount,
  otherNonce,
  payer,
  paying,
  signing,
  sysvar,
  transfer,
  writing,
} from "../../support/transactions/nonce-transactions.ts";
import { base64, forged } from "../../support/transactions/tipping.ts";

describe("sendIdeal", () => {
  const [first, second] = pairOf();
  const texts = [first, second].map(base64);

  it.each([
    [[], /^value_invalid: params\[0\]: missing value; expected an array of 2 strings/],
    [[texts[0]], /^value_invalid: params\[0\]: invalid value .*; expected an array of 2 strings/],
    [[[]], /^value_invalid: params\[0\]: got 0 elements; expected 2$/],
    [[[texts[0]]], /^value_invalid: params\[0\]: got 1 element; expected 2$/],
    [[[...texts, texts[0]]], /^value_invalid: params\[0\]: got 3 elements; expected 2$/],
    [[[texts[0], 7]], /^value_invalid: params\[0\]\[1\]: invalid value 7; expected a string/],
    [
      [[texts[0], "?"]],
      /^value_invalid: params\[0\]\[1\]: invalid base64: character "\?" at 0; expected/,
    ],
    [[texts, { encoding: "hex" }], /^value_invalid: params\[1\]\.encoding: /],
    [[texts, []], /^value_invalid: params\[1\]: invalid value \[\]; expected an object/],
    [[texts, { mevProtect: 1 }], /^value_invalid: params\[1\]\.mevProtect: /],
    [[[texts[0], "AAAA"]], /^transaction_invalid: params\[0\]\[1\]: /],
  ])("refuses the parameters %j", async (params, message) => {
    const { run, nonces } = await openPairs(own);
    const reason = message.source.slice(1).split(":")[0] ?? "";
    expect(await run.call("sendIdeal", params)).toMatchObject(refusal(-32602, message, reason));
    expect([run.submitted.length, nonces.requests.length]).toEqual([0, 0]);
  });

  const elsewhere = advance({
    accounts: [writing(otherNonce), { address: sysvar }, signing(authority)],
  });
  const byAnother = advance({
    accounts: [writing(nonceAccount), { address: sysvar }, signing(cosigner)],
  });
  const plain = transfer(paying(payer), writing(bob));

  const noAdvance = "expected an AdvanceNonceAccount instruction first";
  const noPrice = "expected a compute-unit price (in version 1: a priority fee) above 0, got 0";
  const lowTip = "lamports, minimum 10000 lamports, addresses: ";

  it.each<[string, One, One, string]>([
    ["no advance", { first: plain }, {}, `pair_invalid: params[0][0]: ${noAdvance}`],
    ["no advance second", {}, { first: plain }, `pair_invalid: params[0][1]: ${noAdvance}`],
    ["no price", { price: 0n }, {}, `pair_invalid: params[0][0]: ${noPrice}`],
    ["no price second", {}, { price: 0n }, `pair_invalid: params[0][1]: ${noPrice}`],
    [
      "no fee in version 1",
      { library: "kit", version: 1, price: 0n },
      {},
      `pair_invalid: params[0][0]: ${noPrice}`,
    ],
    [
      "two accounts",
      {},
      { first: elsewhere },
      `pair_invalid: params[0][1]: expected the nonce account of params[0][0], ${nonceAccount.address}, got ${otherNonce.address}`,
    ],
    [
      "two authorities",
      {},
      { first: byAnother },
      `pair_invalid: params[0][1]: expected the nonce authority of params[0][0], ${authority.address}, got ${cosigner.address}`,
    ],
    [
      "two values",
      {},
      { lifetime: otherLifetime },
      `pair_invalid: params[0][1]: expected the nonce value of params[0][0], ${lifetime}, got ${otherLifetime}`,
    ],
    ["no tip", { tip: 0n }, {}, `tip_missing: params[0][0]: tip 0 ${lowTip}`],
    ["no tip second", {}, { tip: 0n }, `tip_missing: params[0][1]: tip 0 ${lowTip}`],
    ["a low tip", { tip: 9_999n }, {}, `tip_too_low: params[0][0]: tip 9999 ${lowTip}`],
  ])("refuses %s", async (_, left, right, beginning) => {
    for (const missing of [[], [authority]]) {
      const { run, nonces } = await openPairs(own);
      const pair = [
        one({ price: 3n, missing, ...left }),
        one({ tip: 1_000_000n, missing, ...right }),
      ];
      const answer = await run.call("sendIdeal", paramsOf(pair));
      const [reason = ""] = beginning.split(":");
      const message = new RegExp(`^${beginning.replaceAll(/[[\]()]/g, String.raw`\$&`)}`);
      expect(answer).toMatchObject(refusal(-32602, message, reason));
      expect([run.submitted.length, nonces.requests.length, nonces.coSigned]).toEqual([0, 0, 0]);
    }
  });

  it("rejects two equal transactions", async () => {
    const { run } = await openPairs();
    const answer = await run.call("sendIdeal", paramsOf([first, first]));
    const message = new RegExp(`^pair_invalid: .*\\[1\\]: .*, got ${signatureOf(first)}`);
    expect(answer).toMatchObject(refusal(-32602, message, "pair_invalid", { index: 1 }));
    expect(run.submitted).toEqual([]);
  });

  it.each([[null], [own]])("rejects a spent nonce value, owner %j", async (owner) => {
    const { run, nonces } = await openPairs(owner);
    nonces.info = { ...nonces.info, nonce: otherLifetime };
    const answer = await run.call("sendIdeal", paramsOf([first, second]));
    const message = new RegExp(`^nonce_stale: .*expected .*${otherLifetime}, got ${lifetime}`);
    const details = { expected: otherLifetime, got: lifetime };
    expect(answer).toMatchObject(refusal(-32602, message, "nonce_stale", details));
    expect([run.submitted.length, nonces.coSigned]).toEqual([0, 0]);
  });

  it("rejects an authority other than the nonce's", async () => {
    const { run, nonces } = await openPairs();
    nonces.info = { ...nonces.info, nonceAuthority: cosigner.address };
    const answer = await run.call("sendIdeal", paramsOf([first, second]));
    const message = new RegExp(`^pair_invalid: .*${cosigner.address}, got ${authority.address}`);
    expect(answer).toMatchObject(refusal(-32602, message, "pair_invalid"));
    expect(run.submitted).toEqual([]);
  });

  it("forwards other errors of the account and of the pipeline", async () => {
    const { run, nonces } = await openPairs();
    nonces.failure = new ShredwayError("nonce_invalid", "expected a nonce account, got none");
    expect(await run.call("sendIdeal", paramsOf([first, second]))).toMatchObject(
      refusal(-32602, /^nonce_invalid: /, "nonce_invalid"),
    );
    expect(run.submitted).toEqual([]);
    nonces.failure = undefined;
    run.submit = () => Promise.reject(new ShredwayError("no_route", "none at all"));
    expect(await run.call("sendIdeal", paramsOf([first, second]))).toMatchObject(
      refusal(-32603, /^no_route: none at all$/, "no_route"),
    );
  });

  it("verifies all signatures of both before submitting", async () => {
    const { run } = await openPairs();
    for (const [index, pair] of [
      [forged(first), second],
      [first, forged(second)],
    ].entries()) {
      const message = new RegExp(`^signature_invalid: params\\[0\\]\\[${index}\\]`);
      expect(await run.call("sendIdeal", paramsOf(pair))).toMatchObject(
        refusal(-32003, message, "signature_invalid", { index }),
      );
    }
    run.verifierIsFull = true;
    expect(await run.call("sendIdeal", paramsOf([first, second]))).toMatchObject({
      status: 429,
      body: { error: { data: { reason: "overloaded" } } },
    });
    expect(run.submitted).toEqual([]);
  });

  it("counts as two calls, and queries nothing beyond the limit", async () => {
    const { run, nonces } = await openPairs(own);
    await run.call("sendIdeal", paramsOf(pairOf(inCoSigning)));
    expect(run.countedKeys).toHaveLength(2);
    const requestsBefore = nonces.requests.length;
    const verdict = run.verdict();
    run.verdict = () => ({ ...verdict, allowed: run.countedKeys.length < 4 });
    const answer = await run.call("sendIdeal", paramsOf(pairOf(inCoSigning)));
    expect(answer).toMatchObject({ body: { error: { data: { reason: "rate_limited" } } } });
    expect([run.submitted.length, nonces.requests.length, nonces.coSigned]).toEqual([
      2,
      requestsBefore,
      2,
    ]);
  });

  it('requires the scope "submit"', async () => {
    const { run } = await openPairs();
    const path = "/relay?api-key=reader";
    expect(await run.call("sendIdeal", paramsOf([first, second]), path)).toMatchObject(
      refusal(-32600, /^scope_missing: /, "scope_missing"),
    );
    expect(run.submitted).toEqual([]);
  });

  it("submits both or nothing for any input", async () => {
    const { run, nonces } = await openPairs();
    const choices = fc.record({
      first: fc.oneof(
        { weight: 8, arbitrary: fc.constant(advance()) },
        fc.constantFrom(elsewhere, byAnother, plain),
      ),
      lifetime: fc.oneof(
        { weight: 8, arbitrary: fc.constant(lifetime) },
        fc.constant(otherLifetime),
      ),
      price: fc.oneof({ weight: 8, arbitrary: fc.constantFrom(1n, 2n) }, fc.constant(0n)),
      tip: fc.oneof(
        { weight: 8, arbitrary: fc.constantFrom(10_000n, 20_000n) },
        fc.constant(9_999n),
      ),
      missing: fc.oneof(
        { weight: 8, arbitrary: fc.constantFrom<SandboxKeyPair[][]>([], [authority]) },
        fc.constantFrom([payer], [authority, payer]),
      ),
      version: fc.constantFrom("legacy" as const, 0 as const),
    });
    let accepted = 0;
    await fc.assert(
      fc.asyncProperty(choices, choices, fc.boolean(), async (left, right, isManaged) => {
        nonces.owner = isManaged ? own : null;
        run.submitted.length = 0;
        const pair = [one(left), one(right)];
        const { body } = await run.call("sendIdeal", paramsOf(pair));
        const isFine = [left, right].every(
          (each) =>
            each.first.accounts.every(
              (account, i) => account.address === advance().accounts[i]?.address,
            ) &&
            each.lifetime === lifetime &&
            each.price > 0n &&
            each.tip >= 10_000n &&
            !each.missing.includes(payer) &&
            (isManaged || each.missing.length === 0),
        );
        const isPair = isFine && signatureOf(pair[0] ?? first) !== signatureOf(pair[1] ?? first);
        expect(body).toHaveProperty(isPair ? "result" : "error");
        expect(run.submitted).toHaveLength(isPair ? 2 : 0);
        for (const { transactions } of run.submitted) {
          for (const { wire } of transactions) verifySignatures(parseTransaction(wire));
        }
        accepted += isPair ? 1 : 0;
      }),
      { numRuns: 150, seed: 4 },
    );
    expect(accepted).toBeGreaterThan(15);
  });
});
