// Key ranges of address prefixes, compared with the addresses themselves.

import { base58 } from "@scure/base";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dontFrontRanges } from "../../../src/gateway/transactions/dont-front.ts";

const digits = Array.from("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz");

interface Range {
  readonly first: Buffer;
  readonly last: Buffer;
}

function rangesOf(prefix: string): Range[] {
  const bytes = Buffer.from(dontFrontRanges([prefix]));
  return Array.from({ length: bytes.length / 64 }, (_, i) => ({
    first: bytes.subarray(i * 64, i * 64 + 32),
    last: bytes.subarray(i * 64 + 32, i * 64 + 64),
  }));
}

function isInside(key: Uint8Array, ranges: readonly Range[]): boolean {
  return ranges.some(
    ({ first, last }) => Buffer.compare(key, first) >= 0 && Buffer.compare(key, last) <= 0,
  );
}

function neighbour(key: Uint8Array, step: bigint): Uint8Array {
  const value = BigInt(`0x${Buffer.from(key).toString("hex")}`) + step;
  const hex = BigInt.asUintN(256, value).toString(16).padStart(64, "0");
  return Buffer.from(hex, "hex");
}

/** Keys with any number of leading zero bytes. */
const someKey = fc
  .tuple(fc.uint8Array({ minLength: 32, maxLength: 32 }), fc.integer({ min: 0, max: 32 }))
  .map(([key, zeros]) => (zeros > 6 && zeros < 26 ? key : key.fill(0, 0, zeros % 33)));

describe("ranges of don't-front markers", () => {
  it("contain exactly the keys with the prefix", () => {
    fc.assert(
      fc.property(someKey, fc.integer({ min: 1, max: 44 }), (key, length) => {
        const prefix = base58.encode(key).slice(0, length);
        const ranges = rangesOf(prefix);
        expect(isInside(key, ranges)).toBe(true);
        for (const { first, last } of ranges) {
          expect(base58.encode(first).startsWith(prefix)).toBe(true);
          expect(base58.encode(last).startsWith(prefix)).toBe(true);
          for (const outer of [neighbour(first, -1n), neighbour(last, 1n)])
            expect(isInside(outer, ranges)).toBe(base58.encode(outer).startsWith(prefix));
        }
      }),
      { numRuns: 1000 },
    );
  });

  it("agree with the address of any key for any prefix", () => {
    const somePrefix = fc.string({
      minLength: 1,
      maxLength: 3,
      unit: fc.constantFrom("1", "1", ...digits),
    });
    fc.assert(
      fc.property(someKey, somePrefix, (key, prefix) => {
        expect(isInside(key, rangesOf(prefix))).toBe(base58.encode(key).startsWith(prefix));
      }),
      { numRuns: 3000 },
    );
  });

  it("are few, and empty for impossible prefixes", () => {
    expect(rangesOf("Abc").length).toBe(2); // 43 and 44 digits
    expect(rangesOf("dontbund1e").length).toBe(1); // 44 digits begin with "J" at most
    expect(rangesOf("1".repeat(32)).length).toBe(1);
    expect(rangesOf("1".repeat(33))).toEqual([]);
    expect(rangesOf(`${"1".repeat(32)}2`)).toEqual([]);
    expect(rangesOf("z".repeat(44))).toEqual([]);
    expect(dontFrontRanges([]).length).toBe(0);
  });
});
