// Base58 (Bitcoin's alphabet, without check digits) that needs no addon: for configuration and for keys of
// the control plane.
//
// relay/data-plane/base58.ts is for texts that come with each request: it takes a fifth of the time or less
// (docs/decisions.md). Both cost the square of the length: the caller bounds it.

import { base58 } from "@scure/base";

/** At most 2,048 bytes. */
export function encodeBase58(bytes: Uint8Array): string {
  return base58.encode(bytes);
}

/** A fresh array; null for a character outside the alphabet and for more than 4,096. */
export function decodeBase58(text: string): Uint8Array | null {
  try {
    return base58.decode(text);
  } catch {
    return null;
  }
}
