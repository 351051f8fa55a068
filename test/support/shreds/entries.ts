// Parses batches of entries like a validator: every length must fit, without trailing bytes.

export interface EntryTransaction {
  readonly wire: Uint8Array;
  /** The first signature. */
  readonly signature: Uint8Array;
}

export interface Entry {
  readonly hashes: number;
  readonly hash: Uint8Array;
  /** Empty: a tick. */
  readonly transactions: readonly EntryTransaction[];
}

class Reader {
  readonly bytes: Uint8Array;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  take(length: number): Uint8Array {
    if (this.at + length > this.bytes.length) {
      throw new RangeError(`expected ${length} bytes at ${this.at} of ${this.bytes.length}`);
    }
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  u8(): number {
    return this.take(1)[0] ?? 0;
  }

  u64(): number {
    return Number(Buffer.from(this.take(8)).readBigUInt64LE());
  }

  compact(): number {
    const low = this.u8();
    return low < 0x80 ? low : (low & 0x7f) | (this.u8() << 7);
  }
}

function readTransaction(reader: Reader): EntryTransaction {
  const begin = reader.at;
  const signatures = reader.take(64 * reader.compact());
  const isVersioned = (reader.bytes[reader.at] ?? 0) >= 0x80;
  reader.take(isVersioned ? 4 : 3);
  reader.take(32 * reader.compact() + 32);
  for (let left = reader.compact(); left > 0; left--) {
    reader.u8();
    reader.take(reader.compact());
    reader.take(reader.compact());
  }
  for (let left = isVersioned ? reader.compact() : 0; left > 0; left--) {
    reader.take(32);
    reader.take(reader.compact());
    reader.take(reader.compact());
  }
  return { wire: reader.bytes.subarray(begin, reader.at), signature: signatures.subarray(0, 64) };
}

/**
 * Parses legacy and v0 transactions. Throws RangeError if the bytes do not end with the last entry.
 */
export function readEntries(bytes: Uint8Array, { mayHaveMore = false } = {}): Entry[] {
  const reader = new Reader(bytes);
  const entries = Array.from({ length: reader.u64() }, () => {
    const hashes = reader.u64();
    const hash = reader.take(32);
    const count = reader.u64();
    return {
      hashes,
      hash,
      transactions: Array.from({ length: count }, () => readTransaction(reader)),
    };
  });
  if (!mayHaveMore && reader.at !== bytes.length) {
    throw new RangeError(`expected ${reader.at} bytes, got ${bytes.length}`);
  }
  return entries;
}
