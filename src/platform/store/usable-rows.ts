// Separates the rows that this version can use from the others, so that one edited row affects only itself.
//
// Called by the stores of API keys and of public keys.

import { messageOf } from "../../core/errors.ts";
import type { Row } from "./driver.ts";

interface SortedRows<T, U> {
  readonly usable: readonly T[];
  readonly unusable: readonly U[];
}

/** `read` throws for a row that cannot be used; `describe` must accept every row. */
export function sortRows<T, U>(
  rows: readonly Row[],
  read: (row: Row) => T,
  describe: (row: Row, problem: string) => U,
): SortedRows<T, U> {
  const usable: T[] = [];
  const unusable: U[] = [];
  for (const row of rows) {
    try {
      usable.push(read(row));
    } catch (error) {
      unusable.push(describe(row, messageOf(error)));
    }
  }
  return { usable, unusable };
}

/** For the description of a row: any value as text. */
export function anyText(row: Row, column: number): string {
  const value = row[column];
  return value instanceof Uint8Array ? Buffer.from(value).toString("hex") : String(value);
}
