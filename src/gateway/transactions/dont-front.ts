// Front keys: accounts whose base58 text begins with a given prefix, as ranges of numbers.
//
// Bundles are steered by accounts that nobody owns, known by how their text begins. The text of a key
// is one "1" for each zero byte in front and then its value to base 58, so the keys whose texts share
// a beginning are a few ranges of values: nobody has to write down a text to tell (native/transaction/
// key_sets.h compares bytes).

import { quote, ShredwayError } from "../../core/errors.ts";

const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const keyBytes = 32;
/** 32 bytes of 255 have so many digits. */
const digitsMax = 44;

/** Both ends belong to it. */
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
      `key prefix: expected characters of base58, got ${quote(character)} in ${quote(prefix)}`,
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
  // Exactly so many zero bytes: the digits begin with another one than "1".
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
 * Ranges of keys, 64 bytes each (first and last key), as the addon takes them. Throws ShredwayError
 * "value_invalid" for an empty prefix and for characters that no key's text has.
 */
export function frontKeyRanges(prefixes: readonly string[]): Uint8Array {
  const ranges = prefixes.flatMap((prefix) => {
    if (prefix !== "") return rangesOf(prefix);
    throw new ShredwayError("value_invalid", "key prefix: expected a character, got nothing");
  });
  return Buffer.concat(ranges.flatMap(({ first, last }) => [keyOf(first), keyOf(last)]));
}
