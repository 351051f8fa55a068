// Base58 by the native part (native/system/base58.h), for texts of every request.
//
// Bitcoin's alphabet, without check digits. core/base58.ts has the slower version without the addon.

import { native } from "./native.ts";

/** Longest text that is decoded; 4,096 bytes need at most 5,594 characters. */
export const base58TextMax = 5600;

const decoded = new Uint8Array(base58TextMax);

/** At most 4,096 bytes; throws a TypeError for more. */
export function encodeBase58(bytes: Uint8Array): string {
  return native().encodeBase58(bytes);
}

/** A new array; null for a character outside the alphabet or an oversized text. */
export function decodeBase58(text: string): Uint8Array | null {
  if (text.length > base58TextMax) return null;
  const length = native().decodeBase58(text, decoded);
  return length < 0 ? null : decoded.slice(0, length);
}
