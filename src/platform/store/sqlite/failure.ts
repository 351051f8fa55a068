// Errors of SQLite for people: the file, the consequence, and SQLite's own text.

import { ShredwayError } from "../../../core/errors.ts";
import type { Failure } from "../batch.ts";
import { accessProblem } from "./file-access.ts";

/** The code if another process holds the lock file. */
export const inUseCode = "IN_USE";
/** The code if acknowledged changes are missing. */
export const damagedCode = "DAMAGED";

/** The code if the file that is open is not the one in the folder any more. */
export const removedCode = "REMOVED";

/** Texts by the start of SQLite's code; the first match applies. */
const meanings: readonly (readonly [code: string, meaning: string])[] = [
  ["SQLITE_FULL", "the disk is full"],
  ["SQLITE_IOERR", "the disk failed to read or write"],
  ["SQLITE_BUSY", "lock time-out: another process holds the file's lock"],
  ["SQLITE_CORRUPT", "the database file is damaged"],
  ["SQLITE_NOTADB", "the file is not an SQLite database"],
  ["SQLITE_READONLY", "no permission to write to the file and its folder"],
  ["SQLITE_CANTOPEN", "the file cannot be opened or created"],
  [damagedCode, "the database file is damaged"],
  [removedCode, "a file of the database was removed or replaced while the service runs"],
  [inUseCode, "another service uses the data folder"],
  ["SQLITE_CONSTRAINT", "constraint violation"],
];

/** Codes of SQLite for a file or folder that this process may not use. */
const accessCodes: readonly string[] = ["SQLITE_READONLY", "SQLITE_CANTOPEN"];

export function isBusy({ code }: Failure): boolean {
  return code.startsWith("SQLITE_BUSY");
}

/** ShredwayError "store_failed" for a failure of the file `path`. */
export function storeFailure(path: string, { code, message }: Failure): ShredwayError {
  const meaning = meanings.find(([known]) => code.startsWith(known))?.[1];
  const words = code === "" ? message : `${message}; ${code}`;
  const text = meaning === undefined ? words : `${meaning} (${words})`;
  const access = accessCodes.some((known) => code.startsWith(known)) ? accessProblem(path) : null;
  return new ShredwayError(
    "store_failed",
    `${path}: ${access === null ? text : `${text}: ${access}`}`,
    { details: { path, code } },
  );
}
