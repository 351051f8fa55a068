// The mark of a database that is being filled: a version of the schema that no program goes on with.
//
// Set before the first row comes from elsewhere, taken away in one transaction when all are there. Every
// program, also an older one, refuses to work on such a database, so half of one is never taken for the
// whole. The mark names its load: of two that are at it, only the one that set it last can write.

import { randomInt } from "node:crypto";
import { ShredwayError } from "../../../core/errors.ts";

/** Versions of schemas stay below; a mark is a multiple of it, plus the version to be. */
const step = 1_000_000;
/** Keeps every mark exact as a number. */
const numberMax = 2 ** 32;

/** A mark of its own for a load with rows of schema `version`. */
export function newMark(version: number): number {
  return randomInt(1, numberMax) * step + version;
}

export function isMark(version: number): boolean {
  return version >= step;
}

/** The schema that a marked database has. */
export function versionIn(mark: number): number {
  return mark % step;
}

/** What whoever wants to work on a marked database is told. */
export function unfinished(mark: number): ShredwayError {
  return new ShredwayError(
    "store_failed",
    "the store: expected a whole database, got one that an import has filled in part: it is under " +
      "way, or was interrupted; run shredway import again (docs/backup.md)",
    { details: { code: "UNFINISHED", mark } },
  );
}
