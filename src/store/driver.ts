// What a database is to this program: queries, transactions, news of others' changes.
//
// Called by the key store, the submission store and the migrations; made by a driver of one database
// (sqlite-driver.ts). SQL is written once, for SQLite 3.53 and PostgreSQL 15: parameters $1,
// $2 …; bigint for times, amounts and counts; text; in migrations the word {blob} for bytes. No
// functions of time, no row ids, no automatic numbers, nothing of one of the two alone.

import { quote, ShredwayError } from "../core/errors.ts";

/** Integers are always bigint: a number would become a float on its way. */
export type SqlValue = string | bigint | Uint8Array | null;
/** Values in the order of the query's columns. */
export type Row = readonly SqlValue[];

export interface Statement {
  readonly sql: string;
  readonly params: readonly SqlValue[];
  /** When it changes no row, the whole transaction is taken back. */
  readonly mustChange?: boolean;
}

/**
 * durable: on the disk, a loss of power included. survives-kill: with the kernel, so that killing this
 * process loses nothing. Both are all or nothing after any end.
 */
export type Durability = "durable" | "survives-kill";

export interface TransactionEnd {
  /** False: a statement that must change something found nothing, and nothing was changed. */
  readonly isCommitted: boolean;
  /** Rows that each statement changed; up to the one that found nothing. */
  readonly changes: readonly number[];
}

/** Every promise may reject with ShredwayError "store_failed". */
export interface SqlDriver {
  /** Sees what is committed, nothing else. */
  query(sql: string, params: readonly SqlValue[]): Promise<readonly Row[]>;
  /**
   * All or nothing. Transactions that are asked for while a commit is under way share the next one;
   * one that fails takes no other with it. Statements return no rows.
   */
  transaction(statements: readonly Statement[], durability: Durability): Promise<TransactionEnd>;
  /** Told after another process (or connection) changed the database. Returns how to end that. */
  onForeignChange(listener: () => void): () => void;
  /** Settles when everything asked for before has ended. Idempotent. */
  close(): Promise<void>;
}

function unexpected(row: Row, column: number, expected: string): ShredwayError {
  return new ShredwayError(
    "store_failed",
    `the store: expected ${expected} in column ${column}, got ${quote(row[column])}`,
  );
}

// Readers of one value of a row. Throw ShredwayError "store_failed" for another type.

export function textAt(row: Row, column: number): string {
  const value = row[column];
  if (typeof value === "string") return value;
  throw unexpected(row, column, "text");
}

export function textOrNullAt(row: Row, column: number): string | null {
  return row[column] === null ? null : textAt(row, column);
}

export function integerAt(row: Row, column: number): bigint {
  const value = row[column];
  if (typeof value === "bigint") return value;
  throw unexpected(row, column, "an integer");
}

export function integerOrNullAt(row: Row, column: number): bigint | null {
  return row[column] === null ? null : integerAt(row, column);
}

export function bytesAt(row: Row, column: number): Uint8Array {
  const value = row[column];
  if (value instanceof Uint8Array) return value;
  throw unexpected(row, column, "bytes");
}

export function bytesOrNullAt(row: Row, column: number): Uint8Array | null {
  return row[column] === null ? null : bytesAt(row, column);
}

/** For what is small enough: times in milliseconds, limits. */
export function numberOrNullAt(row: Row, column: number): number | null {
  const value = integerOrNullAt(row, column);
  return value === null ? null : Number(value);
}

/** One of `words`; `what` they are, for the message: "scopes". */
export function wordOf<const T extends string>(text: string, words: readonly T[], what: string): T {
  const word = words.find((known) => known === text);
  if (word !== undefined) return word;
  throw new ShredwayError(
    "store_failed",
    `the store: expected one of the ${what} ${words.join(", ")}, got ${quote(text)}`,
  );
}

export function wordAt<const T extends string>(
  row: Row,
  column: number,
  words: readonly T[],
  what: string,
): T {
  return wordOf(textAt(row, column), words, what);
}

export function wordOrNullAt<const T extends string>(
  row: Row,
  column: number,
  words: readonly T[],
  what: string,
): T | null {
  return textOrNullAt(row, column) === null ? null : wordAt(row, column, words, what);
}
