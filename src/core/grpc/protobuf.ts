// Protocol Buffers: reads and writes flat messages of strings, bytes, integers and nested messages.
//
// A small codec for fixed messages, without .proto files at run time. The reader accepts every valid
// encoding: fields in any order, unknown fields, and the last value of a repeated singular field.

const defaultMaxFields = 4096;
const wireVarint = 0;
const wireFixed64 = 1;
const wireBytes = 2;
const wireFixed32 = 5;

/** A message is malformed. The text is safe to return to the sender. */
export class ProtobufError extends Error {}

type Value = bigint | Uint8Array;

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Appends fields. Fields with the default value are left out, as proto3 does. */
export class MessageWriter {
  readonly #parts: Uint8Array[] = [];

  string(field: number, value: string): this {
    return this.bytes(field, new TextEncoder().encode(value));
  }

  /** Also writes empty strings, because the number of elements counts. */
  strings(field: number, values: readonly string[]): this {
    for (const value of values) this.#lengthDelimited(field, new TextEncoder().encode(value));
    return this;
  }

  bytes(field: number, value: Uint8Array): this {
    if (value.length > 0) this.#lengthDelimited(field, value);
    return this;
  }

  /** A uint32, uint64 or non-negative int64. */
  uint(field: number, value: number | bigint): this {
    const number = BigInt(value);
    if (number === 0n) return this;
    this.#parts.push(varint(BigInt((field << 3) | wireVarint)), varint(number));
    return this;
  }

  /** false is present, unlike undefined. */
  optionalBool(field: number, value: boolean | undefined): this {
    if (value === undefined) return this;
    this.#parts.push(varint(BigInt((field << 3) | wireVarint)), Uint8Array.of(value ? 1 : 0));
    return this;
  }

  /** An empty message is present, unlike an absent one. */
  message(field: number, value: Uint8Array | undefined): this {
    if (value) this.#lengthDelimited(field, value);
    return this;
  }

  finish(): Uint8Array {
    return new Uint8Array(Buffer.concat(this.#parts));
  }

  #lengthDelimited(field: number, value: Uint8Array): void {
    this.#parts.push(varint(BigInt((field << 3) | wireBytes)), varint(BigInt(value.length)), value);
  }
}

function varint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  while (rest > 0x7fn) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}

/** The fields of one message. */
export class MessageReader {
  /** Number of its fields, without those of nested messages. */
  readonly fieldCount: number;
  readonly #values = new Map<number, Value[]>();

  /** Throws ProtobufError for a malformed message, or for more than `maxFields` fields. */
  constructor(bytes: Uint8Array, maxFields = defaultMaxFields) {
    const cursor = { bytes, at: 0 };
    let count = 0;
    for (; cursor.at < bytes.length; count++) {
      if (count === maxFields) throw new ProtobufError(`more than ${maxFields} fields`);
      const tag = readVarint(cursor);
      const field = Number(tag >> 3n);
      if (field === 0 || field > 0x1fff_ffff) throw new ProtobufError("invalid field number");
      const value = readValue(cursor, Number(tag & 7n));
      const known = this.#values.get(field);
      if (known) known.push(value);
      else this.#values.set(field, [value]);
    }
    this.fieldCount = count;
  }

  /** An absent field is empty. Throws ProtobufError if the field has another type. */
  string(field: number): string {
    return textOf(this.bytes(field), field);
  }

  strings(field: number): string[] {
    return this.#all(field).map((value) => textOf(bytesOf(value, field), field));
  }

  bytes(field: number): Uint8Array {
    const value = this.#all(field).at(-1);
    return value === undefined ? new Uint8Array() : bytesOf(value, field);
  }

  /** An absent field is 0. Negative values of int32 and int64 are above 2^63. */
  uint(field: number): bigint {
    const value = this.#all(field).at(-1) ?? 0n;
    if (typeof value === "bigint") return value;
    throw new ProtobufError(`field ${field}: expected an integer, got bytes`);
  }

  /** undefined: the field is absent. Several occurrences are merged, as the encoding requires. */
  message(field: number): MessageReader | undefined {
    const all = this.#all(field);
    if (all.length === 0) return undefined;
    return new MessageReader(Buffer.concat(all.map((value) => bytesOf(value, field))));
  }

  /** The elements of a repeated field of bytes or messages. */
  byteStrings(field: number): Uint8Array[] {
    return this.#all(field).map((value) => bytesOf(value, field));
  }

  /** undefined: the field is absent. */
  optionalBool(field: number): boolean | undefined {
    return this.#all(field).length === 0 ? undefined : this.uint(field) !== 0n;
  }

  #all(field: number): readonly Value[] {
    return this.#values.get(field) ?? [];
  }
}

interface Cursor {
  readonly bytes: Uint8Array;
  at: number;
}

function readVarint(cursor: Cursor): bigint {
  let value = 0n;
  for (let i = 0n; i < 10n; i++) {
    const byte = cursor.bytes[cursor.at++];
    if (byte === undefined) throw new ProtobufError("message ends inside a number");
    value |= BigInt(byte & 0x7f) << (7n * i);
    if (byte < 0x80) return BigInt.asUintN(64, value);
  }
  throw new ProtobufError("number longer than 10 bytes");
}

function readValue(cursor: Cursor, wireType: number): Value {
  switch (wireType) {
    case wireVarint:
      return readVarint(cursor);
    case wireFixed64:
      return take(cursor, 8n);
    case wireBytes:
      return take(cursor, readVarint(cursor));
    case wireFixed32:
      return take(cursor, 4n);
    default:
      throw new ProtobufError(`unknown wire type ${wireType}`);
  }
}

function take(cursor: Cursor, length: bigint): Uint8Array {
  if (length > BigInt(cursor.bytes.length - cursor.at)) {
    throw new ProtobufError("message ends inside a field");
  }
  const begin = cursor.at;
  cursor.at += Number(length);
  return cursor.bytes.subarray(begin, cursor.at);
}

function bytesOf(value: Value, field: number): Uint8Array {
  if (typeof value !== "bigint") return value;
  throw new ProtobufError(`field ${field}: expected bytes, got an integer`);
}

function textOf(bytes: Uint8Array, field: number): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new ProtobufError(`field ${field}: expected UTF-8 text`);
  }
}
