// Frames of the submission journal: rows of a database as bytes, and back.
//
// Frame: length of the payload (4 bytes, little-endian), its CRC-32 (4 bytes), the payload. Payload: for
// each row the number of its values (2 bytes), for each value its kind (1 byte) and its length (4 bytes),
// then the value: UTF-8, digits, or bytes.

import { crc32 } from "node:zlib";
import type { SqlValue } from "../driver.ts";

export const frameHeadBytes = 8;
const rowHeadBytes = 2;
const valueHeadBytes = 5;
/** UTF-8 needs at most three bytes for each unit of a JavaScript text. */
const bytesPerUnit = 3;
/** Digits and sign of 64 bits. */
const integerBytesMax = 20;
const firstBytes = 16 * 1024;

const kinds = { null: 0, text: 1, integer: 2, bytes: 3 } as const;

function roomFor(value: SqlValue): number {
  if (value === null) return valueHeadBytes;
  if (typeof value === "bigint") {
    if (BigInt.asIntN(64, value) === value) return valueHeadBytes + integerBytesMax;
    throw new RangeError(`expected an integer of at most 64 bits, got ${value}`);
  }
  const units = value.length;
  return valueHeadBytes + (typeof value === "string" ? units * bytesPerUnit : units);
}

interface Frame {
  readonly bytes: Uint8Array;
  /** The bytes of each row in it. */
  readonly rows: readonly Uint8Array[];
}

export class FrameWriter {
  #buffer = Buffer.allocUnsafe(firstBytes);

  /** The result is valid until the next call. Throws RangeError for integers above 64 bits. */
  encode(rows: readonly (readonly SqlValue[])[]): Frame {
    this.#makeRoom(rows);
    const encoded: Uint8Array[] = [];
    let at = frameHeadBytes;
    for (const row of rows) {
      const begin = at;
      at = this.#buffer.writeUInt16LE(row.length, at);
      for (const value of row) at = this.#put(value, at);
      encoded.push(this.#buffer.subarray(begin, at));
    }
    const payload = this.#buffer.subarray(frameHeadBytes, at);
    this.#buffer.writeUInt32LE(payload.length, 0);
    this.#buffer.writeUInt32LE(crc32(payload), 4);
    return { bytes: this.#buffer.subarray(0, at), rows: encoded };
  }

  #makeRoom(rows: readonly (readonly SqlValue[])[]): void {
    let room = frameHeadBytes;
    for (const row of rows) {
      room += rowHeadBytes;
      for (const value of row) room += roomFor(value);
    }
    if (room > this.#buffer.length) this.#buffer = Buffer.allocUnsafe(2 * room);
  }

  #put(value: SqlValue, at: number): number {
    const begin = at + valueHeadBytes;
    let kind: number = kinds.null;
    let length = 0;
    if (value instanceof Uint8Array) {
      kind = kinds.bytes;
      this.#buffer.set(value, begin);
      length = value.length;
    } else if (value !== null) {
      kind = typeof value === "string" ? kinds.text : kinds.integer;
      length = this.#buffer.write(String(value), begin);
    }
    this.#buffer.writeUInt8(kind, at);
    this.#buffer.writeUInt32LE(length, at + 1);
    return begin + length;
  }
}

function storedValue(kind: number, bytes: Buffer): SqlValue {
  switch (kind) {
    case kinds.text:
      return bytes.toString();
    case kinds.integer:
      return BigInt(bytes.toString());
    case kinds.bytes:
      return Uint8Array.from(bytes);
    default:
      return null;
  }
}

/** The rows of a payload whose CRC-32 was right. */
export function decodeRows(payload: Buffer): SqlValue[][] {
  const rows: SqlValue[][] = [];
  let at = 0;
  while (at + rowHeadBytes <= payload.length) {
    const { row, end } = rowAt(payload, at);
    rows.push(row);
    at = end;
  }
  return rows;
}

/** The row whose bytes begin at `begin`, and the offset behind it. */
export function rowAt(bytes: Buffer, begin: number): { row: SqlValue[]; end: number } {
  const row: SqlValue[] = [];
  let at = begin + rowHeadBytes;
  for (let left = bytes.readUInt16LE(begin); left > 0; left--) {
    const valueBegin = at + valueHeadBytes;
    const end = valueBegin + bytes.readUInt32LE(at + 1);
    row.push(storedValue(bytes.readUInt8(at), bytes.subarray(valueBegin, end)));
    at = end;
  }
  return { row, end: at };
}
