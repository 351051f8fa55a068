// Seeded random numbers: the same seed gives the same numbers on every machine.
//
// For generated traffic, replay's permutations and losses, and tests; never for real keys or secrets.
// Generator: xoshiro128** 1.1 (Blackman and Vigna), seeded through splitmix32.

export class SeededRandom {
  readonly #state = new Uint32Array(4);

  /** `seed`: an integer; its low 64 bits are used. */
  constructor(seed: number | bigint) {
    const wide = BigInt(seed);
    let mix = Number(BigInt.asUintN(32, wide)) ^ Number(BigInt.asUintN(32, wide >> 32n));
    for (let i = 0; i < 4; i++) {
      mix = (mix + 0x9e3779b9) | 0;
      let word = Math.imul(mix ^ (mix >>> 16), 0x21f0aaad);
      word = Math.imul(word ^ (word >>> 15), 0x735a2d97);
      this.#state[i] = word ^ (word >>> 15);
    }
  }

  /** Uniform in [0, 2^32). */
  u32(): number {
    const state = this.#state;
    const [a = 0, b = 0, c = 0, d = 0] = state;
    const product = Math.imul(b, 5);
    const result = Math.imul((product << 7) | (product >>> 25), 9) >>> 0;
    const c2 = c ^ a;
    const d2 = d ^ b;
    state[1] = b ^ c2;
    state[0] = a ^ d2;
    state[2] = c2 ^ (b << 9);
    state[3] = (d2 << 11) | (d2 >>> 21);
    return result;
  }

  /** Uniform in [0, 1), with 32 bits of resolution. */
  share(): number {
    return this.u32() / 0x1_0000_0000;
  }

  /** Uniform integer in [0, limit); `limit` from 1 to 2^32. */
  below(limit: number): number {
    return Math.floor(this.share() * limit);
  }

  /** True with probability `share`. */
  happens(share: number): boolean {
    return share > 0 && this.share() < share;
  }

  /** Exponentially distributed, with mean `mean`, at most `max`. */
  exponential(mean: number, max: number): number {
    return Math.min(max, -Math.log(1 - this.share()) * mean);
  }

  /** The items in a random order. */
  shuffled<T>(items: readonly T[]): T[] {
    return [...this.permutation(items.length)].flatMap((place) => items.slice(place, place + 1));
  }

  /** Fills `bytes` with random bytes. */
  fillBytes(bytes: Uint8Array): Uint8Array {
    for (let at = 0; at < bytes.length; at += 4) {
      const word = this.u32();
      bytes[at] = word;
      bytes[at + 1] = word >>> 8; // writes beyond the end are ignored
      bytes[at + 2] = word >>> 16;
      bytes[at + 3] = word >>> 24;
    }
    return bytes;
  }

  /** The integers 0 to length - 1 in a random order (Fisher–Yates). */
  permutation(length: number): Uint32Array {
    const order = Uint32Array.from({ length }, (_, i) => i);
    for (let i = length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      const saved = order[i] ?? 0;
      order[i] = order[j] ?? 0;
      order[j] = saved;
    }
    return order;
  }
}
