// Body buffer: collects the pieces of one body without ever holding much more than came.
//
// Called by server.ts for every piece. One buffer that doubles, not a list of pieces: a body that
// comes byte by byte would cost a hundred times its size as a list. Nothing is reserved for what a
// caller only announces.

const firstBytes = 4096;

export class BodyBuffer {
  readonly #bytesMax: number;
  #bytes = new Uint8Array(0);
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Copies `piece`. False, without taking it, when the body would be larger than allowed. */
  add(piece: ArrayBuffer): boolean {
    const length = this.#length + piece.byteLength;
    if (length > this.#bytesMax) return false;
    if (length > this.#bytes.length) {
      const room = Math.max(length, Math.min(this.#bytesMax, this.#bytes.length * 2, 2 ** 31));
      // A body in one piece, the usual case, gets exactly its size.
      const grown = new Uint8Array(this.#length === 0 ? length : Math.max(room, firstBytes));
      grown.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = grown;
    }
    this.#bytes.set(new Uint8Array(piece), this.#length);
    this.#length = length;
    return true;
  }

  /** What came so far; the caller owns it. */
  take(): Uint8Array {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#bytes = new Uint8Array(0);
    this.#length = 0;
    return taken;
  }
}
