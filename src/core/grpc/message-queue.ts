// Messages that wait for a client.
//
// Owned by grpc-stream.ts. A small message is a view of a pool that it shares with others, so a queue of views could
// hold many times its own bytes. Messages that have to wait are therefore copied together.

/** From this length on, Node.js gives a buffer memory of its own. */
const ownMemoryBytes = Buffer.poolSize >>> 1;
/** Memory that waiting messages share: the first block is small, because most clients read at once. */
const firstBlockBytes = ownMemoryBytes;
const blockBytes = 4 * ownMemoryBytes;

interface Segment {
  /** One message, or copies of several ones in `block`. */
  bytes: Uint8Array;
  messages: number;
  readonly block: Block | null;
}

class Block {
  readonly #bytes: Buffer;
  #used = 0;

  constructor(length: number) {
    this.#bytes = Buffer.allocUnsafeSlow(length);
  }

  get used(): number {
    return this.#used;
  }

  hasRoom(length: number): boolean {
    return this.#used + length <= this.#bytes.length;
  }

  append(bytes: Uint8Array): void {
    this.#bytes.set(bytes, this.#used);
    this.#used += bytes.length;
  }

  /** The last `length` bytes. */
  last(length: number): Uint8Array {
    return this.#bytes.subarray(this.#used - length, this.#used);
  }
}

export class MessageQueue {
  #segments: Segment[] = [];
  #block: Block | null = null;
  #bytes = 0;
  #messages = 0;

  get bytes(): number {
    return this.#bytes;
  }

  get messages(): number {
    return this.#messages;
  }

  /** Pieces of memory that its messages are in. */
  get segments(): number {
    return this.#segments.length;
  }

  /** `isWaiting`: it will not be taken soon. */
  push(message: Uint8Array, isWaiting: boolean): void {
    this.#bytes += message.length;
    this.#messages += 1;
    if (!isWaiting || message.length >= ownMemoryBytes) {
      this.#segments.push({ bytes: message, messages: 1, block: null });
      return;
    }
    if (!this.#block?.hasRoom(message.length)) {
      this.#block = new Block(this.#block ? blockBytes : firstBlockBytes);
    }
    const block = this.#block;
    block.append(message);
    const last = this.#segments.at(-1);
    if (last?.block === block) {
      last.bytes = block.last(last.bytes.length + message.length);
      last.messages += 1;
    } else {
      this.#segments.push({ bytes: block.last(message.length), messages: 1, block });
    }
  }

  /** Removes the oldest messages, up to the one that reaches `enough` bytes. */
  take(enough: number): { readonly bytes: Uint8Array; readonly messages: number } {
    let length = 0;
    let count = 0;
    for (; count < this.#segments.length && length < enough; count++) {
      length += this.#segments[count]?.bytes.length ?? 0;
    }
    const taken = this.#segments.splice(0, count);
    if (this.#segments.length === 0) this.#block = null;
    const messages = taken.reduce((sum, segment) => sum + segment.messages, 0);
    this.#bytes -= length;
    this.#messages -= messages;
    const [first] = taken;
    const isOne = first && taken.length === 1;
    const bytes = isOne
      ? first.bytes
      : Buffer.concat(
          taken.map((one) => one.bytes),
          length,
        );
    return { bytes, messages };
  }

  clear(): void {
    this.#segments = [];
    this.#block = null;
    this.#bytes = 0;
    this.#messages = 0;
  }
}
