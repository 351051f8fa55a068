// What a database is to this program: queries, transactions, news of others' changes.
//
// Called by the stores and the migrations; made by a driver of one database (sqlite/driver.ts,
// postgres/driver.ts). SQL is written once, for SQLite 3.53 and PostgreSQL 15: parameters $1,
// $2 …; bigint for times, amounts and counts; text; in migrations the word {blob} for bytes. No
// functions of time, no row ids, no automatic numbers, nothing of one of the two alone.

import { quote, ShredwayError } from "../../core/errors.ts";

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
 * durable: on the disk, a loss of power included. survives-kill: out of this process, so that killing
 * it loses nothing; a loss of power, or the end of a database server, may take the last ones. Both are
 * all or nothing after any end.
 */
export type Durability = "durable" | "survives-kill";

export interface TransactionEnd {
  /** False: a statement that must change something found nothing, and nothing was changed. */
  readonly isCommitted: boolean;
  /** Rows that each statement changed; up to the one that found nothing. */
  readonly changes: readonly number[];
}

/**
 * News of others, in the order of their commits: "topic" or "topic text" as the transactions gave them.
 * null: anything may have changed (a gap, a program that tells no more). Told at times without a
 * change, and many as one, never too seldom.
 */
export type ForeignChangeListener = (news: readonly string[] | null) => void;

export interface HeldLock {
  release(): Promise<void>;
}

/**
 * Every promise may reject with ShredwayError "store_failed": then nothing was changed, unless the
 * message says that nobody can know (`details.code` "UNKNOWN").
 */
export interface SqlDriver {
  /** Sees what is committed, nothing else. */
  query(sql: string, params: readonly SqlValue[]): Promise<readonly Row[]>;
  /**
   * All or nothing. Transactions that are asked for while a commit is under way share the next one;
   * one that fails takes no other with it. Statements return no rows. `news` (a topic, or a topic and a
   * text of at most 500 bytes without NUL) are told to other processes if and only if it is committed,
   * an empty list tells nothing; without a list a durable one says that anything may have changed,
   * another nothing.
   */
  transaction(
    statements: readonly Statement[],
    durability: Durability,
    news?: readonly string[],
  ): Promise<TransactionEnd>;
  /** Told after another process (or connection) changed something. Returns how to end that. */
  onForeignChange(listener: ForeignChangeListener): () => void;
  /**
   * What one process in the world holds at a time; null: another one does. Lost when its connection
   * is (`onLost`, once, not after `release`), or when the process ends in whatever way. It keeps nobody
   * from writing: who relies on being the only one checks a number in the transaction itself.
   */
  tryLock(name: string, onLost: () => void): Promise<HeldLock | null>;
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
