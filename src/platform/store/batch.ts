// Batches between the event loop and the database's thread: reads and transactions in one direction,
// results in the other.
//
// Written by sqlite/driver.ts, read by sqlite/database.ts. Every object in a message costs time on the
// event loop, so a batch is four flat lists: numbers, values, bytes, and SQL texts that the thread does
// not have yet. Bytes are copied once into a block that is transferred, because a view would take its
// whole buffer along.

import type { Row, SqlValue, Statement } from "./driver.ts";

export interface Batch {
  /** SQL texts by number, continuing the numbers of earlier batches. */
  readonly texts: readonly string[];
  /**
   * The statements of each item; for each statement its text, flag, and the length of each bytes value.
   */
  readonly shape: Uint32Array<ArrayBuffer>;
  /** The values of all statements, in order; undefined stands for bytes. */
  readonly values: readonly (string | bigint | null | undefined)[];
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Whether the commit waits for the disk. */
  readonly isDurable: boolean;
}

/** A failure is also a result: `code` is the database's code, `message` its text. */
export interface Failure {
  readonly code: string;
  readonly message: string;
}

export type ReadResult = readonly Row[] | Failure;
/** Changes of each statement; the last is -1 if it had to change a row and found none. */
export type WriteResult = readonly number[] | Failure;

export interface BatchResult {
  readonly reads: readonly ReadResult[];
  readonly writes: readonly WriteResult[];
  /** Changes when another connection commits a change. */
  readonly foreignVersion: number;
}

/** One read or one transaction. */
export interface BatchItem {
  readonly isRead: boolean;
  readonly statements: readonly Statement[];
}

export interface DecodedStatement {
  readonly text: number;
  readonly mustChange: boolean;
  readonly params: SqlValue[];
}

export interface DecodedItem {
  readonly isRead: boolean;
  readonly statements: DecodedStatement[];
}

/** Numbers for SQL texts, assigned at their first use. The program's texts are few and fixed. */
export class TextNumbers {
  readonly #numbers = new Map<string, number>();
  #fresh: string[] = [];

  numberOf(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    const number = this.#numbers.size;
    this.#numbers.set(text, number);
    this.#fresh.push(text);
    return number;
  }

  /** Texts that were numbered since the last call. */
  takeFresh(): string[] {
    const fresh = this.#fresh;
    this.#fresh = [];
    return fresh;
  }
}

export function encodeBatch(
  items: readonly BatchItem[],
  texts: TextNumbers,
  isDurable: boolean,
): Batch {
  const shape: number[] = [];
  const values: (string | bigint | null | undefined)[] = [];
  const pieces: Uint8Array[] = [];
  let length = 0;
  for (const { isRead, statements } of items) {
    shape.push(isRead ? 1 : 0, statements.length);
    for (const { sql, params, mustChange } of statements) {
      shape.push(texts.numberOf(sql), mustChange ? 1 : 0, params.length);
      for (const value of params) {
        if (!(value instanceof Uint8Array)) {
          values.push(value);
          continue;
        }
        values.push(undefined);
        shape.push(value.length);
        pieces.push(value);
        length += value.length;
      }
    }
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return { texts: texts.takeFresh(), shape: Uint32Array.from(shape), values, bytes, isDurable };
}

/** The items of a batch of encodeBatch; their bytes are views of the batch. */
export function decodeBatch({ shape, values, bytes }: Batch): DecodedItem[] {
  const items: DecodedItem[] = [];
  let shapeAt = 0;
  let valueAt = 0;
  let byteAt = 0;
  const nextNumber = (): number => shape[shapeAt++] ?? 0;
  const nextValue = (): SqlValue => {
    const value = values[valueAt++];
    if (value !== undefined) return value;
    const begin = byteAt;
    byteAt += nextNumber();
    return bytes.subarray(begin, byteAt);
  };
  while (shapeAt < shape.length) {
    const isRead = nextNumber() === 1;
    const statements = Array.from({ length: nextNumber() }, () => {
      const text = nextNumber();
      const mustChange = nextNumber() === 1;
      const params: SqlValue[] = [];
      for (let left = nextNumber(); left > 0; left--) params.push(nextValue());
      return { text, mustChange, params };
    });
    items.push({ isRead, statements });
  }
  return items;
}
