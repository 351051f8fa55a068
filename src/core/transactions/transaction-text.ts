// Decodes transactions from base64 or base58, with a given or a detected encoding; strict and bounded.
//
// Used for submissions and for registered tips. Pure; its errors quote at most one character of a text.

import { isShredwayError, quote, ShredwayError } from "../errors.ts";
import type { TransactionFacts } from "./facts.ts";

export const encodings = ["base64", "base58"] as const;
export type Encoding = (typeof encodings)[number];

/** Base64 of 4,096 bytes, the largest transaction. */
const base64CharactersMax = 5464;
/** Base58 of 1,232 bytes, the limit of Solana nodes: decoding time grows with the square of the length. */
export const base58CharactersMax = 1683;
export const base58Only = /^[1-9A-HJ-NP-Za-km-z]+$/;

export interface TransactionReader {
  /** Throws ShredwayError "transaction_invalid" or "transaction_version". */
  inspect(wire: Uint8Array): TransactionFacts;
  /** Decodes base58; undefined: the text is not base58. */
  decode(text: string): Uint8Array | null | undefined;
}

function undecodable(what: string, expected: string, got: string): ShredwayError {
  return new ShredwayError("value_invalid", `${what}: expected ${expected}, got ${got}`);
}

/** `digits`: matches the valid beginning. `fault`: what is wrong if every character is valid. */
function misspelt(
  what: string,
  text: string,
  encoding: Encoding,
  { digits, fault }: { readonly digits: RegExp; readonly fault: string },
): ShredwayError {
  const at = digits.exec(text)?.[0].length ?? 0;
  const character = text.codePointAt(at);
  const found =
    character === undefined
      ? fault
      : `character ${quote(String.fromCodePoint(character))} at ${at}`;
  const problem = text === "" ? "empty text" : `invalid ${encoding}: ${found}`;
  return new ShredwayError(
    "value_invalid",
    `${what}: ${problem}; expected a transaction in ${encoding}`,
  );
}

function inNeither(what: string, text: string): ShredwayError {
  const expected =
    `a transaction in base64 (at most ${base64CharactersMax} characters) or in base58 ` +
    `(at most ${base58CharactersMax} characters)`;
  return undecodable(what, expected, `${text.length} characters that are neither`);
}

function fromBase64(what: string, text: string): Uint8Array {
  if (text.length > base64CharactersMax) {
    const expected = `at most ${base64CharactersMax} characters of base64`;
    throw undecodable(what, expected, String(text.length));
  }
  const bytes = Buffer.from(text, "base64");
  if (text !== "" && bytes.toString("base64") === text) return bytes;
  const fault =
    text.length % 4 === 0
      ? "unused bits before the padding are not 0"
      : `${text.length} characters, not a multiple of 4`;
  throw misspelt(what, text, "base64", { digits: /^[A-Za-z0-9+/]*={0,2}/, fault });
}

function fromBase58(what: string, text: string, reader: TransactionReader): Uint8Array {
  if (text.length > base58CharactersMax) {
    const expected = `at most ${base58CharactersMax} characters of base58 (larger ones: base64)`;
    throw undecodable(what, expected, String(text.length));
  }
  const bytes = text === "" ? null : reader.decode(text);
  if (bytes) return bytes;
  const fault = `${text.length} characters that cannot be decoded`;
  throw misspelt(what, text, "base58", { digits: /^[1-9A-HJ-NP-Za-km-z]*/, fault });
}

/**
 * `what` names the text in messages. Without an encoding, text in the base58 alphabet is tried as
 * base58, then as base64. If both fail, the error of a text in base58 is that of base58, the default of
 * Solana nodes; the error of another text names both encodings.
 * Throws ShredwayError "value_invalid", or the error of `inspect`.
 */
export function readTransactionText(
  what: string,
  text: string,
  encoding: Encoding | null,
  reader: TransactionReader,
): TransactionFacts {
  const inBase64 = (): TransactionFacts => reader.inspect(fromBase64(what, text));
  const inBase58 = (): TransactionFacts => reader.inspect(fromBase58(what, text, reader));
  if (encoding === "base58") return inBase58();
  if (encoding === "base64" || !base58Only.test(text)) return inBase64();
  try {
    return inBase58();
  } catch (thrown) {
    const refusal = isShredwayError(thrown, "value_invalid") ? inNeither(what, text) : thrown;
    if (text.length % 4 !== 0) throw refusal;
    try {
      return inBase64();
    } catch {
      throw refusal;
    }
  }
}
