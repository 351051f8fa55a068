// Mark: a schema version that marks a database as partly filled.
//
// Set before the first row is loaded, and removed in one transaction after the last one. Every program,
// even an older one, rejects such a database, so a partly filled one is never used. The mark identifies
// its load: of two concurrent loads, only the last one that set it can write.

import { randomInt } from "node:crypto";
import { ShredwayError } from "../../../core/errors.ts";

/** Schema versions are smaller; a mark is a multiple of it, plus the final version. */
const step = 1_000_000;
/** Keeps every mark exact as a number. */
const numberMax = 2 ** 32;

/** A unique mark for a load with rows of schema `version`. */
export function newMark(version: number): number {
  return randomInt(1, numberMax) * step + version;
}

export function isMark(version: number): boolean {
  return version >= step;
}

/** The schema of a marked database. */
export function versionIn(mark: number): number {
  return mark % step;
}

/** The error for programs that open a marked database. */
export function unfinished(mark: number): ShredwayError {
  return new ShredwayError(
    "store_failed",
    "the store: the database is incomplete: an import is in progress " +
      "or was interrupted; run shredway import again (docs/backup.md)",
    { details: { code: "UNFINISHED", mark } },
  );
}
