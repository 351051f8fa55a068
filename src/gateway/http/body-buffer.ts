// Collects the chunks of one request body in bounded memory.
//
// Called by server.ts for every chunk. The buffer doubles; a list of chunks would cost a hundred
// times the body's size if it came byte by byte. An announced length reserves no memory.

const firstBytes = 4096;
const noBytes = new Uint8Array(0);

export class BodyBuffer {
  readonly #bytesMax: number;
  #bytes: Uint8Array = noBytes;
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Copies `piece`. Returns false and copies nothing if the body would exceed the limit. */
  add(chunk: ArrayBuffer | Uint8Array): boolean {
    const length = this.#length + chunk.byteLength;
    if (length > this.#bytesMax) return false;
    if (length > this.#bytes.length) {
      const capacity = Math.max(length, Math.min(this.#bytesMax, this.#bytes.length * 2, 2 ** 31));
      // A body in one chunk, the usual case, gets a buffer of exactly its size.
      const grown = new Uint8Array(this.#length === 0 ? length : Math.max(capacity, firstBytes));
      grown.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = grown;
    }
    this.#bytes.set(chunk instanceof Uint8Array ? chunk : new Uint8Array(chunk), this.#length);
    this.#length = length;
    return true;
  }

  /** Returns the bytes so far; the caller owns them. */
  take(): Uint8Array {
    const body = this.#bytes.subarray(0, this.#length);
    this.#bytes = noBytes;
    this.#length = 0;
    return body;
  }
}
