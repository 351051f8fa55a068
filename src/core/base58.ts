// Base58 (Bitcoin's alphabet, no checksum) in TypeScript, for the configuration and keys of the control plane.
//
// relay/data-plane/base58.ts uses the addon and is at least five times as fast (docs/decisions.md): use it for
// text in requests. The time of both grows with the square of the length; the caller must bound it.

import { base58 } from "@scure/base";

/** At most 2,048 bytes. */
export function encodeBase58(bytes: Uint8Array): string {
  return base58.encode(bytes);
}

/** A new array; null: a character outside the alphabet, or more than 4,096 characters. */
export function decodeBase58(text: string): Uint8Array | null {
  try {
    return base58.decode(text);
  } catch {
    return null;
  }
}
