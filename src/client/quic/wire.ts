// Reads the parts of a serialised transaction that a sender needs: its bytes and its signature. Pure.
//
// Used by quic-client.ts. The service checks everything else.

import { decodeBase58, encodeBase58 } from "../../core/base58.ts";
import { base58CharactersMax, base58Only } from "../../core/transactions/transaction-text.ts";
import { ShredwayCallError } from "../error.ts";
import { notSerialized } from "../transactions.ts";
import type { TransactionInput } from "../types.ts";

const signatureBytes = 64;
const transactionBytesMax = 4096;
/** A transaction of version 1: its signatures are at the end. */
const version1 = 0x81;
const versionBit = 0x80;
const signaturesMax = 19;
const notBase58 = /[^1-9A-HJ-NP-Za-km-z]/u;
/** Also padding that is not at the end. */
const notBase64 = /[^A-Za-z0-9+/=]|=(?!=?$)/u;

/** The first signature in base58; null: the bytes are not a signed transaction. */
export function signatureIn(bytes: Uint8Array): string | null {
  const [count = 0, version1Count = 0] = bytes;
  if (count === version1) {
    const start = bytes.length - version1Count * signatureBytes;
    if (version1Count < 1 || start < 2) return null;
    return encodeBase58(bytes.subarray(start, start + signatureBytes));
  }
  if (count < 1 || count > signaturesMax) return null;
  const message = bytes.subarray(1 + count * signatureBytes);
  const [first = 0, second = 0] = message;
  // The message repeats the number of signatures, after its version.
  if (((first & versionBit) === 0 ? first : second) !== count) return null;
  return encodeBase58(bytes.subarray(1, 1 + signatureBytes));
}

function invalid(problem: string): ShredwayCallError {
  return new ShredwayCallError(`value_invalid: transaction: ${problem}`, {
    reason: "value_invalid",
  });
}

/** The error of a text that is neither; `characters`: those of the encoding. */
function refused(encoding: string, text: string, characters: RegExp): ShredwayCallError {
  if (text === "") return invalid(`expected ${encoding}, got an empty text`);
  const found = characters.exec(text);
  if (!found)
    return invalid(`invalid ${encoding}: ${text.length} characters, wrong length or padding`);
  return invalid(`invalid ${encoding}: character ${JSON.stringify(found[0])} at ${found.index}`);
}

function fromBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, "base64");
  return bytes.length > 0 && bytes.toString("base64") === text ? bytes : null;
}

function fromBase58(text: string): Uint8Array | null {
  return text !== "" && text.length <= base58CharactersMax ? decodeBase58(text) : null;
}

/** A text in both alphabets is base58 if that gives a transaction. */
function detected(text: string): Uint8Array | null {
  const bytes = base58Only.test(text) ? fromBase58(text) : null;
  return bytes && signatureIn(bytes) !== null ? bytes : fromBase64(text);
}

/** `encoding` of a text; undefined: it is detected. Throws ShredwayCallError "value_invalid". */
export function bytesOf(
  transaction: TransactionInput,
  encoding: "base64" | "base58" | undefined,
): Uint8Array {
  if (ArrayBuffer.isView(transaction)) return transaction;
  if (typeof transaction !== "string") throw notSerialized(transaction);
  if (encoding === "base58") {
    const bytes = fromBase58(transaction);
    if (bytes) return bytes;
    if (transaction.length > base58CharactersMax) {
      throw invalid(
        `expected base58 of at most ${base58CharactersMax} characters, got ${transaction.length}`,
      );
    }
    throw refused("base58", transaction, notBase58);
  }
  const bytes = encoding === "base64" ? fromBase64(transaction) : detected(transaction);
  if (bytes) return bytes;
  throw refused(encoding === "base64" ? "base64" : "base64 or base58", transaction, notBase64);
}

/**
 * A bundle: each transaction after its length in two bytes, big-endian. Throws ShredwayCallError "value_invalid" for
 * a transaction without a possible length.
 */
export function framed(transactions: readonly Uint8Array[]): Uint8Array {
  const parts = transactions.flatMap((bytes, i) => {
    if (bytes.length < 1 || bytes.length > transactionBytesMax) {
      throw new ShredwayCallError(
        `value_invalid: transaction ${i}: expected 1 to ${transactionBytesMax} bytes, got ${bytes.length}`,
        { reason: "value_invalid" },
      );
    }
    const length = Buffer.alloc(2);
    length.writeUInt16BE(bytes.length);
    return [length, bytes];
  });
  return Buffer.concat(parts);
}
