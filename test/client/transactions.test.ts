// Transactions that are not serialised, as JavaScript can pass them; no service is needed.

import { Transaction } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { ShredwayClient } from "../../src/client/index.ts";
import { bytesOf } from "../../src/client/quic/wire.ts";

const client = new ShredwayClient({ url: "http://127.0.0.1:1/relay?api-key=any" });

describe("a transaction that is not serialised", () => {
  it.each([
    ["undefined", undefined, "undefined"],
    ["null", null, "null"],
    ["a number", 5, "type number"],
    ["an object of @solana/web3.js", new Transaction(), "type object"],
    [
      "an object of @solana/kit",
      { messageBytes: new Uint8Array(9), signatures: {} },
      "type object",
    ],
  ])("is refused: %s", async (_, transaction, found) => {
    const message =
      `value_invalid: transaction: expected bytes (Uint8Array) or a text, got ${found}; serialize it first, ` +
      "with transaction.serialize() of @solana/web3.js or getBase64EncodedWireTransaction of @solana/kit";
    const refusal = { name: "ShredwayCallError", reason: "value_invalid", message };
    // @ts-expect-error -- JavaScript has no types
    await expect(client.sendTransaction(transaction)).rejects.toMatchObject(refusal);
    // @ts-expect-error -- JavaScript has no types
    await expect(client.sendBundle(["AA==", transaction])).rejects.toMatchObject(refusal);
    // @ts-expect-error -- JavaScript has no types
    expect(() => bytesOf(transaction, undefined)).toThrow(expect.objectContaining(refusal));
  });
});
