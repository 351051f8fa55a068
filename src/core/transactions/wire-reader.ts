// Reads the bytes of a transaction in wire format from the front.
//
// Pure. Used by message-content.ts and by the streams of the relay. Parts are views of the bytes.

export class WireReader {
  readonly #wire: Uint8Array;
  #at = 0;

  constructor(wire: Uint8Array) {
    this.#wire = wire;
  }

  /** Throws RangeError if fewer bytes are left. */
  take(length: number): Uint8Array {
    const end = this.#at + length;
    if (end > this.#wire.length) {
      throw new RangeError(`expected ${end} bytes of a transaction, got ${this.#wire.length}`);
    }
    const part = this.#wire.subarray(this.#at, end);
    this.#at = end;
    return part;
  }

  /** The next byte; undefined: none is left. */
  peek(): number | undefined {
    return this.#wire[this.#at];
  }

  byte(): number {
    return this.take(1)[0] ?? 0;
  }

  /** Little-endian. */
  uint(length: number): bigint {
    return this.take(length).reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  }

  /** Seven bits per byte, the lowest first. */
  compact(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.byte();
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }

  /** A list of bytes with its length before it. */
  compactBytes(): Uint8Array {
    return this.take(this.compact());
  }

  times<T>(count: number, read: () => T): T[] {
    return Array.from({ length: count }, read);
  }
}
