// "Don't front" markers: converts prefixes of base58 addresses to ranges of keys.
//
// Block engines recognise markers by the first characters of the address. A base58 address is one
// "1" for each leading zero byte, then the value to base 58. Addresses with a common prefix are
// therefore a few ranges of values, and native/transaction/key_sets.h can compare bytes instead of
// texts.

import { quote, ShredwayError } from "../../core/errors.ts";

const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const keyBytes = 32;
/** Number of base58 digits of 32 bytes of 255. */
const digitsMax = 44;

/** Range with inclusive ends. */
interface ValueRange {
  readonly first: bigint;
  readonly last: bigint;
}

function digitsOf(prefix: string): bigint[] {
  return Array.from(prefix, (character) => {
    const digit = alphabet.indexOf(character);
    if (digit >= 0) return BigInt(digit);
    throw new ShredwayError(
      "value_invalid",
      `key prefix: expected base58 characters, got ${quote(character)} in ${quote(prefix)}`,
    );
  });
}

function rangesOf(prefix: string): ValueRange[] {
  const digits = digitsOf(prefix);
  const found = digits.findIndex((digit) => digit !== 0n);
  const zeros = found < 0 ? digits.length : found;
  const lengthMax = 256n ** BigInt(Math.max(keyBytes - zeros, 0));
  if (found < 0) return zeros > keyBytes ? [] : [{ first: 0n, last: lengthMax - 1n }];
  if (zeros >= keyBytes) return [];
  // The number of zero bytes is exact, because the next digit is not "1".
  const lengthMin = lengthMax / 256n;
  const head = digits.reduce((value, digit) => value * 58n + digit, 0n);
  const ranges: ValueRange[] = [];
  for (let more = 0; digits.length - zeros + more <= digitsMax; more++) {
    const unit = 58n ** BigInt(more);
    const first = head * unit > lengthMin ? head * unit : lengthMin;
    const last = (head + 1n) * unit < lengthMax ? (head + 1n) * unit - 1n : lengthMax - 1n;
    if (first <= last) ranges.push({ first, last });
  }
  return ranges;
}

function keyOf(value: bigint): Buffer {
  return Buffer.from(value.toString(16).padStart(2 * keyBytes, "0"), "hex");
}

/**
 * Ranges of keys in the addon's format, 64 bytes each (first and last key). Throws ShredwayError
 * "value_invalid" for an empty prefix and for characters outside base58.
 */
export function dontFrontRanges(prefixes: readonly string[]): Uint8Array {
  const ranges = prefixes.flatMap((prefix) => {
    if (prefix !== "") return rangesOf(prefix);
    throw new ShredwayError(
      "value_invalid",
      "key prefix: expected at least one base58 character, got an empty text",
    );
  });
  return Buffer.concat(ranges.flatMap(({ first, last }) => [keyOf(first), keyOf(last)]));
}
