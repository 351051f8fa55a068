// Splits the bytes of a stream into gRPC messages.
//
// Used by both sides of a call with streams. A message is bounded in size. Its reader decompresses it, if it may be
// compressed.

import { frameHeaderBytes, GrpcError } from "./status.ts";

/** Longer chunks are kept as they came, so that large messages are copied once. */
const joinedBytes = 8 * 1024;

export class FrameReader {
  readonly #messageBytesMax: number;
  readonly #mayBeCompressed: boolean;
  #isCompressed = false;
  #received: Buffer[] = [];
  #receivedBytes = 0;
  /** The next message is read when this many bytes have arrived. */
  #needed = frameHeaderBytes;

  constructor(messageBytesMax: number, mayBeCompressed = false) {
    this.#messageBytesMax = messageBytesMax;
    this.#mayBeCompressed = mayBeCompressed;
  }

  /** The message that was returned last is compressed. */
  get isCompressed(): boolean {
    return this.#isCompressed;
  }

  /** Bytes of a message whose rest is missing, when all messages before it were read. */
  get incompleteBytes(): number {
    return this.#receivedBytes;
  }

  /** Adds received bytes. The messages are views of them. Throws GrpcError at an invalid message. */
  *add(chunk: Buffer): Generator<Buffer> {
    this.#keep(chunk);
    this.#receivedBytes += chunk.length;
    if (this.#receivedBytes < this.#needed) return;
    const [first = chunk] = this.#received;
    let rest = this.#received.length === 1 ? first : Buffer.concat(this.#received);
    for (;;) {
      this.#needed = this.#neededBy(rest);
      this.#received = rest.length > 0 ? [rest] : [];
      this.#receivedBytes = rest.length;
      if (rest.length < this.#needed) return;
      const message = rest.subarray(frameHeaderBytes, this.#needed);
      this.#isCompressed = rest.readUInt8(0) !== 0;
      rest = rest.subarray(this.#needed);
      yield message;
    }
  }

  /** Joins small chunks, because each one needs some hundred bytes of memory beside its own. */
  #keep(chunk: Buffer): void {
    let last = chunk;
    for (;;) {
      const before = this.#received.at(-1);
      if (!before || before.length > last.length || before.length >= joinedBytes) break;
      last = Buffer.concat([before, last]);
      this.#received.pop();
    }
    this.#received.push(last);
  }

  #neededBy(rest: Buffer): number {
    if (rest.length < frameHeaderBytes) return frameHeaderBytes;
    if (rest.readUInt8(0) !== 0 && !this.#mayBeCompressed) {
      throw new GrpcError("UNIMPLEMENTED", "expected uncompressed messages, got a compressed one");
    }
    const length = rest.readUInt32BE(1);
    if (length <= this.#messageBytesMax) return frameHeaderBytes + length;
    throw new GrpcError(
      "RESOURCE_EXHAUSTED",
      `expected messages of at most ${this.#messageBytesMax} bytes, got ${length}`,
    );
  }
}
