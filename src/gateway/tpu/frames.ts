// Frames between the gateway and the process of the QUIC connections: length, kind, body.
//
// Both sides use it. A reader accepts bytes in any pieces, and throws a RangeError for a frame that
// is longer than its limit, because the other side may be under an attacker's control.

const headBytes = 5;

/** One frame with room for a body of `bodyBytes`, which starts at `bodyAt`. */
export function newFrame(kind: number, bodyBytes: number): Buffer {
  const frame = Buffer.allocUnsafe(headBytes + bodyBytes);
  frame.writeUInt32LE(bodyBytes, 0);
  frame[headBytes - 1] = kind;
  return frame;
}

export const bodyAt = headBytes;

export function jsonFrame(kind: number, value: unknown): Buffer {
  const text = JSON.stringify(value);
  const frame = newFrame(kind, Buffer.byteLength(text));
  frame.write(text, bodyAt);
  return frame;
}

export class FrameReader {
  readonly #bodyBytesMax: number;
  readonly #handle: (kind: number, body: Buffer) => void;
  #rest: Buffer = Buffer.alloc(0);

  constructor(bodyBytesMax: number, handle: (kind: number, body: Buffer) => void) {
    this.#bodyBytesMax = bodyBytesMax;
    this.#handle = handle;
  }

  /** Handles all complete frames. Their bodies are views of `chunk`, if it contains all of them. */
  push(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (bytes.length >= headBytes) {
      const length = bytes.readUInt32LE(0);
      if (length > this.#bodyBytesMax) {
        throw new RangeError(
          `expected a frame of at most ${this.#bodyBytesMax} bytes, got ${length}`,
        );
      }
      const end = headBytes + length;
      if (bytes.length < end) break;
      this.#handle(bytes.readUInt8(headBytes - 1), bytes.subarray(headBytes, end));
      bytes = bytes.subarray(end);
    }
    this.#rest = bytes;
  }
}
