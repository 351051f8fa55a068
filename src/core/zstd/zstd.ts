// Zstandard (RFC 8878): decompresses frames without a dictionary.
//
// Used for requests of gRPC, because Node.js 20 has no decoder of its own. The input is untrusted: the output is
// bounded, and every other error is a ZstdError. Checksums are not verified, because the transport has its own.

import { ZstdError } from "./bits.ts";
import { type HuffmanTable, readHuffmanTable } from "./huffman.ts";
import { SequenceDecoder } from "./sequences.ts";

export { ZstdError } from "./bits.ts";

const frameMagic = 0xfd2fb528;
const skippableMagic = 0x184d2a50;
const blockBytesMax = 128 << 10;
/** Blocks and frames. Encoders write some hundred for the longest request, and each one may need time for tables. */
const blocksMax = 1024;

/** The bytes of all frames. Throws ZstdError. */
export function decompressZstd(compressed: Uint8Array, bytesMax: number): Buffer {
  const input = new Input(compressed);
  const output = new Output(bytesMax);
  do {
    input.countBlock();
    const magic = input.uint(4);
    if ((magic & ~15) >>> 0 === skippableMagic) input.take(input.uint(4));
    else if (magic === frameMagic) readFrame(input, output);
    else throw new ZstdError("a frame does not begin with its magic number");
  } while (input.left > 0);
  return output.bytes();
}

class Input {
  readonly #bytes: Uint8Array;
  #at = 0;
  #blocks = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  countBlock(): void {
    if (++this.#blocks > blocksMax) throw new ZstdError("the content has too many blocks");
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  take(length: number): Uint8Array {
    if (length > this.left) throw new ZstdError("the content is cut off");
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  /** Little-endian; up to 2^53 exactly. */
  uint(length: number): number {
    return this.take(length).reduceRight((value, byte) => value * 256 + byte, 0);
  }
}

class Output {
  readonly #bytesMax: number;
  #bytes = Buffer.allocUnsafe(1024);
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get length(): number {
    return this.#length;
  }

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Room for the next bytes, which the caller fills. */
  extend(length: number): Buffer {
    const needed = this.#length + length;
    if (needed > this.#bytesMax) throw new ZstdError("the content is too long", true);
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#bytes.length));
      larger.set(this.bytes());
      this.#bytes = larger;
    }
    this.#length = needed;
    return this.#bytes.subarray(needed - length, needed);
  }

  /** Repeats bytes from `offset` before the end; they may overlap the new ones. */
  repeat(offset: number, length: number): void {
    const begin = this.#length;
    this.extend(length);
    if (offset >= length) this.#bytes.copyWithin(begin, begin - offset, begin - offset + length);
    else {
      for (let at = begin; at < begin + length; at++) {
        this.#bytes[at] = this.#bytes[at - offset] ?? 0;
      }
    }
  }
}

function readFrame(input: Input, output: Output): void {
  const descriptor = input.uint(1);
  const isSingle = (descriptor & 32) !== 0;
  if ((descriptor & 8) !== 0) throw new ZstdError("a frame has a reserved bit");
  if (!isSingle) input.take(1); // the window, which is smaller than the output
  if (input.uint([0, 1, 2, 4][descriptor & 3] ?? 0) !== 0) {
    throw new ZstdError("a frame needs a dictionary");
  }
  const sizeFlag = descriptor >> 6;
  // The length of the content is known when it has been read.
  input.take(sizeFlag === 0 ? Number(isSingle) : 1 << sizeFlag);
  const frame = new FrameDecoder(output);
  let isLast = false;
  while (!isLast) {
    input.countBlock();
    const head = input.uint(3);
    isLast = (head & 1) === 1;
    frame.block((head >> 1) & 3, head >> 3, input);
  }
  if ((descriptor & 4) !== 0) input.take(4);
}

class FrameDecoder {
  readonly #output: Output;
  /** Matches reach back to it. */
  readonly #begin: number;
  readonly #sequences = new SequenceDecoder();
  #huffman: HuffmanTable | null = null;
  /** The last three offsets, newest first. */
  #offsets: [number, number, number] = [1, 4, 8];

  constructor(output: Output) {
    this.#output = output;
    this.#begin = output.length;
  }

  block(type: number, length: number, input: Input): void {
    if (length > blockBytesMax) throw new ZstdError("a block is too long");
    if (type === 0) this.#output.extend(length).set(input.take(length));
    else if (type === 1) this.#output.extend(length).fill(input.uint(1));
    else if (type === 2) this.#compressed(new Input(input.take(length)));
    else throw new ZstdError("a block has a reserved type");
  }

  #compressed(block: Input): void {
    const literals = this.#literals(block);
    const before = this.#output.length;
    let at = 0;
    const append = (count: number): void => {
      if (count > literals.length - at) throw new ZstdError("a block has too few literals");
      this.#output.extend(count).set(literals.subarray(at, at + count));
      at += count;
    };
    this.#sequences.decode(block.take(block.left), (count, match, code) => {
      append(count);
      const offset = this.#offsetOf(code, count);
      if (offset === 0 || offset > this.#output.length - this.#begin) {
        throw new ZstdError("an offset is before the beginning");
      }
      this.#output.repeat(offset, match);
      if (this.#output.length - before > blockBytesMax) throw new ZstdError("a block is too long");
    });
    append(literals.length - at);
  }

  #offsetOf(code: number, literals: number): number {
    const [first, second, third] = this.#offsets;
    if (code > 3) {
      this.#offsets = [code - 3, first, second];
      return code - 3;
    }
    switch (literals === 0 ? code + 1 : code) {
      case 1:
        return first;
      case 2:
        this.#offsets = [second, first, third];
        return second;
      case 3:
        this.#offsets = [third, first, second];
        return third;
      default:
        this.#offsets = [first - 1, first, second];
        return first - 1;
    }
  }

  #literals(block: Input): Uint8Array {
    const first = block.uint(1);
    const type = first & 3;
    const format = (first >> 2) & 3;
    if (type < 2) {
      const more = format === 1 ? 1 : format === 3 ? 2 : 0;
      const length = more === 0 ? first >> 3 : (first >> 4) + block.uint(more) * 16;
      if (length > blockBytesMax) throw new ZstdError("a block has too many literals");
      return type === 0 ? block.take(length) : new Uint8Array(length).fill(block.uint(1));
    }
    const bits = format === 2 ? 14 : format === 3 ? 18 : 10;
    const sizes = (first >> 4) + block.uint(Math.max(2, format + 1)) * 16;
    const length = sizes % (1 << bits);
    if (length > blockBytesMax) throw new ZstdError("a block has too many literals");
    return this.#huffmanLiterals(block.take(Math.floor(sizes / (1 << bits))), {
      length,
      isNew: type === 2,
      isSplit: format !== 0,
    });
  }

  #huffmanLiterals(
    section: Uint8Array,
    { length, isNew, isSplit }: { length: number; isNew: boolean; isSplit: boolean },
  ): Uint8Array {
    let streams = section;
    if (isNew) {
      const { table, length: described } = readHuffmanTable(section);
      this.#huffman = table;
      streams = section.subarray(described);
    }
    const huffman = this.#huffman;
    if (!huffman) throw new ZstdError("a block repeats a table that does not exist");
    const literals = new Uint8Array(length);
    if (!isSplit) {
      huffman.decode(streams, literals);
      return literals;
    }
    const rest = new Input(streams);
    const sizes = [rest.uint(2), rest.uint(2), rest.uint(2)];
    const part = (length + 3) >> 2;
    for (let i = 0; i < 4; i++) {
      const stream = rest.take(sizes[i] ?? rest.left);
      huffman.decode(stream, literals.subarray(i * part, i === 3 ? length : (i + 1) * part));
    }
    return literals;
  }
}
