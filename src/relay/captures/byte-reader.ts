// ByteReader: reads a file from start to end through one buffer of bounded size.
//
// Used by the format readers in this folder. Memory stays bounded for any file size and any content.

import { captureError } from "./capture.ts";

/** A source of bytes: fills `into` from its start and returns the number of bytes; 0 at the end. */
export type ByteSource = (into: Uint8Array) => number;

const bufferBytes = 256 * 1024;
/** The longest chunk that `take` returns; longer than any record that a reader here accepts. */
const pieceBytesMax = 1024 * 1024;

/** Reads from memory, for tests and for available bytes. */
export function memorySource(bytes: Uint8Array): ByteSource {
  let at = 0;
  return (into) => {
    const part = bytes.subarray(at, at + into.length);
    into.set(part);
    at += part.length;
    return part.length;
  };
}

export class ByteReader {
  /** Name of the file, for errors. */
  readonly name: string;
  readonly #source: ByteSource;
  #buffer: Uint8Array = new Uint8Array(bufferBytes);
  #begin = 0;
  #end = 0;
  #offset = 0;

  constructor(source: ByteSource, name: string) {
    this.#source = source;
    this.name = name;
  }

  /** Bytes taken so far: the offset of the next byte in the file. */
  get offset(): number {
    return this.#offset;
  }

  /** The next bytes, up to `length` available ones, without taking them. */
  peek(length: number): Uint8Array {
    this.#fill(length);
    return this.#buffer.subarray(this.#begin, Math.min(this.#begin + length, this.#end));
  }

  /**
   * The next `length` bytes, valid until the next call. Throws ShredwayError "capture_invalid" if the
   * file ends earlier; `what` names the part in the message.
   */
  take(length: number, what: string): Uint8Array {
    this.#fill(length);
    const available = this.#end - this.#begin;
    if (available < length) throw this.#endsInside(length, available, what);
    const bytes = this.#buffer.subarray(this.#begin, this.#begin + length);
    this.#begin += length;
    this.#offset += length;
    return bytes;
  }

  /** Like `take`, but returns undefined if the file ends exactly here. */
  takeUnlessEnd(length: number, what: string): Uint8Array | undefined {
    this.#fill(length);
    return this.#begin === this.#end ? undefined : this.take(length, what);
  }

  /** Skips `length` bytes, any number. */
  skip(length: number, what: string): void {
    for (let left = length; left > 0; ) {
      const piece = Math.min(left, bufferBytes);
      this.#fill(1);
      const available = Math.min(piece, this.#end - this.#begin);
      if (available === 0) throw this.#endsInside(left, 0, what);
      this.#begin += available;
      this.#offset += available;
      left -= available;
    }
  }

  #endsInside(expected: number, available: number, what: string) {
    return captureError(
      this.name,
      this.#offset,
      `expected ${expected} more bytes of ${what}, got ${available}: the file is truncated`,
    );
  }

  #fill(length: number): void {
    if (this.#end - this.#begin >= length) return;
    if (length > pieceBytesMax) throw new RangeError(`a chunk of ${length} bytes is too long`);
    if (length > this.#buffer.length) this.#moveTo(new Uint8Array(pieceBytesMax));
    else if (this.#begin + length > this.#buffer.length) this.#moveTo(this.#buffer);
    while (this.#end - this.#begin < length) {
      const got = this.#source(this.#buffer.subarray(this.#end));
      if (got === 0) return;
      this.#end += got;
    }
  }

  #moveTo(buffer: Uint8Array): void {
    buffer.set(this.#buffer.subarray(this.#begin, this.#end));
    this.#end -= this.#begin;
    this.#begin = 0;
    this.#buffer = buffer;
  }
}
