// Message content: the static keys of a transaction and the data of its instructions.
//
// Pure. Meant for bytes that a TransactionReader has inspected, so that every length is valid. Reads
// legacy, v0 and v1. Keys of lookup tables are not in the bytes, and not returned.

import { WireReader } from "./wire-reader.ts";

export interface MessageContent {
  /** Static keys, 32 bytes each. Views of the bytes, as `data`. */
  readonly keys: readonly Uint8Array[];
  readonly instructions: readonly InstructionData[];
  /** Whether it also loads keys from lookup tables. */
  readonly hasTables: boolean;
}

interface InstructionData {
  /** Index of the program's key; may be beyond the static keys. */
  readonly program: number;
  readonly data: Uint8Array;
}

const keyBytes = 32;
const signatureBytes = 64;
const lifetimeBytes = 32;
const v0Prefix = 0x80;
const v1Prefix = 0x81;
/** Version, header, mask of the configuration and lifetime. */
const v1HeadBytes = 1 + 3 + 4 + lifetimeBytes;
const v1ConfigMaskAt = 4;
const v1ConfigValueBytes = 4;

function keysIn(reader: WireReader, count: number): Uint8Array[] {
  return reader.times(count, () => reader.take(keyBytes));
}

function contentOfLegacyOrV0(reader: WireReader): MessageContent {
  reader.take(reader.compact() * signatureBytes);
  const first = reader.byte();
  const isV0 = first === v0Prefix;
  reader.take(isV0 ? 3 : 2);
  const keys = keysIn(reader, reader.compact());
  reader.take(lifetimeBytes);
  const instructions = Array.from({ length: reader.compact() }, () => {
    const program = reader.byte();
    reader.take(reader.compact());
    return { program, data: reader.take(reader.compact()) };
  });
  return { keys, instructions, hasTables: isV0 && reader.compact() > 0 };
}

function bitsOf(bytes: Uint8Array): number {
  let count = 0;
  for (const byte of bytes) for (let bits = byte; bits > 0; bits >>= 1) count += bits & 1;
  return count;
}

function contentOfV1(reader: WireReader): MessageContent {
  const head = reader.take(v1HeadBytes);
  const instructionCount = reader.byte();
  const keys = keysIn(reader, reader.byte());
  const values = bitsOf(head.subarray(v1ConfigMaskAt, v1ConfigMaskAt + 4));
  reader.take(values * v1ConfigValueBytes);
  const headers = Array.from({ length: instructionCount }, () => {
    const [program = 0, accounts = 0, low = 0, high = 0] = reader.take(4);
    return { program, accounts, dataBytes: low + high * 256 };
  });
  const instructions = headers.map(({ program, accounts, dataBytes }) => {
    reader.take(accounts);
    return { program, data: reader.take(dataBytes) };
  });
  return { keys, instructions, hasTables: false };
}

/** null: the bytes are not a transaction. */
export function messageContentOf(wire: Uint8Array): MessageContent | null {
  const reader = new WireReader(wire);
  try {
    return wire[0] === v1Prefix ? contentOfV1(reader) : contentOfLegacyOrV0(reader);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}
