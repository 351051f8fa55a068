// The minimum tip of each method, on every endpoint that submits.

import { describe, expect, it } from "vitest";
import type { SubmitMethod } from "../../../src/gateway/submission/types.ts";
import { GatewayRun, tipWallet } from "../../support/gateway/gateway.ts";
import { bob } from "../../support/transactions/chain.ts";
import {
  one,
  openPairs,
  own,
  paramsOf as paramsOfPair,
} from "../../support/transactions/nonce-pairs.ts";
import { base64, tipping, tippingV0 } from "../../support/transactions/tipping.ts";

const wire = tipping({ tip: 15_000n });
const second = tipping({ tip: 15_000n, amount: 3n });

function paramsOf(method: SubmitMethod): unknown[] {
  if (method === "sendBundle" || method === "sendBatch") return [[base64(wire)]];
  return [base64(wire), { encoding: "base64", skipPreflight: true, enableFallback: true }];
}

async function runWith(minimums: Partial<Record<SubmitMethod, bigint>>): Promise<GatewayRun> {
  return GatewayRun.open({ minimumTipLamportsByMethod: minimums, partnerUnitLamports: 0n });
}

describe("the minimum tip of a method", () => {
  it.each(["sendTransaction", "sendBundle", "sendBatch", "sendAlt"] as const)(
    "applies to %s and to no other method",
    async (method) => {
      const run = await runWith({ [method]: 20_000n });
      const { text } = await run.call(method, paramsOf(method));
      expect(text).toMatch(`tip 15000 lamports, minimum 20000 lamports for ${method}, addresses: `);
      expect(text).toMatch(/tip_too_low/);
      expect(run.submitted).toEqual([]);
      for (const other of ["sendTransaction", "sendBundle", "sendBatch", "sendAlt"] as const) {
        if (other !== method) await run.call(other, paramsOf(other));
      }
      expect(run.submitted.map((request) => request.method)).not.toContain(method);
      expect(run.submitted).toHaveLength(3);
    },
  );

  it("applies to each transaction of sendIdeal", async () => {
    const { run } = await openPairs(own, { minimumTipLamportsByMethod: { sendIdeal: 20_000n } });
    const pair = [one({ price: 3n, tip: 30_000n }), one({ tip: 15_000n })];
    expect((await run.call("sendIdeal", paramsOfPair(pair))).text).toMatch(
      /params\[0\]\[1\]: tip 15000 lamports, minimum 20000 lamports for sendIdeal/,
    );
  });

  it("may be lower than that of the other methods", async () => {
    const run = await runWith({ sendAlt: 0n });
    const free = base64(tipping({ tip: 0n }));
    expect((await run.call("sendAlt", [free, { enableFallback: true }])).body).toHaveProperty(
      "result",
    );
    expect((await run.call("sendTransaction", [free])).text).toMatch(
      /tip_missing: params\[0\]: tip 0 lamports, minimum 10000 lamports, addresses/,
    );
  });

  it("counts the tips of a bundle together", async () => {
    const run = await runWith({ sendBundle: 30_000n });
    const bundle = [[base64(wire), base64(second)]];
    expect((await run.call("sendBundle", bundle)).body).toHaveProperty("result");
  });

  it.each(["/relayb", "/relay2"])("applies on %s", async (path) => {
    const run = await runWith({ sendTransaction: 20_000n });
    const body = path === "/relayb" ? wire : base64(wire);
    expect((await run.post(body, `${path}?api-key=good`)).text).toMatch(
      /tip_too_low: body: tip 15000 lamports, minimum 20000 lamports for sendTransaction/,
    );
  });
});

describe("a tip address from a lookup table", () => {
  const hint = "does not count";
  const plain = { encoding: "base64", skipPreflight: true };

  it("is named as the reason if the tip is missing", async () => {
    const run = await runWith({});
    const sent = await run.call("sendTransaction", [
      base64(tippingV0({}, [tipWallet.publicKey])),
      plain,
    ]);
    expect(sent.text).toMatch(
      /tip 0 lamports, minimum 10000 lamports, addresses: [\w, ]+; an address from a lookup table does not count"/,
    );
    const bundle = [base64(tipping({ tip: 0n })), base64(tippingV0({}, [tipWallet.publicKey]))];
    expect((await run.call("sendBundle", [bundle])).text).toContain(hint);
    expect(run.submitted).toEqual([]);
  });

  it("is not named if the transaction has no table", async () => {
    const run = await runWith({});
    for (const unpaid of [tippingV0({ tip: 0n }), tipping({ tip: 0n })]) {
      const { text } = await run.call("sendTransaction", [base64(unpaid), plain]);
      expect(text).toContain("tip_missing");
      expect(text).not.toContain(hint);
    }
  });

  it("may be beside one among the transaction's own keys", async () => {
    const run = await runWith({});
    const paid = tippingV0({}, [bob.publicKey]);
    expect((await run.call("sendTransaction", [base64(paid), plain])).body).toHaveProperty(
      "result",
    );
  });
});
