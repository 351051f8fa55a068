// Bytes in the texts of the RPC: base58 and base64, both ways, bounded and strict.
//
// Called by params.ts and the encoders. Decoding returns undefined for everything that is not the
// encoding of some bytes; it never throws and never looks at a text longer than it was told.

import { encodeBase58 } from "../chain/base58.ts";

const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const digitOf = new Int8Array(128).fill(-1);
for (let digit = 0; digit < alphabet.length; digit++) {
  digitOf[alphabet.charCodeAt(digit)] = digit;
}

/** Costs the square of the length: `charactersMax` bounds it. */
export function decodeBase58(text: string, charactersMax: number): Uint8Array | undefined {
  if (text.length > charactersMax) return undefined;
  let zeros = 0;
  while (text[zeros] === "1") zeros++;
  const bytes: number[] = []; // least significant first
  for (let at = zeros; at < text.length; at++) {
    let carry = digitOf[text.charCodeAt(at)] ?? -1;
    if (carry < 0) return undefined;
    for (let i = 0; i < bytes.length; i++) {
      carry += (bytes[i] ?? 0) * 58;
      bytes[i] = carry & 0xff;
      carry >>= 8;
    }
    for (; carry > 0; carry >>= 8) bytes.push(carry & 0xff);
  }
  const decoded = new Uint8Array(zeros + bytes.length);
  decoded.set(bytes.toReversed(), zeros);
  return decoded;
}

/** Standard alphabet with padding; nothing else passes. */
export function decodeBase64(text: string, charactersMax: number): Uint8Array | undefined {
  if (text.length > charactersMax || text.length % 4 !== 0) return undefined;
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? Uint8Array.from(bytes) : undefined;
}

export function encodeBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

export { encodeBase58 };

/** Reads of little-endian fields; the caller has checked the length. */
export class Fields {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get length(): number {
    return this.#bytes.length;
  }

  u8(at: number): number {
    return this.#view.getUint8(at);
  }

  u32(at: number): number {
    return this.#view.getUint32(at, true);
  }

  u64(at: number): bigint {
    return this.#view.getBigUint64(at, true);
  }

  i64(at: number): bigint {
    return this.#view.getBigInt64(at, true);
  }

  /** UTF-8; what is none becomes U+FFFD. */
  text(at: number, end: number): string {
    return Buffer.from(this.#bytes.subarray(at, end)).toString();
  }

  key(at: number): string {
    return encodeBase58(this.#bytes.subarray(at, at + 32));
  }
}
