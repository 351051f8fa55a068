// Primitives: branded types for slots, lamports and public keys, which must not be confused.
//
// At runtime a branded type is the plain value. Only the functions here create one, after checking it.
// Public keys are base58 (Bitcoin's alphabet, 32 bytes), as everywhere in Solana.

import { decodeBase58, encodeBase58 } from "./base58.ts";
import { quote, ShredwayError } from "./errors.ts";

declare const brand: unique symbol;

/** Slot number, u64. */
export type Slot = bigint & { readonly [brand]: "Slot" };
/** Amount in lamports (10^-9 SOL), u64. */
export type Lamports = bigint & { readonly [brand]: "Lamports" };
/** Public key in base58, canonical. */
export type Pubkey = string & { readonly [brand]: "Pubkey" };

export const u64Max = 0xffff_ffff_ffff_ffffn;
export const pubkeyBytesLength = 32;

function isSlot(value: bigint): value is Slot {
  return value >= 0n && value <= u64Max;
}

function isLamports(value: bigint): value is Lamports {
  return value >= 0n && value <= u64Max;
}

function outOfRange(what: string, value: bigint): ShredwayError {
  return new ShredwayError(
    "value_invalid",
    `${what}: invalid value ${value}; expected 0 to ${u64Max}`,
  );
}

function parseDigits(text: string, what: string): bigint {
  // Every u64 has at most 20 digits.
  if (/^(0|[1-9][0-9]{0,19})$/.test(text)) return BigInt(text);
  throw new ShredwayError(
    "value_invalid",
    `${what}: invalid value ${quote(text)}; expected 0 to ${u64Max} in decimal digits`,
  );
}

/** `value` as a slot. Throws ShredwayError "value_invalid" outside u64. */
export function slotOf(value: bigint): Slot {
  if (isSlot(value)) return value;
  throw outOfRange("slot", value);
}

/** Decimal digits without sign, leading zero or space. Throws ShredwayError "value_invalid". */
export function parseSlot(text: string): Slot {
  return slotOf(parseDigits(text, "slot"));
}

/** `value` as lamports. Throws ShredwayError "value_invalid" outside u64. */
export function lamportsOf(value: bigint): Lamports {
  if (isLamports(value)) return value;
  throw outOfRange("lamports", value);
}

/** Decimal digits without sign, leading zero or space. Throws ShredwayError "value_invalid". */
export function parseLamports(text: string): Lamports {
  return lamportsOf(parseDigits(text, "lamports"));
}

function decodePubkey(text: string): Uint8Array | null {
  // 32 bytes have 32 to 44 base58 digits. Check the length first: decoding time grows with its square.
  if (text.length < 32 || text.length > 44) return null;
  const bytes = decodeBase58(text);
  return bytes?.length === pubkeyBytesLength ? bytes : null;
}

/** Whether the text is a public key in base58. */
export function isPubkey(text: string): text is Pubkey {
  return decodePubkey(text) !== null;
}

/** Throws ShredwayError "value_invalid" unless `text` is base58 of exactly 32 bytes. */
export function parsePubkey(text: string): Pubkey {
  if (isPubkey(text)) return text;
  throw new ShredwayError(
    "value_invalid",
    `public key: invalid value ${quote(text)}; expected 32 bytes in base58 (32 to 44 characters)`,
  );
}

/** The 32 bytes of a public key, in a new array. */
export function pubkeyBytes(key: Pubkey): Uint8Array {
  const bytes = decodePubkey(key);
  if (!bytes)
    throw new TypeError(`public key: invalid value ${quote(key)}; expected 32 bytes in base58`);
  return bytes;
}

/** 32 bytes as a public key. Throws ShredwayError "value_invalid" for another length. */
export function pubkeyOf(bytes: Uint8Array): Pubkey {
  if (bytes.length === pubkeyBytesLength) {
    const text = encodeBase58(bytes);
    if (isPubkey(text)) return text;
  }
  throw new ShredwayError("value_invalid", `public key: expected 32 bytes, got ${bytes.length}`);
}
