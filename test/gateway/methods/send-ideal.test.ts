// sendIdeal over real HTTP: which pairs are submitted, and in which form, for the caller's own
// nonce and for a managed one.

import { base58 } from "@scure/base";
import { describe, expect, it } from "vitest";
import { verifySignatures } from "../../../src/sandbox/chain/keys.ts";
import { parseTransaction } from "../../../src/sandbox/chain/wire.ts";
import { apiKey, GatewayRun } from "../../support/gateway/gateway.ts";
import {
  inCoSigning,
  inspector,
  type One,
  one,
  openPairs,
  own,
  pairOf,
  paramsOf,
  refusal,
  rpcFailed,
  signatureOf,
} from "../../support/transactions/nonce-pairs.ts";
import {
  advance,
  authority,
  bob,
  cosigner,
  mention,
  nonceAccount,
  otherNonce,
  payer,
  signing,
  sysvar,
  withdraw,
  writing,
} from "../../support/transactions/nonce-transactions.ts";
import { forged } from "../../support/transactions/tipping.ts";

describe("the caller's own nonce", () => {
  it.each<[string, One]>([
    ["legacy", { version: "legacy" }],
    ["v0", {}],
    ["v0 with a lookup table", { table: [bob.address], others: [mention(writing(bob))] }],
    ["kit's", { library: "kit" }],
    ["v1", { library: "kit", version: 1, fee: 5n, price: 0n }],
  ])("is submitted unchanged: %s", async (_, choices) => {
    const { run, nonces } = await openPairs();
    const pair = pairOf(choices);
    expect(await run.call("sendIdeal", paramsOf(pair, { encoding: "base64" }))).toMatchObject({
      status: 200,
      body: { jsonrpc: "2.0", id: 1, result: pair.map(signatureOf) },
    });
    expect(run.submitted).toMatchObject(
      pair.map((wire) => ({
        accountId: "a_1",
        method: "sendIdeal",
        isBundle: false,
        options: {
          mevProtect: false,
          swqosOnly: false,
          revertProtection: false,
          resendsMax: null,
        },
        receivedNs: run.clock.nowNs(),
        transactions: [{ signature: signatureOf(wire), lifetime: new Uint8Array(32).fill(9) }],
      })),
    );
    for (const [i, wire] of pair.entries()) {
      expect(Buffer.from(run.submitted[i]?.transactions[0]?.wire ?? []).equals(wire)).toBe(true);
    }
    expect(nonces.requests).toEqual([nonceAccount.address]);
    expect(nonces.coSigned).toBe(0);
  });

  it("may have any authority and account", async () => {
    const { run, nonces } = await openPairs(own);
    const accounts = [writing(otherNonce), { address: sysvar }, signing(cosigner)];
    nonces.info = { ...nonces.info, nonceAuthority: cosigner.address };
    const pair = pairOf({ first: advance({ accounts }) });
    expect((await run.call("sendIdeal", paramsOf(pair))).body).toHaveProperty("result");
    expect(nonces.requests).toEqual([otherNonce.address]);
    expect(run.submitted).toHaveLength(2);
  });

  it("works with base58 and without options", async () => {
    const { run } = await openPairs();
    const pair = pairOf();
    for (const config of [{ encoding: "base58" }, null]) {
      const answer = await run.call("sendIdeal", [pair.map((each) => base58.encode(each)), config]);
      expect(answer.body).toMatchObject({ result: pair.map(signatureOf) });
    }
  });

  it("is refused without a node, because both could land with a recent blockhash", async () => {
    const { run, nonces } = await openPairs();
    nonces.failure = rpcFailed();
    const pair = paramsOf(pairOf());
    const unanswered = refusal(-32603, /^rpc_failed: /, "rpc_failed");
    expect(await run.call("sendIdeal", pair)).toMatchObject(unanswered);
    const without = await GatewayRun.open({}, { inspector, nonces: null });
    const unavailable = refusal(-32601, /solana\.rpc/, "upstream_missing");
    expect(await without.call("sendIdeal", pair)).toMatchObject(unavailable);
    expect([run.submitted.length, without.submitted.length]).toEqual([0, 0]);
  });

  it("is never co-signed", async () => {
    const { run, nonces } = await openPairs();
    const answer = await run.call("sendIdeal", paramsOf(pairOf(inCoSigning)));
    expect(answer).toMatchObject(
      refusal(-32003, /^signature_invalid: params\[0\]\[0\]/, "signature_invalid"),
    );
    expect([run.submitted.length, nonces.coSigned]).toEqual([0, 0]);
  });

  it.each([
    ["mev-protect=true", {}, { mevProtect: true, swqosOnly: false }],
    ["swqos-only=true", {}, { mevProtect: false, swqosOnly: true }],
    ["", { mevProtect: true }, { mevProtect: true, swqosOnly: false }],
  ])("applies %s %j", async (uri, config, options) => {
    const { run } = await openPairs();
    await run.call("sendIdeal", paramsOf(pairOf(), config), `/relay?api-key=good&${uri}`);
    expect(run.submitted.map((each) => each.options)).toMatchObject([options, options]);
  });
});

describe("a managed nonce", () => {
  it.each<[string, One]>([
    ["legacy", { version: "legacy" }],
    ["v0", {}],
    ["v0 with a second signer", { others: [mention(signing(cosigner), writing(bob))] }],
    ["kit's", { library: "kit", version: "legacy" }],
  ])("is co-signed, and the final bytes are submitted: %s", async (_, choices) => {
    const { run, nonces } = await openPairs(own);
    const answer = await run.call("sendIdeal", paramsOf(pairOf({ ...choices, ...inCoSigning })));
    const complete = pairOf(choices);
    expect(answer.body).toMatchObject({ result: complete.map(signatureOf) });
    expect(nonces.coSigned).toBe(2);
    for (const [i, wire] of complete.entries()) {
      const facts = run.submitted[i]?.transactions[0];
      if (!facts) throw new Error("expected a submission");
      expect(Buffer.from(facts.wire).equals(wire)).toBe(true);
      verifySignatures(parseTransaction(facts.wire));
      expect(facts).toEqual(inspector.inspect(facts.wire));
      expect(facts.signatureBytes.buffer).toBe(facts.wire.buffer); // for exactly these bytes
    }
  });

  it.each([
    ["both complete", [], [], 0],
    ["the first complete", [], [authority], 1],
    ["the second complete", [authority], [], 1],
  ])("leaves complete transactions unchanged: %s", async (_, first, second, coSigned) => {
    const { run, nonces } = await openPairs(own);
    const pair = [one({ price: 7n, missing: first }), one({ tip: 1_000_000n, missing: second })];
    expect((await run.call("sendIdeal", paramsOf(pair))).body).toHaveProperty("result");
    expect(nonces.coSigned).toBe(coSigned);
    for (const { transactions } of run.submitted) {
      for (const { wire } of transactions) verifySignatures(parseTransaction(wire));
    }
    expect(run.submitted).toHaveLength(2);
  });

  it("works for all keys of the account", async () => {
    const { run } = await openPairs({ ...own, keyId: "k_other" });
    const answer = await run.call("sendIdeal", paramsOf(pairOf(inCoSigning)));
    expect(answer.body).toHaveProperty("result");
  });

  it("is refused to other accounts without revealing its owner", async () => {
    const { run, nonces } = await openPairs({ accountId: "a_secret", keyId: "k_secret" });
    for (const missing of [[], [authority]]) {
      const answer = await run.call("sendIdeal", paramsOf(pairOf({ missing })));
      expect(answer).toMatchObject(
        refusal(
          -32602,
          /^pair_invalid: params\[0\]\[0\]: expected your own nonce account/,
          "pair_invalid",
        ),
      );
      expect(answer.text).not.toContain("secret");
    }
    expect([run.submitted.length, nonces.coSigned, nonces.requests.length]).toEqual([0, 0, 0]);
    run.keys.set("theirs", apiKey("theirs", { accountId: "a_secret" }));
    const path = "/relay?api-key=theirs";
    const answer = await run.call("sendIdeal", paramsOf(pairOf(inCoSigning)), path);
    expect(answer.body).toHaveProperty("result");
    expect(run.submitted).toMatchObject([{ accountId: "a_secret" }, { accountId: "a_secret" }]);
  });

  it.each<[string, One, string]>([
    ["a withdrawal by it", { others: [withdraw()] }, "authority_used_elsewhere"],
    [
      "a program that gets it as an account",
      { others: [mention(signing(authority))] },
      "authority_used_elsewhere",
    ],
    ["it as fee payer", { payer: authority }, "authority_pays_fees"],
    ["the payer's signature missing", { missing: [authority, payer] }, "other_signature_missing"],
    ["version 1", { library: "kit", version: 1, fee: 1n, price: 0n }, "version_1"],
  ])("signs only its advance: %s", async (_, choices, name) => {
    const { run } = await openPairs(own);
    const [good] = pairOf(inCoSigning);
    const bad = one({ tip: 20_000n, ...inCoSigning, ...choices });
    for (const [index, pair] of [
      [bad, good],
      [good, bad],
    ].entries()) {
      const answer = await run.call("sendIdeal", paramsOf(pair));
      const message = new RegExp(
        `^co_signing_refused: params\\[0\\]\\[${index}\\]: co-signing: expected`,
      );
      expect(answer).toMatchObject(
        refusal(-32602, message, "co_signing_refused", { refusal: name, index }),
      );
    }
    expect(run.submitted).toEqual([]);
  });

  it("is refused with an invalid signature of the payer or of the authority", async () => {
    const { run, nonces } = await openPairs(own);
    const [first, second] = pairOf(inCoSigning);
    const wrong = refusal(-32003, /^signature_invalid: params\[0\]\[1\]/, "signature_invalid");
    expect(await run.call("sendIdeal", paramsOf([first, forged(second)]))).toMatchObject(wrong);
    nonces.signsWrongly = true;
    const signed = pairOf()[0];
    expect(await run.call("sendIdeal", paramsOf([signed, second]))).toMatchObject(wrong);
    expect(run.submitted).toEqual([]);
  });

  it("requires the node", async () => {
    const { run, nonces } = await openPairs(own);
    nonces.failure = rpcFailed();
    for (const missing of [[], [authority]]) {
      const answer = await run.call("sendIdeal", paramsOf(pairOf({ missing })));
      expect(answer).toMatchObject(refusal(-32603, /^rpc_failed: /, "rpc_failed"));
    }
    expect([run.submitted.length, nonces.coSigned]).toEqual([0, 0]);
  });
});
