// The native base58 compared with other libraries.

import { base58 } from "@scure/base";
import { getBase58Decoder } from "@solana/kit";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { base58TextMax, decodeBase58, encodeBase58 } from "../../../src/relay/data-plane/base58.ts";

const digits = Array.from("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz");

describe("base58", () => {
  it("agrees with another library, both ways", () => {
    const someBytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.uint8Array({ minLength: 32, maxLength: 32 }),
      fc.uint8Array({ minLength: 64, maxLength: 64 }),
      fc.uint8Array({ maxLength: 40, max: 1 }),
    );
    fc.assert(
      fc.property(someBytes, (bytes) => {
        const text = encodeBase58(bytes);
        expect(text).toBe(base58.encode(bytes));
        expect(decodeBase58(text)).toEqual(bytes);
      }),
      { numRuns: 2000 },
    );
  });

  it("decodes exactly the texts that the other library decodes", () => {
    const someText = fc.oneof(
      fc.string({ maxLength: 60, unit: fc.constantFrom(...digits) }),
      fc.string({ maxLength: 60, unit: fc.constantFrom(...digits, "0", "O", "I", "l", "é") }),
      fc.string({ maxLength: 20, unit: "binary" }),
    );
    fc.assert(
      fc.property(someText, (text) => {
        let expected: Uint8Array | null = null;
        try {
          expected = base58.decode(text);
        } catch {
          expected = null;
        }
        expect(decodeBase58(text)).toEqual(expected);
      }),
      { numRuns: 2000 },
    );
  });

  it("accepts the longest transaction and rejects longer texts", () => {
    const longest = new Uint8Array(4096).fill(255);
    const text = encodeBase58(longest);
    expect(text.length).toBe(5594);
    expect(text).toBe(getBase58Decoder().decode(longest));
    expect(decodeBase58(text)).toEqual(longest);
    expect(() => encodeBase58(new Uint8Array(4097))).toThrow("at most 4096 bytes, got 4097");
    expect(decodeBase58("1".repeat(base58TextMax))).toEqual(new Uint8Array(base58TextMax));
    expect(decodeBase58("1".repeat(base58TextMax + 1))).toBeNull();
    // As many bytes of UTF-8 as fit, and one more.
    expect(decodeBase58(`${"1".repeat(base58TextMax - 1)}€`)).toBeNull();
    expect(decodeBase58("\u0131".repeat(32))).toBeNull(); // "1" when truncated to a byte
  });

  it("returns a new array each time", () => {
    const [first, second] = [decodeBase58("2NEpo7TZRRrLZSi2U"), decodeBase58("111")];
    expect(Buffer.from(first ?? []).toString()).toBe("Hello World!");
    expect(second).toEqual(new Uint8Array(3));
  });
});
