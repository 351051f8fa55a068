// Errors of SQLite for people: the file, the consequence, and SQLite's own text.

import { ShredwayError } from "../../../core/errors.ts";
import type { Failure } from "../batch.ts";

/** The code if another process holds the lock file. */
export const inUseCode = "IN_USE";

/** Texts by the start of SQLite's code; the first match applies. */
const meanings: readonly (readonly [code: string, meaning: string])[] = [
  ["SQLITE_FULL", "expected room on the disk, got none"],
  ["SQLITE_IOERR", "expected a device that reads and writes, got a failure"],
  ["SQLITE_BUSY", "expected to get the file's lock, got none: another process holds it"],
  ["SQLITE_CORRUPT", "expected a whole database, got a damaged one"],
  ["SQLITE_NOTADB", "expected an SQLite database, got another file"],
  ["SQLITE_READONLY", "expected to be allowed to write to the file and its folder, got no"],
  ["SQLITE_CANTOPEN", "expected a file that can be opened and written, got none"],
  [inUseCode, "expected a data folder that no other service uses, got one in use"],
  ["SQLITE_CONSTRAINT", "expected values that fit to what is kept, got others"],
];

export function isBusy({ code }: Failure): boolean {
  return code.startsWith("SQLITE_BUSY");
}

/** ShredwayError "store_failed" for a failure of the file `path`. */
export function storeFailure(path: string, { code, message }: Failure): ShredwayError {
  const meaning = meanings.find(([known]) => code.startsWith(known))?.[1];
  const words = code === "" ? message : `${message}; ${code}`;
  return new ShredwayError(
    "store_failed",
    `${path}: ${meaning === undefined ? words : `${meaning} (${words})`}`,
    { details: { path, code } },
  );
}
