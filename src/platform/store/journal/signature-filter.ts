// Signature filter: which signatures a database may contain, in a few bits for each.
//
// A Bloom filter that grows: "no" is certain, "maybe" is wrong about once in a thousand. The journaled
// store asks it whether a submission is new, so that the answer needs no query.

const hashes = 6;
const bitsPerSignature = 16;
/** 2 MiB. */
const firstCapacity = 1 << 20;
/** A signature in base58 has up to 88 characters; these carry more than enough randomness. */
const hashedUnits = 32;

interface Layer {
  readonly words: Uint32Array;
  readonly bitMask: number;
  readonly capacity: number;
  count: number;
}

function layerOf(capacity: number): Layer {
  const bits = capacity * bitsPerSignature;
  return { words: new Uint32Array(bits / 32), bitMask: bits - 1, capacity, count: 0 };
}

export class SignatureFilter {
  /** The newest is the last; the capacities are powers of two and double. */
  readonly #layers: Layer[];
  #a = 0;
  #b = 0;

  /** `capacity` of the first layer, a power of two; tests use small ones. */
  constructor(capacity = firstCapacity) {
    this.#layers = [layerOf(capacity)];
  }

  /** Number of added signatures; one that was added twice counts twice. */
  get count(): number {
    return this.#layers.reduce((sum, { count }) => sum + count, 0);
  }

  add(signature: string): void {
    let layer = this.#layers.at(-1);
    if (!layer || layer.count >= layer.capacity) {
      layer = layerOf(2 * (layer?.capacity ?? firstCapacity));
      this.#layers.push(layer);
    }
    this.#hash(signature);
    let at = this.#a;
    for (let i = 0; i < hashes; i++) {
      const bit = (at & layer.bitMask) >>> 0;
      const word = bit >>> 5;
      layer.words[word] = (layer.words[word] ?? 0) | (1 << (bit & 31));
      at = (at + this.#b) | 0;
    }
    layer.count++;
  }

  /** False: it was never added. */
  mayHave(signature: string): boolean {
    this.#hash(signature);
    return this.#layers.some((layer) => this.#isIn(layer));
  }

  #isIn({ words, bitMask }: Layer): boolean {
    let at = this.#a;
    for (let i = 0; i < hashes; i++) {
      const bit = (at & bitMask) >>> 0;
      if (((words[bit >>> 5] ?? 0) & (1 << (bit & 31))) === 0) return false;
      at = (at + this.#b) | 0;
    }
    return true;
  }

  /** Two hashes in one pass (FNV-1a and a multiplicative one); the others are their sums. */
  #hash(signature: string): void {
    let a = 0x811c9dc5;
    let b = 0x9e3779b9;
    const units = Math.min(signature.length, hashedUnits);
    for (let i = 0; i < units; i++) {
      const unit = signature.charCodeAt(i);
      a = Math.imul(a ^ unit, 0x01000193);
      b = Math.imul(b + unit, 0x85ebca6b);
      b ^= b >>> 13;
    }
    a ^= a >>> 15;
    this.#a = Math.imul(a, 0x2c1b3c6d) ^ (a >>> 12);
    this.#b = b | 1;
  }
}
