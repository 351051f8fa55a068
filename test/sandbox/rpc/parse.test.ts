// Parsers of hostile bytes: any data of programs and callers is shown.

import { getBase58Decoder } from "@solana/kit";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { describeFailure } from "../../../src/core/transactions/describe-failure.ts";
import { encodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import { dataText, decodeBase58, decodeBase64 } from "../../../src/sandbox/rpc/bytes.ts";
import { encodeAccount } from "../../../src/sandbox/rpc/encode-account.ts";
import { encodeParsedInstruction } from "../../../src/sandbox/rpc/parse-instruction.ts";
import { uiTokenAmount } from "../../../src/sandbox/rpc/token-layout.ts";

const programs = [
  "11111111111111111111111111111111",
  "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
  "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb",
  "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL",
  "AddressLookupTab1e1111111111111111111111111",
  "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr",
  "Vote111111111111111111111111111111111111111",
];

function bytesOf(hex: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hex, "hex"));
}

describe("instructions", () => {
  const small = fc.uint8Array({ maxLength: 140 });
  /** Begins with a known instruction number more often than by chance. */
  const numbered = fc
    .tuple(fc.nat(24), fc.boolean(), small)
    .map(([number, isWide, rest]) =>
      Uint8Array.from([number, ...(isWide ? [0, 0, 0] : []), ...rest]),
    );

  it("are shown for any data and accounts", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...programs),
        fc.oneof(numbered, small),
        fc.array(fc.constantFrom(...programs), { maxLength: 8 }),
        (programId, data, accounts) => {
          const shown = encodeParsedInstruction({ programId, accounts, data, stackHeight: 1 });
          expect(shown).toHaveProperty("programId", programId);
          expect("parsed" in shown || "data" in shown).toBe(true);
        },
      ),
      { numRuns: 2000 },
    );
  });

  const [a = "", b = "", c = "", d = ""] = programs;
  it.each([
    [a, "02000000 0100000000000000", { type: "transfer", info: { lamports: 1n, destination: b } }],
    [a, "04000000", { type: "advanceNonce", info: { nonceAccount: a, nonceAuthority: c } }],
    [
      a,
      `03000000 ${"00".repeat(32)} 0200000000000000 6869 0500000000000000 0600000000000000 ${"00".repeat(32)}`,
      { type: "createAccountWithSeed", info: { seed: "hi", lamports: 5n, space: 6n, owner: a } },
    ],
    [b, "03 0a00000000000000", { type: "transfer", info: { amount: "10", multisigAuthority: c } }],
    [
      b,
      "0c 0a00000000000000 01",
      { type: "transferChecked", info: { authority: d, tokenAmount: { uiAmountString: "1" } } },
    ],
    [b, "06 02 00", { type: "setAuthority", info: { newAuthority: null, signers: [c, d] } }],
  ])("of %s are read: %s", (programId, hex, parsed) => {
    const data = bytesOf(hex.replaceAll(" ", ""));
    const shown = encodeParsedInstruction({
      programId,
      accounts: [a, b, c, d],
      data,
      stackHeight: 2,
    });
    expect(shown).toMatchObject({ parsed, stackHeight: 2 });
  });
});

describe("instructions with wrong lengths", () => {
  it.each([3, 9, 10, 11])("are shown unparsed: %i", (number) => {
    for (const length of ["ffffffffffffffff", "4000000000000000", "3000000000000000"]) {
      const at = number === 11 ? 12 : 36;
      const data = bytesOf("00".repeat(95));
      data[0] = number;
      data.set(bytesOf(length), at);
      const [programId = ""] = programs;
      const accounts = programs.slice(0, 3);
      const shown = encodeParsedInstruction({ programId, accounts, data, stackHeight: 1 });
      expect(shown).toHaveProperty("data", encodeBase58(data));
    }
  });
});

describe("accounts", () => {
  it("are shown for any content", () => {
    const sizes = fc.constantFrom(0, 56, 80, 82, 88, 165, 170, 171, 355);
    const contents = sizes.chain((size) =>
      fc
        .tuple(fc.uint8Array({ minLength: size, maxLength: size }), fc.nat(2), fc.nat(2))
        .map(([data, first, type]) => {
          if (size > 0) data.set([first, 0, 0, 0]);
          if (size > 165) data[165] = type;
          return data;
        }),
    );
    fc.assert(
      fc.property(fc.constantFrom(...programs), contents, (owner, data) => {
        const account = { lamports: 1n, data, owner, executable: false, rentEpoch: 0n };
        const format = { encoding: "jsonParsed", slice: null } as const;
        expect(encodeAccount(account, format, () => account)).toMatchObject({ space: data.length });
      }),
      { numRuns: 2000 },
    );
  });
});

describe("texts", () => {
  it("decode base58 and base64 to the encoded bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        expect(decodeBase58(encodeBase58(bytes), 200)).toEqual(bytes);
        expect(decodeBase64(Buffer.from(bytes).toString("base64"), 200)).toEqual(bytes);
      }),
    );
    for (const text of ["0", "O", "I", "l", "é", " "])
      expect(decodeBase58(text, 9)).toBeUndefined();
    for (const text of ["A", "AA", "AB==", "AA=A", "A-_A", "AAA "]) {
      expect(decodeBase64(text, 9)).toBeUndefined();
    }
    expect(decodeBase58("1".repeat(10), 9)).toBeUndefined();
    expect(decodeBase64("AAAA", 3)).toBeUndefined();
  });

  it("are exact for amounts", () => {
    expect(uiTokenAmount(1_500_000n, 6)).toMatchObject({ uiAmountString: "1.5", uiAmount: 1.5 });
    expect(uiTokenAmount(1n, 9)).toMatchObject({ uiAmountString: "0.000000001" });
    expect(uiTokenAmount(0n, 0)).toMatchObject({ uiAmountString: "0", amount: "0" });
    expect(uiTokenAmount(2n ** 64n - 1n, 2).uiAmountString).toBe("184467440737095516.15");
  });

  it("describe the error of failures", () => {
    expect(describeFailure("BlockhashNotFound")).toBe("Blockhash not found");
    expect(describeFailure("ClusterMaintenance")).toBe("cluster maintenance");
    expect(describeFailure({ InstructionError: [3, { Custom: 17 }] })).toBe(
      "Error processing Instruction 3: custom program error: 0x11",
    );
    expect(describeFailure({ InstructionError: [0, "InvalidAccountData"] })).toBe(
      "Error processing Instruction 0: invalid account data",
    );
    expect(describeFailure({ InsufficientFundsForRent: { account_index: 1 } })).toContain("rent");
    expect(describeFailure({ DuplicateInstruction: 2 })).toBe('{"DuplicateInstruction":2}');
  });
});

describe("dataText", () => {
  it.each([0, 3, 4096, 4097, 10_240])("writes %i bytes like another library", (length) => {
    const data = Uint8Array.from({ length }, (_, at) => (at < 2 ? 0 : at % 256));
    expect(dataText(data)).toBe(getBase58Decoder().decode(data));
    expect(dataText(new Uint8Array(length))).toBe("1".repeat(length));
  });
});
