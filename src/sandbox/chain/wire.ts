// Wire format of transactions: parses legacy, v0 and v1.
//
// Called by the chain for every submission. It accepts only the bytes that a validator's decoder
// and sanitizer accept, because the VM ends the process on bytes that it cannot decode. Formats:
// compact-u16 lengths for legacy and v0, v1 with the signatures at the end. It never executes or
// verifies anything.

import { ShredwayError } from "../../core/errors.ts";

/** Size limit of a legacy or v0 transaction. */
const packetTransactionBytesMax = 1232;
const v1TransactionBytesMax = 4096;
export const signatureBytes = 64;
export const keyBytes = 32;

const v1SignaturesMax = 12;
const v1AddressesMax = 64;
const v1InstructionsMax = 64;
/** Maximum number of top-level instructions that the runtime traces, legacy and v0. */
const instructionsMax = 64;

interface Instruction {
  /** Index of the program's key. */
  readonly program: number;
  readonly accounts: Uint8Array;
  readonly data: Uint8Array;
}

interface Lookup {
  readonly table: Uint8Array;
  readonly writable: Uint8Array;
  readonly readonly: Uint8Array;
}

/** Costs in a v1 transaction; absent fields are not set. */
interface V1Config {
  readonly priorityFeeLamports?: bigint;
  readonly computeUnitLimit?: number;
  readonly loadedBytesLimit?: number;
  readonly heapBytes?: number;
}

/** Byte arrays are views of `wire`. */
export interface WireTransaction {
  readonly wire: Uint8Array;
  readonly version: "legacy" | 0 | 1;
  readonly signatures: readonly Uint8Array[];
  /** The signed part. */
  readonly message: Uint8Array;
  readonly requiredSignatures: number;
  readonly readonlySigned: number;
  readonly readonlyUnsigned: number;
  readonly keys: readonly Uint8Array[];
  /** Offset of the recent blockhash (or nonce value) in `wire`. */
  readonly blockhashAt: number;
  readonly blockhash: Uint8Array;
  readonly instructions: readonly Instruction[];
  readonly lookups: readonly Lookup[];
  readonly config: V1Config;
}

function invalidTransaction(expected: string, actual: string): ShredwayError {
  return new ShredwayError(
    "transaction_invalid",
    `transaction: expected ${expected}, got ${actual}`,
  );
}

class Reader {
  readonly bytes: Uint8Array;
  at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  take(length: number): Uint8Array {
    const end = this.at + length;
    if (end > this.bytes.length) {
      throw invalidTransaction(`${length} bytes at ${this.at}`, `${this.bytes.length} in all`);
    }
    const part = this.bytes.subarray(this.at, end);
    this.at = end;
    return part;
  }

  u8(): number {
    return this.take(1)[0] ?? 0;
  }

  u16(): number {
    const low = this.u8();
    return low | (this.u8() << 8);
  }

  u32(): number {
    const low = this.u16();
    return low + this.u16() * 0x1_0000;
  }

  u64(): bigint {
    const low = this.u32();
    return BigInt(low) | (BigInt(this.u32()) << 32n);
  }

  /** compact-u16: seven bits per byte, at most three bytes, the shortest form only. */
  length(): number {
    let value = 0;
    for (let i = 0; i < 3; i++) {
      const byte = this.u8();
      value |= (byte & 0x7f) << (7 * i);
      if ((byte & 0x80) !== 0) continue;
      if (byte === 0 && i > 0)
        throw invalidTransaction("the shortest form of a length", "a longer form");
      if (value > 0xffff) break;
      return value;
    }
    throw invalidTransaction("a length up to 65535", "a larger length");
  }

  keys(count: number): Uint8Array[] {
    return Array.from({ length: count }, () => this.take(keyBytes));
  }
}

interface Header {
  readonly requiredSignatures: number;
  readonly readonlySigned: number;
  readonly readonlyUnsigned: number;
}

function readHeader(reader: Reader): Header {
  return {
    requiredSignatures: reader.u8(),
    readonlySigned: reader.u8(),
    readonlyUnsigned: reader.u8(),
  };
}

function readInstruction(reader: Reader): Instruction {
  const program = reader.u8();
  const accounts = reader.take(reader.length());
  return { program, accounts, data: reader.take(reader.length()) };
}

function readLookup(reader: Reader): Lookup {
  const table = reader.take(keyBytes);
  const writable = reader.take(reader.length());
  return { table, writable, readonly: reader.take(reader.length()) };
}

function parsePacket(reader: Reader): WireTransaction {
  const { bytes } = reader;
  const count = reader.length();
  const signatures = Array.from({ length: count }, () => reader.take(signatureBytes));
  const messageAt = reader.at;
  const prefix = reader.bytes[messageAt] ?? 0;
  const isVersioned = prefix >= 0x80;
  if (isVersioned && prefix !== 0x80) {
    throw new ShredwayError(
      "transaction_version",
      `transaction: expected version legacy, 0 or 1, got ${prefix & 0x7f} after its signatures`,
    );
  }
  if (isVersioned) reader.u8();
  const header = readHeader(reader);
  const keys = reader.keys(reader.length());
  const blockhashAt = reader.at;
  const blockhash = reader.take(keyBytes);
  const instructions = Array.from({ length: reader.length() }, () => readInstruction(reader));
  const lookups = isVersioned
    ? Array.from({ length: reader.length() }, () => readLookup(reader))
    : [];
  return {
    wire: bytes,
    version: isVersioned ? 0 : "legacy",
    signatures,
    message: bytes.subarray(messageAt),
    ...header,
    keys,
    blockhashAt,
    blockhash,
    instructions,
    lookups,
    config: {},
  };
}

const knownConfigBits = 0b11111;

function readConfig(reader: Reader, mask: number): V1Config {
  if ((mask & ~knownConfigBits) !== 0) {
    throw invalidTransaction("no unknown bits in the v1 config mask", `0x${mask.toString(16)}`);
  }
  const feeBits = mask & 0b11;
  if (feeBits !== 0 && feeBits !== 0b11) {
    throw invalidTransaction("both or neither of the priority fee bits", `0x${mask.toString(16)}`);
  }
  const priorityFeeLamports = feeBits === 0 ? {} : { priorityFeeLamports: reader.u64() };
  const computeUnitLimit = (mask & 4) === 0 ? {} : { computeUnitLimit: reader.u32() };
  const loadedBytesLimit = (mask & 8) === 0 ? {} : { loadedBytesLimit: reader.u32() };
  const heapBytes = (mask & 16) === 0 ? {} : { heapBytes: reader.u32() };
  return { ...priorityFeeLamports, ...computeUnitLimit, ...loadedBytesLimit, ...heapBytes };
}

function parseV1(reader: Reader): WireTransaction {
  const { bytes } = reader;
  reader.u8();
  const header = readHeader(reader);
  const mask = reader.u32();
  const blockhashAt = reader.at;
  const blockhash = reader.take(keyBytes);
  const instructionCount = reader.u8();
  const addressCount = reader.u8();
  if (
    header.requiredSignatures > v1SignaturesMax ||
    addressCount > v1AddressesMax ||
    instructionCount > v1InstructionsMax
  ) {
    throw invalidTransaction(
      `at most ${v1SignaturesMax} signatures, ${v1AddressesMax} addresses and ${v1InstructionsMax} instructions`,
      `${header.requiredSignatures}, ${addressCount} and ${instructionCount}`,
    );
  }
  const keys = reader.keys(addressCount);
  const config = readConfig(reader, mask);
  const heads = Array.from({ length: instructionCount }, () => ({
    program: reader.u8(),
    accounts: reader.u8(),
    dataBytes: reader.u16(),
  }));
  const instructions = heads.map(({ program, accounts, dataBytes }) => ({
    program,
    accounts: reader.take(accounts),
    data: reader.take(dataBytes),
  }));
  const message = bytes.subarray(0, reader.at);
  const signatures = Array.from({ length: header.requiredSignatures }, () =>
    reader.take(signatureBytes),
  );
  return {
    wire: bytes,
    version: 1,
    signatures,
    message,
    ...header,
    keys,
    blockhashAt,
    blockhash,
    instructions,
    lookups: [],
    config,
  };
}

/** The sanitizer of a validator, which runs before any account is read. */
function sanitize(transaction: WireTransaction): void {
  const { keys, signatures, requiredSignatures, readonlySigned, readonlyUnsigned } = transaction;
  if (requiredSignatures === 0 || readonlySigned >= requiredSignatures) {
    throw invalidTransaction(
      "a writable signer",
      `${requiredSignatures} signers, ${readonlySigned} of them read-only`,
    );
  }
  if (signatures.length !== requiredSignatures) {
    throw invalidTransaction(`${requiredSignatures} signatures`, String(signatures.length));
  }
  if (requiredSignatures + readonlyUnsigned > keys.length) {
    throw invalidTransaction(
      `at least ${requiredSignatures + readonlyUnsigned} account keys`,
      String(keys.length),
    );
  }
  let accounts = keys.length;
  for (const { writable, readonly } of transaction.lookups) {
    if (writable.length + readonly.length === 0) {
      throw invalidTransaction("a table lookup with an index", "a lookup without an index");
    }
    accounts += writable.length + readonly.length;
  }
  if (accounts > 256) throw invalidTransaction("at most 256 accounts", String(accounts));
  if (transaction.instructions.length > instructionsMax) {
    throw invalidTransaction(
      `at most ${instructionsMax} instructions`,
      String(transaction.instructions.length),
    );
  }
  for (const { program, accounts: used } of transaction.instructions) {
    // A program must be a static key other than the payer.
    if (program === 0 || program >= keys.length) {
      throw invalidTransaction(`a program at 1 to ${keys.length - 1}`, String(program));
    }
    const outside = used.find((account) => account >= accounts);
    if (outside !== undefined) {
      throw invalidTransaction(`accounts 0 to ${accounts - 1}`, String(outside));
    }
  }
}

/**
 * Parses `wire`. Throws ShredwayError "transaction_invalid" (malformed, too long, not sane) or
 * "transaction_version". The result refers to `wire`: do not change it afterwards.
 */
export function parseTransaction(wire: Uint8Array): WireTransaction {
  const [first] = wire;
  if (first === undefined) throw invalidTransaction("a transaction", "no bytes");
  const isV1 = first === 0x81;
  if (first >= 0x80 && !isV1) {
    throw new ShredwayError(
      "transaction_version",
      `transaction: expected version legacy, 0 or 1, got first byte 0x${first.toString(16)}`,
    );
  }
  const bytesMax = isV1 ? v1TransactionBytesMax : packetTransactionBytesMax;
  if (wire.length > bytesMax) {
    throw invalidTransaction(`at most ${bytesMax} bytes`, String(wire.length));
  }
  const reader = new Reader(wire);
  const transaction = isV1 ? parseV1(reader) : parsePacket(reader);
  if (reader.at !== wire.length) {
    throw invalidTransaction(`${reader.at} bytes`, `${wire.length}`);
  }
  sanitize(transaction);
  return transaction;
}

/** Whether the message makes the static key at `index` writable. */
export function isStaticWritable(transaction: WireTransaction, index: number): boolean {
  const { requiredSignatures, readonlySigned, readonlyUnsigned, keys } = transaction;
  return index < requiredSignatures
    ? index < requiredSignatures - readonlySigned
    : index < keys.length - readonlyUnsigned;
}
