// The tables of a schema version, with columns, types and keys, for the transfer between databases.
//
// Derived from the steps of migrations.ts, so that no separate list can be forgotten. Called by export
// and import. A step with unknown syntax is an error at their start, and in the tests.

import { quote } from "../../../core/errors.ts";
import type { Row, SqlValue } from "../driver.ts";
import { type Migration, migrations } from "../migrations.ts";

const columnTypes = ["text", "integer", "bytes"] as const;
type ColumnType = (typeof columnTypes)[number];

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly isNullable: boolean;
}

export interface Table {
  readonly name: string;
  readonly columns: readonly Column[];
  /** Columns of the primary key, in its order. */
  readonly key: readonly string[];
}

const typesByWord: Readonly<Record<string, ColumnType>> = {
  text: "text",
  bigint: "integer",
  "{blob}": "bytes",
};

/** Steps that do not change the columns of a table. */
const withoutColumns = /^\s*(CREATE (UNIQUE )?INDEX|UPDATE|DELETE FROM|INSERT INTO|DROP INDEX)\b/;

/** Parts between commas outside of brackets. */
function partsOf(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let part = "";
  for (const character of text) {
    if (character === "(") depth++;
    if (character === ")") depth--;
    if (character === "," && depth === 0) {
      parts.push(part.trim());
      part = "";
    } else {
      part += character;
    }
  }
  return [...parts, part.trim()];
}

function columnOf(text: string): Column {
  const [, name = "", word = "", rest = ""] = /^(\w+) (\w+|\{blob\})(.*)$/s.exec(text) ?? [];
  const type = typesByWord[word];
  if (!type) throw new Error(`a step of the schema: expected a column, got ${quote(text)}`);
  return { name, type, isNullable: !/NOT NULL|PRIMARY KEY/.test(rest) };
}

function tableOf(name: string, body: string): Table {
  const columns: Column[] = [];
  let key: string[] = [];
  for (const part of partsOf(body)) {
    const together = /^PRIMARY KEY \((.*)\)$/.exec(part)?.[1];
    if (together !== undefined) {
      key = together.split(/,\s*/);
      continue;
    }
    const column = columnOf(part);
    columns.push(column);
    if (part.includes("PRIMARY KEY")) key = [column.name];
  }
  if (key.length > 0) return { name, columns, key };
  throw new Error(`a step of the schema: expected a table with a primary key, got ${name}`);
}

/** The tables after `version` steps, each after those that it references. */
export function tablesAt(
  version: number,
  steps: readonly Migration[] = migrations,
): readonly Table[] {
  const tables = new Map<string, Table>();
  for (const sql of steps.slice(0, version).flat()) {
    const [, tableName, body = ""] = /^\s*CREATE TABLE (\w+) \((.*)\)\s*$/s.exec(sql) ?? [];
    const [, name = "", text = ""] = /^\s*ALTER TABLE (\w+) ADD COLUMN (.*)$/s.exec(sql) ?? [];
    const altered = tables.get(name);
    if (tableName !== undefined) {
      tables.set(tableName, tableOf(tableName, body));
    } else if (altered) {
      tables.set(name, { ...altered, columns: [...altered.columns, columnOf(text)] });
    } else if (!withoutColumns.test(sql)) {
      throw new Error(`a step of the schema: unknown statement ${quote(sql)}`);
    }
  }
  return [...tables.values()];
}

function listOf(columns: readonly Column[]): string {
  return columns.map(({ name }) => name).join(", ");
}

export function keyOf(table: Table, row: Row): SqlValue[] {
  return table.key.map((name) => row[table.columns.findIndex((one) => one.name === name)] ?? null);
}

/** Parameters $from … for `count` values. */
function places(from: number, count: number): string {
  return Array.from({ length: count }, (_, i) => `$${from + i}`).join(", ");
}

/** Whole rows in key order; `isBehind`: those after a key, which is $1 …. */
export function pageQuery(table: Table, rows: number, isBehind: boolean): string {
  const key = table.key.join(", ");
  const behind = isBehind ? ` WHERE (${key}) > (${places(1, table.key.length)})` : "";
  return `SELECT ${listOf(table.columns)} FROM ${table.name}${behind} ORDER BY ${key} LIMIT ${rows}`;
}

/** Number of rows in one statement. Few sizes: each is a separate prepared text. */
const insertSizes = [128, 16, 1] as const;

function insertion(table: Table, rows: number): string {
  const width = table.columns.length;
  const values = Array.from({ length: rows }, (_, i) => `(${places(1 + i * width, width)})`);
  return `INSERT INTO ${table.name} (${listOf(table.columns)}) VALUES ${values.join(", ")}`;
}

/** Statements that add rows. */
export function insertionsOf(
  table: Table,
  rows: readonly Row[],
): { readonly sql: string; readonly params: SqlValue[] }[] {
  const statements: { sql: string; params: SqlValue[] }[] = [];
  for (let at = 0; at < rows.length; ) {
    const size = insertSizes.find((one) => one <= rows.length - at) ?? 1;
    const params = rows.slice(at, at + size).flat();
    statements.push({ sql: insertion(table, size), params });
    at += size;
  }
  return statements;
}

const integerMax = 2n ** 63n - 1n;

/** The error of a value, as "expected …, got …"; null: valid. */
export function faultOf({ type, isNullable }: Column, value: SqlValue | number): string | null {
  if (value === null) return isNullable ? null : `expected ${wordFor[type]}, got null`;
  const isRight =
    (type === "text" && typeof value === "string") ||
    (type === "bytes" && value instanceof Uint8Array) ||
    (type === "integer" &&
      typeof value === "bigint" &&
      value <= integerMax &&
      value >= -integerMax - 1n);
  if (isRight) return null;
  const got = value instanceof Uint8Array ? "bytes" : quote(value);
  return `expected ${wordFor[type]}, got ${got}`;
}

const wordFor: Readonly<Record<ColumnType, string>> = {
  text: "text",
  integer: "an integer of 64 bits",
  bytes: "bytes",
};
