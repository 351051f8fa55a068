// Bits of Zstandard's streams (RFC 8878): tables are read forwards, everything else backwards.
//
// Owned by the decoders beside it. The bytes are untrusted.

/** Invalid or unsupported content. `isTooLong`: it is longer than the caller permits. */
export class ZstdError extends Error {
  readonly isTooLong: boolean;

  constructor(message: string, isTooLong = false) {
    super(message);
    this.isTooLong = isTooLong;
  }
}

/** Bits that one read can return. */
export const readBitsMax = 25;

/** `at`: a bit, also before the first one or behind the last one: such bits are 0. */
export function bitsAt(bytes: Uint8Array, at: number, count: number): number {
  const byte = at >> 3;
  const word =
    (bytes[byte] ?? 0) |
    ((bytes[byte + 1] ?? 0) << 8) |
    ((bytes[byte + 2] ?? 0) << 16) |
    ((bytes[byte + 3] ?? 0) << 24);
  return (word >>> (at & 7)) & ((1 << count) - 1);
}

/** The place of the highest set bit, for a value above 0. */
export function highestBit(value: number): number {
  return 31 - Math.clz32(value);
}

/** A stream that is read from its end. Its last set bit marks the end. */
export class BackwardBits {
  readonly #bytes: Uint8Array;
  /** Bits that were not read; negative: more were read than exist. */
  left: number;

  constructor(bytes: Uint8Array) {
    const last = bytes.at(-1) ?? 0;
    if (last === 0) throw new ZstdError("a stream of bits has no end");
    this.#bytes = bytes;
    this.left = (bytes.length - 1) * 8 + highestBit(last);
  }

  read(count: number): number {
    this.left -= count;
    return count === 0 ? 0 : bitsAt(this.#bytes, this.left, count);
  }

  /** The next bits, which stay unread. */
  peek(count: number): number {
    return bitsAt(this.#bytes, this.left - count, count);
  }

  /** Everything must have been read. */
  finish(): void {
    if (this.left !== 0) throw new ZstdError("a stream of bits has the wrong length");
  }
}
