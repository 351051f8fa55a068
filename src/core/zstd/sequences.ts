// Sequences of a block (RFC 8878, section 3.1.1.3.2): how many literals to copy, and which earlier bytes.

import { BackwardBits, readBitsMax, ZstdError } from "./bits.ts";
import { FseTable, readFseTable } from "./fse.ts";

/** Values of a code: the sum of a base and of so many bits. */
interface Codes {
  readonly bases: readonly number[];
  readonly bits: readonly number[];
}

interface Kind {
  readonly accuracyMax: number;
  readonly symbolsMax: number;
  readonly predefined: FseTable;
}

/** The first codes are the values themselves, beginning with `first`. */
function codesOf(first: number, plain: number, bitsOfOthers: readonly number[]): Codes {
  const bits = [...Array.from({ length: plain }, () => 0), ...bitsOfOthers];
  let next = first;
  const bases = bits.map((count) => {
    const base = next;
    next += 1 << count;
    return base;
  });
  return { bases, bits };
}

const many = (length: number, value: number) => Array.from({ length }, () => value);

const literalCodes = codesOf(
  0,
  16,
  [1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
);
const matchCodes = codesOf(
  3,
  32,
  [1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
);

const literalKind: Kind = {
  accuracyMax: 9,
  symbolsMax: 36,
  predefined: new FseTable(
    [4, 3, ...many(11, 2), 1, 1, 1, ...many(9, 2), 3, 2, ...many(5, 1), ...many(4, -1)],
    6,
  ),
};
const offsetKind: Kind = {
  accuracyMax: 8,
  symbolsMax: 32,
  predefined: new FseTable([...many(6, 1), 2, 2, 2, ...many(15, 1), ...many(5, -1)], 5),
};
const matchKind: Kind = {
  accuracyMax: 9,
  symbolsMax: 53,
  predefined: new FseTable([1, 4, 3, ...many(6, 2), ...many(37, 1), ...many(7, -1)], 6),
};

/** Calls `copy` for each sequence. `offset` is a code: 1 to 3 repeat an earlier one. */
type Copy = (literals: number, match: number, offset: number) => void;

/** Decodes the sequences of the blocks of one frame. A block may use the tables of the block before. */
export class SequenceDecoder {
  #literal: FseTable | null = null;
  #offset: FseTable | null = null;
  #match: FseTable | null = null;

  decode(section: Uint8Array, copy: Copy): void {
    const { count, length } = readCount(section);
    if (count === 0) return;
    const modes = section[length] ?? 0;
    if ((modes & 3) !== 0) throw new ZstdError("a block of sequences has a reserved mode");
    const rest = new Rest(section.subarray(length + 1));
    this.#literal = rest.table(literalKind, modes >> 6, this.#literal);
    this.#offset = rest.table(offsetKind, (modes >> 4) & 3, this.#offset);
    this.#match = rest.table(matchKind, (modes >> 2) & 3, this.#match);
    const tables = { literal: this.#literal, offset: this.#offset, match: this.#match };
    readSequences({ bits: new BackwardBits(rest.bytes), count, ...tables }, copy);
  }
}

interface Sequences {
  readonly bits: BackwardBits;
  readonly count: number;
  readonly literal: FseTable;
  readonly offset: FseTable;
  readonly match: FseTable;
}

function readSequences({ bits, count, literal, offset, match }: Sequences, copy: Copy): void {
  let literalState = bits.read(literal.accuracy);
  let offsetState = bits.read(offset.accuracy);
  let matchState = bits.read(match.accuracy);
  for (let i = 1; ; i++) {
    const offsetBits = offset.symbols[offsetState] ?? 0;
    // The output is far shorter than such offsets.
    if (offsetBits > readBitsMax) throw new ZstdError("an offset is too long");
    const offsetCode = (1 << offsetBits) + bits.read(offsetBits);
    const matchBytes = valueOfCode(matchCodes, match.symbols[matchState] ?? 0, bits);
    const literalBytes = valueOfCode(literalCodes, literal.symbols[literalState] ?? 0, bits);
    copy(literalBytes, matchBytes, offsetCode);
    if (i === count) break;
    literalState = literal.next(literalState, bits);
    matchState = match.next(matchState, bits);
    offsetState = offset.next(offsetState, bits);
    if (bits.left < 0) throw new ZstdError("the sequences are cut off");
  }
  bits.finish();
}

function valueOfCode({ bases, bits }: Codes, code: number, stream: BackwardBits): number {
  return (bases[code] ?? 0) + stream.read(bits[code] ?? 0);
}

function readCount(section: Uint8Array): { readonly count: number; readonly length: number } {
  const [first = 0, second = 0, third = 0] = section;
  if (first < 128) return { count: first, length: 1 };
  if (first < 255) return { count: ((first - 128) << 8) + second, length: 2 };
  return { count: 0x7f00 + second + (third << 8), length: 3 };
}

/** The part of a section that was not read. */
class Rest {
  bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  table(kind: Kind, mode: number, former: FseTable | null): FseTable {
    if (mode === 0) return kind.predefined;
    if (mode === 1) {
      const [symbol = kind.symbolsMax] = this.bytes;
      if (symbol >= kind.symbolsMax) throw new ZstdError("a code of sequences is invalid");
      this.bytes = this.bytes.subarray(1);
      return FseTable.single(symbol);
    }
    if (mode === 3) {
      if (former) return former;
      throw new ZstdError("a block repeats a table that does not exist");
    }
    const { table, length } = readFseTable(this.bytes, kind);
    this.bytes = this.bytes.subarray(length);
    return table;
  }
}
