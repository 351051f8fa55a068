// Conversion of values for PostgreSQL: integers never become floats.
//
// Used by connection.ts.

import { ShredwayError } from "../../../core/errors.ts";
import type { SqlValue } from "../driver.ts";
import { plainText, storedText } from "../stored-text.ts";

export function parameterOf(value: SqlValue): string | Uint8Array | null {
  if (typeof value === "string") return storedText(value);
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
  [25, plainText], // text
  [1043, plainText], // varchar
  [19, plainText], // name
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
