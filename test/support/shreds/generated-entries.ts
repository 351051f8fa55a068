// Generated ledger data: batches of entries that decode like a validator's.
//
// Called by shred-traffic.ts. Batch = u64 count, then entries: u64 hashes, 32-byte hash, u64
// transaction count, transactions (bincode, little endian; solana-entry). The transactions have the
// legacy wire form (compact-u16 lengths) of a transfer with one signer, or of a vote. Their keys,
// signatures and hashes are random bytes, so they decode, but do not verify.

import type { SeededRandom } from "../../../src/core/seeded-random.ts";

const signatureBytes = 64;
const keyBytes = 32;
const hashBytes = 32;
const entryHeaderBytes = 8 + hashBytes + 8;

/** Length of the instruction data: a transfer's, or a compact vote's. */
const instructionDataBytes = { transfer: 12, vote: 148 } as const;
const keyCount = 3; // payer, receiver or vote account, program
const accountCount = 2;

const transactionBytes = {
  transfer: lengthOf(instructionDataBytes.transfer),
  vote: lengthOf(instructionDataBytes.vote),
};

function compactLength(value: number): number {
  return value < 0x80 ? 1 : 2; // up to 16,383
}

function lengthOf(dataBytes: number): number {
  const message = 3 + 1 + keyCount * keyBytes + hashBytes;
  const instruction = 1 + 1 + accountCount + compactLength(dataBytes) + dataBytes;
  return 1 + signatureBytes + message + 1 + instruction;
}

/** Bytes of one tick. */
export const tickBytes = entryHeaderBytes;

interface Cursor {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  at: number;
}

function putU64(cursor: Cursor, value: number): void {
  cursor.view.setBigUint64(cursor.at, BigInt(value), true);
  cursor.at += 8;
}

function putRandom(cursor: Cursor, length: number, random: SeededRandom): void {
  random.fillBytes(cursor.bytes.subarray(cursor.at, cursor.at + length));
  cursor.at += length;
}

function put(cursor: Cursor, ...values: readonly number[]): void {
  for (const value of values) cursor.bytes[cursor.at++] = value;
}

function putEntryHeader(cursor: Cursor, transactions: number, random: SeededRandom): void {
  putU64(cursor, 1 + random.below(12_500));
  putRandom(cursor, hashBytes, random);
  putU64(cursor, transactions);
}

function putTransaction(cursor: Cursor, dataBytes: number, random: SeededRandom): void {
  put(cursor, 1);
  putRandom(cursor, signatureBytes, random);
  put(cursor, 1, 0, 1, keyCount); // 1 signer, 1 read-only account without signature
  putRandom(cursor, keyCount * keyBytes + hashBytes, random);
  put(cursor, 1, keyCount - 1, accountCount, 0, 1); // 1 instruction: program, its accounts
  if (dataBytes < 0x80) put(cursor, dataBytes);
  else put(cursor, (dataBytes & 0x7f) | 0x80, dataBytes >>> 7);
  putRandom(cursor, dataBytes, random);
}

/**
 * A batch of at most `bytesMax` bytes (at least one tick and its count): up to 16 transactions per
 * entry until no more fit, then `ticks` ticks.
 */
export function makeEntryBatch(
  bytesMax: number,
  ticks: number,
  random: SeededRandom,
): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(bytesMax);
  const cursor: Cursor = { bytes, view: new DataView(bytes.buffer), at: 8 };
  const entriesEnd = bytesMax - ticks * tickBytes;
  let entries = 0;
  while (cursor.at + entryHeaderBytes + transactionBytes.vote <= entriesEnd) {
    const kinds = pickTransactions(entriesEnd - cursor.at - entryHeaderBytes, random);
    putEntryHeader(cursor, kinds.length, random);
    for (const kind of kinds) putTransaction(cursor, instructionDataBytes[kind], random);
    entries++;
  }
  for (let i = 0; i < ticks; i++) putEntryHeader(cursor, 0, random);
  cursor.view.setBigUint64(0, BigInt(entries + ticks), true);
  return bytes.subarray(0, cursor.at);
}

function pickTransactions(room: number, random: SeededRandom): ("transfer" | "vote")[] {
  const kinds: ("transfer" | "vote")[] = [];
  const wanted = 1 + random.below(16);
  for (let left = room; kinds.length < wanted && left >= transactionBytes.vote; ) {
    const kind = random.happens(0.5) ? "vote" : "transfer";
    kinds.push(kind);
    left -= transactionBytes[kind];
  }
  return kinds;
}
