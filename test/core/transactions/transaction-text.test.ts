// Texts without an encoding that are not a transaction: the error names what was expected.

import { describe, expect, it } from "vitest";
import { readTransactionText } from "../../../src/core/transactions/transaction-text.ts";
import { TransactionInspector } from "../../../src/gateway/transactions/transaction-checks.ts";
import { decodeBase58 } from "../../support/gateway/gateway.ts";

const inspector = new TransactionInspector({ tipAddresses: [], dontFrontPrefixes: [] });
const reader = { inspect: (wire: Uint8Array) => inspector.inspect(wire), decode: decodeBase58 };

function read(text: string, encoding: "base64" | "base58" | null = null): () => unknown {
  return () => readTransactionText("params[0]", text, encoding, reader);
}

const both =
  "params[0]: expected a transaction in base64 (at most 5464 characters) or in base58 " +
  "(at most 1683 characters), got";

describe("readTransactionText", () => {
  it.each([1684, 1685, 5464, 5465, 9000])(
    "names both encodings for %i characters of the base58 alphabet that are neither",
    (length) => {
      expect(read("z".repeat(length))).toThrow(`${both} ${length} characters that are neither`);
    },
  );

  it("names only the encoding that the caller gave", () => {
    const long = "z".repeat(1685);
    expect(read(long, "base58")).toThrow(
      "params[0]: expected at most 1683 characters of base58 (larger ones: base64), got 1685",
    );
    expect(read(long, "base64")).toThrow(
      "params[0]: invalid base64: 1685 characters, not a multiple of 4; expected a transaction in base64",
    );
  });

  it.each([
    ["", "base64", "empty text"],
    ["", "base58", "empty text"],
    [`${"A".repeat(340)}\n`, "base64", 'invalid base64: character "\\n" at 340'],
    ["AA=A", "base64", 'invalid base64: character "A" at 3'],
    ["AAA🙂", "base64", 'invalid base64: character "🙂" at 3'],
    ["AAAAA", "base64", "invalid base64: 5 characters, not a multiple of 4"],
    ["AB==", "base64", "invalid base64: unused bits before the padding are not 0"],
    ["22O2", "base58", 'invalid base58: character "O" at 2'],
  ] as const)("names the first invalid character of %j in %s", (text, encoding, problem) => {
    const message = `params[0]: ${problem}; expected a transaction in ${encoding}`;
    expect(read(text, encoding)).toThrow(expect.objectContaining({ message }));
  });

  it("names the violated rule of a short text, which decodes as base58", () => {
    expect(read("zzz")).toThrow(expect.objectContaining({ reason: "transaction_invalid" }));
  });

  it("never quotes the text", () => {
    for (const text of ["secret~".repeat(9), "z".repeat(2000), "secretsecret"]) {
      expect(read(text)).not.toThrow(text.slice(0, 6));
      expect(read(text)).toThrow(/expected|transaction/);
    }
  });
});
