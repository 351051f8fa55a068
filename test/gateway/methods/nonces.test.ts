// getNonce over HTTP: which account it returns, and what it never reveals.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import type { NonceInfo, NonceOwner, Nonces } from "../../../src/gateway/nonces/types.ts";
import { apiKey, GatewayRun } from "../../support/gateway/gateway.ts";
import { addressOf, wallet } from "../../support/transactions/chain.ts";

const info: NonceInfo = {
  nonce: addressOf(wallet(70)),
  nonceAccount: addressOf(wallet(71)),
  nonceAuthority: addressOf(wallet(72)),
};

/** Returns more fields than callers may see. */
class StubNonces implements Nonces {
  readonly owners: NonceOwner[] = [];
  readonly accounts: string[] = [];
  refusal: ShredwayError | null = null;

  managed(owner: NonceOwner): Promise<NonceInfo> {
    this.owners.push(owner);
    return this.#answer();
  }

  of(account: string): Promise<NonceInfo> {
    this.accounts.push(account);
    return this.#answer();
  }

  ownerOf(): null {
    return null;
  }

  coSign(): Promise<Uint8Array> {
    return Promise.reject(new Error("expected no co-signing"));
  }

  #answer(): Promise<NonceInfo> {
    if (this.refusal) return Promise.reject(this.refusal);
    return Promise.resolve(Object.assign({ index: 7 }, info));
  }
}

async function open(): Promise<{ run: GatewayRun; stub: StubNonces }> {
  const stub = new StubNonces();
  const run = await GatewayRun.open({}, { nonces: stub });
  const theirs = apiKey("sw_theirs", { accountId: "a_2" });
  run.keys.set("sw_theirs", theirs);
  return { run, stub };
}

const expected =
  "expected the API key of this call, or the public key of a nonce account (32 bytes in base58)";
const textRefusal = `value_invalid: params[0]: invalid value; ${expected}`;
const missingRefusal = `value_invalid: params[0]: missing value; ${expected}`;

describe("getNonce", () => {
  it("returns exactly three fields of the key's own account", async () => {
    const { run, stub } = await open();
    const answer = await run.call("getNonce", ["good"]);
    expect(answer.body).toEqual({ jsonrpc: "2.0", id: 1, result: info });
    expect(stub.owners).toEqual([{ accountId: "a_1", keyId: "k_good" }]);
    await run.call("getNonce", ["sw_theirs"], "/relay?api-key=sw_theirs");
    expect(stub.owners[1]).toEqual({ accountId: "a_2", keyId: "k_sw_theirs" });
    expect(stub.accounts).toEqual([]);
  });

  it("returns any account by its public key", async () => {
    const { run, stub } = await open();
    const answer = await run.call("getNonce", [info.nonceAccount]);
    expect(answer.body).toMatchObject({ result: info });
    expect(stub.accounts).toEqual([info.nonceAccount]);
    expect(stub.owners).toEqual([]);
  });

  it("treats another key of the same account as another key", async () => {
    const { run, stub } = await open();
    const answer = await run.call("getNonce", ["submitter"]);
    expect(answer.body).toMatchObject({ error: { message: textRefusal } });
    expect(stub.owners).toEqual([]);
  });

  it("returns the same error for another account's key and an invalid text, and quotes neither", async () => {
    const { run, stub } = await open();
    run.keys.set("sw_rotated", apiKey("sw_rotated", { id: "k_good2" }));
    const texts = ["sw_theirs", "sw_nobodys", "sw_rotated", "", "x".repeat(300), "1".repeat(45)];
    const answers = [];
    for (const text of texts) answers.push((await run.call("getNonce", [text])).text);
    expect(new Set(answers).size).toBe(1);
    expect(JSON.parse(answers[0] ?? "")).toEqual({
      jsonrpc: "2.0",
      id: 1,
      error: { code: -32602, message: textRefusal, data: { reason: "value_invalid" } },
    });
    expect([...stub.owners, ...stub.accounts]).toEqual([]);
  });

  it("quotes no other values and rejects other texts", async () => {
    const { run, stub } = await open();
    const value = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom(["sw_theirs"], { key: "sw_theirs" }, null, 7),
      fc.string({ minLength: 20, maxLength: 44 }).map((text) => `sw_theirs${text}`),
    );
    await fc.assert(
      fc.asyncProperty(value, async (given) => {
        if (given === "good") return;
        const { body, text } = await run.call("getNonce", [given]);
        expect(text).not.toContain("sw_theirs");
        expect(body).toMatchObject({ error: { data: { reason: "value_invalid" } } });
      }),
      { numRuns: 60 },
    );
    expect((await run.call("getNonce")).body).toMatchObject({ error: { message: missingRefusal } });
    expect([...stub.owners, ...stub.accounts]).toEqual([]);
  });

  it("returns the retry time", async () => {
    const { run, stub } = await open();
    stub.refusal = new ShredwayError("nonce_pending", "being made", {
      details: { retryAfterSeconds: 2 },
    });
    const { status, headers, body } = await run.call("getNonce", ["good"]);
    expect([status, headers.get("retry-after")]).toEqual([200, "2"]);
    expect(body).toMatchObject({
      error: { code: -32005, data: { reason: "nonce_pending", retryAfterSeconds: 2 } },
    });
  });

  it.each([
    ["nonce_unavailable", -32601],
    ["nonce_failed", -32603],
    ["nonce_invalid", -32602],
    ["rpc_failed", -32603],
    ["store_failed", -32603],
  ] as const)("forwards %s", async (reason, code) => {
    const { run, stub } = await open();
    const cause = new Error("for the operator alone");
    stub.refusal = new ShredwayError(reason, "this and that", { cause });
    const { body, headers } = await run.call("getNonce", ["good"]);
    expect(JSON.stringify(body)).not.toContain(cause.message);
    expect(body).toMatchObject({
      error: {
        code,
        // Only the operator's log may contain errors of nodes.
        message: reason === "rpc_failed" ? expect.any(String) : `${reason}: this and that`,
        data: { reason },
      },
    });
    expect(headers.get("retry-after")).toBeNull();
  });

  it('requires a node, a key and the scope "submit"', async () => {
    const { run } = await open();
    for (const [path, reason] of [
      ["/relay?api-key=reader", "scope_missing"],
      ["/relay?api-key=batcher", "scope_missing"],
      ["/relay", "unauthorized"],
    ] as const) {
      const { body } = await run.call("getNonce", ["good"], path);
      expect(body).toMatchObject({ error: { data: { reason } } });
    }
    const without = await GatewayRun.open();
    expect((await without.call("getNonce", ["good"])).body).toMatchObject({
      error: { data: { reason: "upstream_missing" } },
    });
  });
});
