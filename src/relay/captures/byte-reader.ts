// ByteReader: a file read from front to back through one buffer of bounded size.
//
// Answers: "give me the next n bytes, or say where the file ends too early." For the format readers
// beside this file. Memory stays bounded however large or hostile the file is.

import { captureError } from "./capture.ts";

/** Where bytes come from: fills `into` from its start, returns how many; 0 at the end. */
export type ByteSource = (into: Uint8Array) => number;

const bufferBytes = 256 * 1024;
/** The longest piece that `take` gives: more than any record that a reader here accepts. */
const pieceBytesMax = 1024 * 1024;

/** Reads from memory, for tests and for bytes that are there already. */
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
  /** Of the file, for errors. */
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

  /** Bytes taken so far: the place of the next byte in the file. */
  get offset(): number {
    return this.#offset;
  }

  /** The next bytes, as many as are there up to `length`, without taking them. */
  peek(length: number): Uint8Array {
    this.#fill(length);
    return this.#buffer.subarray(this.#begin, Math.min(this.#begin + length, this.#end));
  }

  /**
   * The next `length` bytes, valid until the next call. Throws ShredwayError "capture_invalid" when
   * the file ends before; `what` names the part in the message.
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

  /** As `take`, but undefined when the file ends exactly here. */
  takeUnlessEnd(length: number, what: string): Uint8Array | undefined {
    this.#fill(length);
    return this.#begin === this.#end ? undefined : this.take(length, what);
  }

  /** Passes over `length` bytes, of any number. */
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
      `expected ${expected} more bytes of ${what}, got ${available}: the file is cut off`,
    );
  }

  #fill(length: number): void {
    if (this.#end - this.#begin >= length) return;
    if (length > pieceBytesMax) throw new RangeError(`a piece of ${length} bytes is too long`);
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
