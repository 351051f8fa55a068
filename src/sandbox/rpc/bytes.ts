// Bytes as base58 and base64 texts of the RPC; bounded and strict.
//
// Called by params.ts and the encoders. Decoding returns undefined for an invalid text. It never
// throws and never reads a text above the given length.

import { decodeBase58 as decode, encodeBase58 } from "../../relay/data-plane/base58.ts";

/** The time grows with the square of the length, which `charactersMax` bounds. */
export function decodeBase58(text: string, charactersMax: number): Uint8Array | undefined {
  return text.length > charactersMax ? undefined : (decode(text) ?? undefined);
}

const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/** Maximum length that the addon encodes. */
const addonBytesMax = 4096;

/**
 * Data of an instruction in base58. A call between programs may have 10 KiB, more than the addon
 * and `@scure/base` encode; a bigint encodes it then, slowly.
 */
export function dataText(data: Uint8Array): string {
  if (data.length <= addonBytesMax) return encodeBase58(data);
  const first = data.findIndex((byte) => byte !== 0);
  const digits: string[] = [];
  let rest = BigInt(`0x${Buffer.from(data).toString("hex")}`);
  for (; rest > 0n; rest /= 58n) digits.push(alphabet.charAt(Number(rest % 58n)));
  return "1".repeat(first < 0 ? data.length : first) + digits.toReversed().join("");
}

/** Standard alphabet with padding; other texts are invalid. */
export function decodeBase64(text: string, charactersMax: number): Uint8Array | undefined {
  if (text.length > charactersMax || text.length % 4 !== 0) return undefined;
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? Uint8Array.from(bytes) : undefined;
}

export function encodeBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

export { encodeBase58 };

/** Reads little-endian fields; the caller has checked the length. */
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

  /** Decodes UTF-8; invalid bytes become U+FFFD. */
  text(at: number, end: number): string {
    return Buffer.from(this.#bytes.subarray(at, end)).toString();
  }

  key(at: number): string {
    return encodeBase58(this.#bytes.subarray(at, at + 32));
  }
}
