// Tables of finite state entropy (RFC 8878, section 4.1), for sequences and for weights of Huffman codes.

import { type BackwardBits, bitsAt, highestBit, ZstdError } from "./bits.ts";

const accuracyMin = 5;

/** For each state: its symbol, and the next state as a base with bits to add. */
export class FseTable {
  /** Bits of the first state. */
  readonly accuracy: number;
  readonly symbols: Uint8Array;
  readonly #bits: Uint8Array;
  readonly #bases: Uint16Array;

  /** `counts`: states of each symbol; -1: one state of the least probability. */
  constructor(counts: readonly number[], accuracy: number) {
    const size = 1 << accuracy;
    this.accuracy = accuracy;
    this.symbols = spread(counts, size);
    this.#bits = new Uint8Array(size);
    this.#bases = new Uint16Array(size);
    const next = counts.map((count) => Math.abs(count));
    for (const [state, symbol] of this.symbols.entries()) {
      const number = next[symbol] ?? 1;
      next[symbol] = number + 1;
      const bits = accuracy - highestBit(number);
      this.#bits[state] = bits;
      this.#bases[state] = (number << bits) - size;
    }
  }

  /** A table whose only symbol needs no bits. */
  static single(symbol: number): FseTable {
    const counts = Array.from({ length: symbol + 1 }, () => 0);
    counts[symbol] = 1;
    return new FseTable(counts, 0);
  }

  next(state: number, bits: BackwardBits): number {
    return (this.#bases[state] ?? 0) + bits.read(this.#bits[state] ?? 0);
  }
}

function spread(counts: readonly number[], size: number): Uint8Array {
  const symbols = new Uint8Array(size);
  let end = size;
  for (const [symbol, count] of counts.entries()) if (count === -1) symbols[--end] = symbol;
  if (size === 1) return symbols.fill(counts.length - 1);
  const step = (size >> 1) + (size >> 3) + 3;
  let at = 0;
  for (const [symbol, count] of counts.entries()) {
    for (let i = 0; i < count; i++) {
      symbols[at] = symbol;
      do at = (at + step) & (size - 1);
      while (at >= end);
    }
  }
  return symbols;
}

/** Reads a table at the beginning of `bytes`, and returns its length too. */
export function readFseTable(
  bytes: Uint8Array,
  { accuracyMax, symbolsMax }: { readonly accuracyMax: number; readonly symbolsMax: number },
): { readonly table: FseTable; readonly length: number } {
  const accuracy = bitsAt(bytes, 0, 4) + accuracyMin;
  if (accuracy > accuracyMax) throw new ZstdError("a table is too exact");
  let at = 4;
  const read = (count: number): number => {
    at += count;
    return bitsAt(bytes, at - count, count);
  };
  const counts: number[] = [];
  let remaining = 1 << accuracy;
  while (remaining > 0 && at <= bytes.length * 8) {
    const bits = highestBit(remaining + 1) + 1;
    const threshold = (1 << bits) - 2 - remaining;
    const lowMask = (1 << (bits - 1)) - 1;
    let value = read(bits);
    if ((value & lowMask) < threshold) {
      at--;
      value &= lowMask;
    } else if (value > lowMask) value -= threshold;
    const count = value - 1;
    remaining -= Math.abs(count);
    counts.push(count);
    for (let zeros = count === 0 ? 3 : 0; zeros === 3; ) {
      zeros = read(2);
      for (let i = 0; i < zeros; i++) counts.push(0);
    }
    if (counts.length > symbolsMax) throw new ZstdError("a table has too many symbols");
  }
  const length = (at + 7) >> 3;
  if (remaining !== 0 || length > bytes.length) throw new ZstdError("a table is invalid");
  return { table: new FseTable(counts, accuracy), length };
}
