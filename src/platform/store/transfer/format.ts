// Export format: one JSON text per line, integers as digits, bytes as base64.
//
//   {"format":"shredway-export","formatVersion":1,"schemaVersion":4,"createdNs":"…","node":"…"}
//   {"table":"accounts","columns":{"id":"text","name":"text","created_ns":"integer"}}
//   ["a_1","trading","1763769600000000000"]
//   …                                                   all tables, referenced ones first
//   {"end":true,"rows":{"accounts":1,…},"sha256":"…"}   SHA-256 of all bytes before this line
//
// Written by export.ts, read by import.ts. Any other content is rejected, so a file is imported completely or
// not at all. docs/backup.md describes the format.

import { messageOf, quote, ShredwayError } from "../../../core/errors.ts";
import { isObject } from "../../../core/values.ts";
import type { Row, SqlValue } from "../driver.ts";
import { type Column, faultOf, type Table } from "./tables.ts";

const format = "shredway-export";
/** The first bytes of every export. */
export const exportStart = `{"format":"${format}"`;
const formatVersion = 1;

export interface Head {
  readonly schemaVersion: number;
  readonly createdNs: bigint;
  /** Name of the node or machine that wrote it. */
  readonly node: string;
}

export interface Tail {
  readonly rows: ReadonlyMap<string, number>;
  /** 64 hexadecimal digits. */
  readonly sha256: string;
}

// ---- to lines ----

export function headLine({ schemaVersion, createdNs, node }: Head): string {
  const fields = { format, formatVersion, schemaVersion, createdNs: createdNs.toString(), node };
  return `${JSON.stringify(fields)}\n`;
}

export function tableLine({ name, columns }: Table): string {
  return `${JSON.stringify({ table: name, columns: typesOf(columns) })}\n`;
}

function typesOf(columns: readonly Column[]): Record<string, string> {
  return Object.fromEntries(columns.map(({ name, type }) => [name, type]));
}

function plain(value: SqlValue): string | null {
  if (typeof value === "bigint") return value.toString();
  if (value === null || typeof value === "string") return value;
  return Buffer.from(value.buffer, value.byteOffset, value.length).toString("base64");
}

export function rowLine(row: Row): string {
  return `${JSON.stringify(row.map(plain))}\n`;
}

export function tailLine({ rows, sha256 }: Tail): string {
  return `${JSON.stringify({ end: true, rows: Object.fromEntries(rows), sha256 })}\n`;
}

// ---- and back ----

/** An error in a line; the reader of the file adds the line number. */
export class LineError extends Error {}

function fault(expected: string, got: unknown): LineError {
  return new LineError(`expected ${expected}, got ${quote(got)}`);
}

export type Line = readonly unknown[] | Readonly<Record<string, unknown>>;

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A row, or a line of another kind. Throws LineError. */
export function parseLine(bytes: Uint8Array): Line {
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(bytes));
  } catch (error) {
    throw new LineError(`expected a line of JSON in UTF-8, got another: ${messageOf(error)}`);
  }
  if (Array.isArray(value) || isObject(value)) return value;
  throw fault("a list or an object", value);
}

type Fields = Readonly<Record<string, unknown>>;

function isRow(line: Line): line is readonly unknown[] {
  return Array.isArray(line);
}

function fieldsOf(line: Line, names: readonly string[], what: string): Fields {
  if (isRow(line)) throw new LineError(`expected ${what}, got a row`);
  const got = Object.keys(line);
  if (got.join() === names.join()) return line;
  throw new LineError(`expected ${what} with ${names.join(", ")}, got ${quote(got.join(", "))}`);
}

function countOf(value: unknown, what: string): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw fault(what, value);
}

/**
 * Throws LineError, and ShredwayError "store_newer" for the format or schema of a newer version.
 */
export function headOf(line: Line, newestSchema: number): Head {
  if (isRow(line) || !("format" in line) || line["format"] !== format) {
    throw fault(`an export of Shredway, which begins with ${exportStart}`, line);
  }
  checkNewest(countOf(line["formatVersion"], "a formatVersion"), formatVersion, "format");
  const names = ["format", "formatVersion", "schemaVersion", "createdNs", "node"];
  const fields = fieldsOf(line, names, "a head");
  const { createdNs, node } = fields;
  const schemaVersion = countOf(fields["schemaVersion"], "a schemaVersion");
  checkNewest(schemaVersion, newestSchema, "schema");
  if (typeof createdNs !== "string" || !/^\d{1,20}$/.test(createdNs)) {
    throw fault("createdNs in digits", createdNs);
  }
  if (typeof node !== "string") throw fault("a node", node);
  return { schemaVersion, createdNs: BigInt(createdNs), node };
}

function checkNewest(version: number, newest: number, what: string): void {
  if (version === 0) throw fault(`a ${what} of version 1 or newer`, version);
  if (version <= newest) return;
  throw new ShredwayError(
    "store_newer",
    `unsupported ${what} version ${version}; expected ${newest} or older: ` +
      "a newer version of Shredway wrote it; use that version to import it",
    { details: { version, newest } },
  );
}

/** Throws LineError unless the line starts `table`. */
export function checkTable(line: Line, table: Table | undefined): void {
  const fields = fieldsOf(line, ["table", "columns"], "the beginning of a table");
  if (!table) throw new LineError(`expected the end, got the table ${quote(fields["table"])}`);
  if (fields["table"] !== table.name) throw fault(`the table ${table.name}`, fields["table"]);
  const expected = JSON.stringify(typesOf(table.columns));
  const got = JSON.stringify(fields["columns"]);
  if (got !== expected) {
    throw new LineError(`expected ${table.name} with the columns ${expected}, got ${quote(got)}`);
  }
}

function bytesOf(text: string): Uint8Array | string {
  const bytes = Uint8Array.from(Buffer.from(text, "base64"));
  return Buffer.from(bytes.buffer).toString("base64") === text ? bytes : text;
}

function readValue({ type }: Column, value: unknown): SqlValue | undefined {
  if (value === null) return null;
  if (typeof value !== "string") return undefined;
  if (type === "integer") return /^(0|-?[1-9]\d{0,18})$/.test(value) ? BigInt(value) : undefined;
  if (type === "bytes") return bytesOf(value);
  // No database stores half a UTF-16 pair.
  return /\p{Surrogate}/u.test(value) ? undefined : value;
}

/** Bytes with a fixed length in every table. */
const lengths: Readonly<Record<string, number>> = {
  "api_keys.hash": 32,
  "registrations.signature": 64,
  "claimed_registrations.signature": 64,
  "landed_tips.signature": 64,
};

/** The values of a row of `table`. Throws LineError. */
export function rowOf(line: Line, table: Table): Row {
  const { columns } = table;
  if (!Array.isArray(line))
    throw new LineError(`expected a row of ${table.name}, got another line`);
  if (line.length !== columns.length) {
    throw new LineError(
      `expected a row of ${table.name} with ${columns.length} values, got ${line.length}`,
    );
  }
  return columns.map((column, i) => {
    const name = `${table.name}.${column.name}`;
    const value = readValue(column, line[i]);
    const wrong =
      value === undefined
        ? `expected ${formOf[column.type]}, got ${quote(line[i])}`
        : faultOf(column, value);
    if (wrong !== null || value === undefined) throw new LineError(`${name}: ${wrong}`);
    const length = lengths[name];
    if (length !== undefined && value instanceof Uint8Array && value.length !== length) {
      throw new LineError(`${name}: expected ${length} bytes, got ${value.length}`);
    }
    return value;
  });
}

const formOf = {
  text: "text",
  integer: "an integer in digits",
  bytes: "bytes in base64",
} as const;

/** Throws LineError. */
export function tailOf(line: Line): Tail {
  const { end, rows, sha256 } = fieldsOf(line, ["end", "rows", "sha256"], "the end");
  if (end !== true) throw fault("the end", end);
  if (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256)) {
    throw fault("a SHA-256 of 64 hexadecimal digits", sha256);
  }
  if (!isObject(rows)) throw fault("counts of rows", rows);
  const counts = Object.entries(rows).map(
    ([name, count]) => [name, countOf(count, `a count of ${name}`)] as const,
  );
  return { rows: new Map(counts), sha256 };
}
