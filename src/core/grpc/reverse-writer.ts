// Protocol Buffers for hot paths: writes a message from its end to its beginning, into one buffer.
//
// The length of a nested message is then known when its header is written. Callers write the fields in
// reverse order. MessageWriter (protobuf.ts) is for everything that is not sent thousands of times a second.

const wireVarint = 0;
const wireBytes = 2;

export class ReverseWriter {
  readonly #buffer: Buffer;
  #at: number;

  /** `size`: length of the longest message. */
  constructor(size: number) {
    this.#buffer = Buffer.alloc(size);
    this.#at = size;
  }

  /** Begins a new message. */
  reset(): void {
    this.#at = this.#buffer.length;
  }

  /** Position for `message`, before the fields of a nested message are written. */
  get mark(): number {
    return this.#at;
  }

  /** Ends a nested message whose fields were written since `mark`. */
  message(field: number, mark: number): void {
    const length = mark - this.#at;
    this.#varint(length);
    this.#varint((field << 3) | wireBytes);
  }

  /** Also writes an empty value. Throws RangeError if the message is longer than the buffer. */
  bytes(field: number, value: Uint8Array): void {
    this.#at -= value.length;
    if (this.#at < 0) throw new RangeError("the message is longer than its buffer");
    this.#buffer.set(value, this.#at);
    this.#varint(value.length);
    this.#varint((field << 3) | wireBytes);
  }

  /** A uint32 or uint64. Leaves out 0, as proto3 does. */
  uint(field: number, value: number | bigint): void {
    if (value !== 0 && value !== 0n) this.presentUint(field, value);
  }

  /** Also writes 0. */
  presentUint(field: number, value: number | bigint): void {
    if (value > Number.MAX_SAFE_INTEGER) this.#longVarint(BigInt(value));
    else this.#varint(Number(value));
    this.#varint((field << 3) | wireVarint);
  }

  /** A copy of the message. */
  finish(): Buffer {
    return Buffer.from(this.#buffer.subarray(this.#at));
  }

  /** An integer from 2^53 to 2^64 - 1: 7 bits in each of the first 7 bytes, the others as a shorter one. */
  #longVarint(value: bigint): void {
    this.#varint(Number(value >> 49n));
    for (let group = 6n; group >= 0n; group--) {
      if (this.#at === 0) throw new RangeError("the message is longer than its buffer");
      this.#buffer[--this.#at] = Number((value >> (7n * group)) & 0x7fn) | 0x80;
    }
  }

  /** An integer up to 2^53. */
  #varint(value: number): void {
    if (value < 0x80 && this.#at > 0) {
      this.#buffer[--this.#at] = value;
      return;
    }
    let length = 1;
    for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 128)) length++;
    this.#at -= length;
    if (this.#at < 0) throw new RangeError("the message is longer than its buffer");
    let rest = value;
    for (let i = 0; i < length; i++) {
      const isLast = i + 1 === length;
      this.#buffer[this.#at + i] = (rest % 128) | (isLast ? 0 : 0x80);
      rest = Math.floor(rest / 128);
    }
  }
}
