// Huffman codes of literals (RFC 8878, section 4.2).

import { BackwardBits, highestBit, ZstdError } from "./bits.ts";
import { readFseTable } from "./fse.ts";

const codeBitsMax = 11;
const weightsMax = 255;
const weightTable = { accuracyMax: 6, symbolsMax: 16 } as const;

export class HuffmanTable {
  readonly #bitsMax: number;
  /** For each value of the next bits: the symbol, and the bits of its code. */
  readonly #symbols: Uint8Array;
  readonly #bits: Uint8Array;

  /** `weights`: of all symbols but the last one. */
  constructor(weights: readonly number[]) {
    let sum = 0;
    for (const weight of weights) sum += (1 << weight) >> 1;
    this.#bitsMax = sum === 0 ? 0 : highestBit(sum) + 1;
    const rest = (1 << this.#bitsMax) - sum;
    if (sum === 0 || this.#bitsMax > codeBitsMax || (rest & (rest - 1)) !== 0) {
      throw new ZstdError("weights of Huffman codes are invalid");
    }
    const all = [...weights, highestBit(rest) + 1];
    this.#symbols = new Uint8Array(1 << this.#bitsMax);
    this.#bits = new Uint8Array(1 << this.#bitsMax);
    let at = 0;
    for (let weight = 1; weight <= this.#bitsMax; weight++) {
      for (const [symbol, own] of all.entries()) {
        if (own !== weight) continue;
        const end = at + (1 << (weight - 1));
        this.#symbols.fill(symbol, at, end);
        this.#bits.fill(this.#bitsMax + 1 - weight, at, end);
        at = end;
      }
    }
  }

  /** Fills `out` with the symbols of a stream. */
  decode(stream: Uint8Array, out: Uint8Array): void {
    const bits = new BackwardBits(stream);
    for (let i = 0; i < out.length; i++) {
      const next = bits.peek(this.#bitsMax);
      out[i] = this.#symbols[next] ?? 0;
      bits.left -= this.#bits[next] ?? 0;
    }
    bits.finish();
  }
}

/** Reads the description of a table at the beginning of `bytes`, and returns its length too. */
export function readHuffmanTable(bytes: Uint8Array): {
  readonly table: HuffmanTable;
  readonly length: number;
} {
  const head = bytes[0] ?? 0;
  const count = head - 127;
  const length = 1 + (head < 128 ? head : (count + 1) >> 1);
  if (bytes.length < length) throw new ZstdError("a Huffman table is cut off");
  const body = bytes.subarray(1, length);
  const weights = head < 128 ? compressedWeights(body) : plainWeights(body, count);
  return { table: new HuffmanTable(weights), length };
}

function plainWeights(body: Uint8Array, count: number): number[] {
  return Array.from({ length: count }, (_, i) => {
    const pair = body[i >> 1] ?? 0;
    return i % 2 === 0 ? pair >> 4 : pair & 15;
  });
}

/** Two states take turns. The last symbol is that of the state whose turn was next when the bits ended. */
function compressedWeights(body: Uint8Array): number[] {
  const { table, length } = readFseTable(body, weightTable);
  const bits = new BackwardBits(body.subarray(length));
  const states: [number, number] = [bits.read(table.accuracy), bits.read(table.accuracy)];
  const weights: number[] = [];
  for (let turn: 0 | 1 = 0; weights.length < weightsMax; turn = turn === 0 ? 1 : 0) {
    weights.push(table.symbols[states[turn]] ?? 0);
    states[turn] = table.next(states[turn], bits);
    if (bits.left >= 0) continue;
    weights.push(table.symbols[states[turn === 0 ? 1 : 0]] ?? 0);
    return weights;
  }
  throw new ZstdError("too many weights of Huffman codes");
}
