// Conversion of values for PostgreSQL: integers never become floats, and texts may contain any
// character.
//
// Used by connection.ts. PostgreSQL does not store the character NUL in texts, but SQLite does. It is
// written as two other characters, so each text has one form and comparisons for equality still work.

import { ShredwayError } from "../../../core/errors.ts";
import type { SqlValue } from "../driver.ts";

/** A private-use character of Unicode, so other texts do not contain it by accident. */
const escapeCharacter = "\u{E000}";
const escaped = new Map([
  ["\0", `${escapeCharacter}0`],
  [escapeCharacter, `${escapeCharacter}1`],
]);
const unescaped = new Map([...escaped].map(([plain, form]) => [form, plain]));

function textParameter(text: string): string {
  if (!text.includes("\0") && !text.includes(escapeCharacter)) return text;
  return text.replaceAll(/[\0\u{E000}]/gu, (character) => escaped.get(character) ?? "");
}

function textOf(text: string): string {
  if (!text.includes(escapeCharacter)) return text;
  return text.replaceAll(/\u{E000}[01]/gu, (form) => unescaped.get(form) ?? form);
}

export function parameterOf(value: SqlValue): string | Uint8Array | null {
  if (typeof value === "string") return textParameter(value);
  return typeof value === "bigint" ? value.toString() : value;
}

function integerOf(text: string): bigint {
  if (/^-?\d+$/.test(text)) return BigInt(text);
  throw new ShredwayError("store_failed", `the store: expected an integer, got ${text}`);
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text.slice(2), "hex")); // after "\x"
}

/** Readers by the type numbers of PostgreSQL (pg_type). */
const readers = new Map<number, (text: string) => SqlValue>([
  [20, integerOf], // bigint
  [21, integerOf], // smallint
  [23, integerOf], // integer
  [1700, integerOf], // numeric: sums of bigint
  [25, textOf], // text
  [1043, textOf], // varchar
  [19, textOf], // name
  [17, bytesOf], // bytea
]);

/** Reads columns of the type with number `type`. Throws ShredwayError "store_failed". */
export function readerOf(type: number): (text: string) => SqlValue {
  const reader = readers.get(type);
  if (reader) return reader;
  return () => {
    throw new ShredwayError(
      "store_failed",
      `the store: expected a column of integers, text or bytes, got PostgreSQL's type ${type}`,
    );
  };
}
