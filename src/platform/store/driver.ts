// Database driver: queries, transactions, and notifications of changes by other processes.
//
// Called by the stores and the migrations; implemented by sqlite/driver.ts and postgres/driver.ts. Each
// SQL text works on both SQLite 3.53 and PostgreSQL 15. Parameters are $1, $2 …; times, amounts and
// counts are bigint; others are text; migrations write {blob} for bytes. Texts use no time functions,
// row ids, automatic numbers or other features of one database.

import { quote, ShredwayError, storeCodeOf } from "../../core/errors.ts";

/** Integers are always bigint, because a number would become a float. */
export type SqlValue = string | bigint | Uint8Array | null;
/** Values in the order of the query's columns. */
export type Row = readonly SqlValue[];

export interface Statement {
  readonly sql: string;
  readonly params: readonly SqlValue[];
  /** If the statement changes no row, the whole transaction is rolled back. */
  readonly mustChange?: boolean;
}

/**
 * durable: on disk, safe from a loss of power. survives-kill: outside of this process, so safe from its
 * kill; a loss of power or the end of the database server may lose the last ones. Both are atomic in
 * every case.
 */
export type Durability = "durable" | "survives-kill";

export interface TransactionEnd {
  /** False: a statement that had to change a row found none, and nothing was changed. */
  readonly isCommitted: boolean;
  /** Rows changed by each statement, up to the one that found none. */
  readonly changes: readonly number[];
}

/**
 * Changes by other processes in commit order: "topic" or "topic text", as given by the transactions.
 * null: anything may have changed (after a gap, or from a program that sends no topics). A listener may
 * be called without a change, and once for several changes, but never misses one.
 */
export type ForeignChangeListener = (news: readonly string[] | null) => void;

export interface HeldLock {
  release(): Promise<void>;
}

/**
 * Every promise may reject with ShredwayError "store_failed". Then nothing was changed, unless
 * `details.code` is "UNKNOWN", which means that the result is unknown.
 */
export interface SqlDriver {
  /** Sees only committed data. */
  query(sql: string, params: readonly SqlValue[]): Promise<readonly Row[]>;
  /**
   * Atomic. Transactions requested during a commit share the next commit; a failing one does not affect
   * the others. Statements return no rows. `news` (a topic, or a topic and a text of at most 500 bytes
   * without NUL) reaches other processes if and only if the transaction is committed. An empty list
   * sends nothing. Without a list, a durable transaction reports that anything may have changed, and
   * another one reports nothing.
   */
  transaction(
    statements: readonly Statement[],
    durability: Durability,
    news?: readonly string[],
  ): Promise<TransactionEnd>;
  /**
   * Calls the listener after another process (or connection) changed data. Returns a function that
   * removes it.
   */
  onForeignChange(listener: ForeignChangeListener): () => void;
  /**
   * A lock that at most one process holds; null: another process holds it. It is lost with its
   * connection (`onLost`, called once, not after `release`) or when the process ends. It does not
   * prevent writes: code that requires exclusivity checks a number in the transaction itself.
   */
  tryLock(name: string, onLost: () => void): Promise<HeldLock | null>;
  /** Settles when all earlier calls have ended. Idempotent. */
  close(): Promise<void>;
}

/** Whether the database works, and rejected a change for its values: they may exist already. */
export function isRefusedChange(error: unknown): boolean {
  return /^(SQLITE_CONSTRAINT|2[23])/.test(storeCodeOf(error) ?? "");
}

function unexpected(row: Row, column: number, expected: string): ShredwayError {
  return new ShredwayError(
    "store_failed",
    `the store: expected ${expected} in column ${column}, got ${quote(row[column])}`,
  );
}

// Readers of one value of a row. They throw ShredwayError "store_failed" for another type.

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

/** For values that fit into a number: times in milliseconds, limits. */
export function numberOrNullAt(row: Row, column: number): number | null {
  const value = integerOrNullAt(row, column);
  return value === null ? null : Number(value);
}

/** One of `words`; `what` names them in the message, for example "scopes". */
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
