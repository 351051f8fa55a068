// Generated rows for every table of a schema, and all rows of a database in one order.

import type { Row, SqlDriver, SqlValue } from "../../../../src/platform/store/driver.ts";
import {
  type Column,
  insertionsOf,
  type Table,
} from "../../../../src/platform/store/transfer/tables.ts";

/** Texts that cause problems in databases or in JSON. */
const texts = [
  "",
  "a",
  "'\"\\",
  "line\nbreak\r\t",
  "\0",
  "\u{E000}0",
  "ü€😀",
  "null",
  "\u2028",
  "{}",
];

/** Each table has rows 0 … of these; references to accounts and API keys use the same number. */
function generateValue(table: Table, column: Column, i: number, random: () => number): SqlValue {
  const { name, type, isNullable } = column;
  if (name === "account_id") return `accounts.id-${i}`;
  if (name === "key_id") return `api_keys.id-${i}`;
  const isOwn = table.key.includes(name) || /^(name|hash|address|key_id|counted_order)$/.test(name);
  if (isNullable && random() < 0.3) return null;
  if (type === "text") {
    const text = texts[Math.floor(random() * texts.length)] ?? "";
    return isOwn ? `${table.name}.${name}-${i}` : text + text;
  }
  if (type === "bytes") {
    const length = name === "hash" ? 32 : name === "signature" ? 64 : Math.floor(random() * 80);
    const bytes = Uint8Array.from({ length }, () => Math.floor(random() * 256));
    if (isOwn) new DataView(bytes.buffer).setUint32(0, i);
    return bytes;
  }
  if (isOwn) return BigInt(i);
  const bits = BigInt(Math.floor(random() * 2 ** 32)) * 2n ** BigInt(Math.floor(random() * 32));
  return random() < 0.5 ? bits : -bits - 1n;
}

export function generateRows(table: Table, count: number, random: () => number): Row[] {
  return Array.from({ length: count }, (_, i) =>
    table.columns.map((column) => generateValue(table, column, i, random)),
  );
}

export async function fill(
  driver: SqlDriver,
  tables: readonly Table[],
  count: number,
  random: () => number,
): Promise<void> {
  for (const table of tables) {
    const rows = generateRows(table, count, random);
    for (let at = 0; at < rows.length; at += 2000) {
      await driver.transaction(insertionsOf(table, rows.slice(at, at + 2000)), "durable");
    }
  }
}

function plain(value: SqlValue): string {
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString("hex")}`;
  return `${typeof value} ${String(value)}`;
}

/** The rows of each table, sorted, because databases differ in their order. */
export async function allRows(
  driver: Pick<SqlDriver, "query">,
  tables: readonly Table[],
): Promise<Record<string, string[]>> {
  const all: Record<string, string[]> = {};
  for (const { name, columns } of tables) {
    const list = columns.map((column) => column.name).join(", ");
    const rows = await driver.query(`SELECT ${list} FROM ${name}`, []);
    all[name] = rows.map((row) => row.map(plain).join(" | ")).toSorted();
  }
  return all;
}
