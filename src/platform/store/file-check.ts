// File check: what the start of a service would refuse about its SQLite file. Changes nothing.
//
// Called by `shredway doctor`. It reads one state of the file on a second connection, as the export does,
// so a running service continues. The check of the content reads the whole file; a large one is
// therefore not checked.

import { statSync } from "node:fs";
import { join } from "node:path";
import { isShredwayError, messageOf, ShredwayError } from "../../core/errors.ts";
import { databaseFileName } from "./data-folder.ts";
import { integerAt, textAt } from "./driver.ts";
import { openSqliteSnapshot, type Snapshot, versionIfAny } from "./snapshot.ts";
import { checkCommits } from "./sqlite/commit-count.ts";
import { failureOf } from "./sqlite/database.ts";
import { damagedCode, storeFailure } from "./sqlite/failure.ts";
import { readUnusableKeys, type StartProblem, versionProblem } from "./start-check.ts";

interface FileCheck {
  readonly path: string;
  readonly problems: readonly StartProblem[];
  /** Schema version; 0: no tables yet. */
  readonly version: number;
  /** Size of a content that was not checked, because it is above the limit; null: it was checked. */
  readonly uncheckedBytes: number | null;
  /** Stored keys that this version cannot use, one sentence each; empty for another schema version. */
  readonly unusableKeys: readonly string[];
}

/** Reading this takes a few seconds on a slow disk. */
const contentBytesMax = 512 * 1024 * 1024;
const busyMs = 5000;
const contentBytesQuery = `SELECT (page_count - freelist_count) * page_size
  FROM pragma_page_count, pragma_freelist_count, pragma_page_size`;
/** One line per problem, at most so many; "ok" without one. */
const contentQuery = "PRAGMA quick_check(1)";
const damagedCodes = [damagedCode, "SQLITE_CORRUPT", "SQLITE_NOTADB"];
const restore = "restore a backup (docs/backup.md)";

/** Whether the file exists. Throws if this user may not look at it. */
function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

function problemOf(path: string, error: unknown): StartProblem {
  const known = isShredwayError(error, "store_failed") ? error : null;
  const details = known?.details;
  const code = details && "code" in details ? details.code : "";
  const isDamaged = damagedCodes.some((one) => code.startsWith(one));
  const text = `${path}: ${messageOf(error)}`;
  return {
    error: known ?? new ShredwayError("store_failed", text, { cause: error }),
    remedy: isDamaged ? restore : "run the doctor as the user of the service, or as root",
  };
}

/** For a log without its database. Throws ShredwayError "store_failed" like the start. */
function checkLog(path: string): void {
  try {
    checkCommits(path, busyMs);
  } catch (error) {
    throw storeFailure(path, failureOf(error));
  }
}

async function contentProblem(snapshot: Snapshot, path: string): Promise<StartProblem[]> {
  const [row = []] = await snapshot.query(contentQuery, []);
  const answer = textAt(row, 0);
  if (answer === "ok") return [];
  const text = `${path}: the database file is damaged (${answer.replaceAll(/\s+/g, " ").slice(0, 200)})`;
  return [{ error: new ShredwayError("store_failed", text), remedy: restore }];
}

async function read(snapshot: Snapshot, path: string, bytesMax: number): Promise<FileCheck> {
  const version = await versionIfAny(snapshot, "sqlite");
  const problems = versionProblem(version);
  const [row = []] = await snapshot.query(contentBytesQuery, []);
  const bytes = Number(integerAt(row, 0));
  const isLarge = bytes > bytesMax;
  const content = isLarge ? [] : await contentProblem(snapshot, path);
  const all = [...problems, ...content];
  const unusableKeys = all.length === 0 ? await readUnusableKeys(snapshot, version) : [];
  return { path, problems: all, version, uncheckedBytes: isLarge ? bytes : null, unusableKeys };
}

const nothingChecked = { version: 0, uncheckedBytes: null, unusableKeys: [] };

/** Never rejects. `bytesMax`: the content of a larger file is not checked. */
export async function checkFile(directory: string, bytesMax = contentBytesMax): Promise<FileCheck> {
  const path = join(directory, databaseFileName);
  let snapshot: Snapshot | undefined;
  try {
    if (!exists(path)) {
      if (exists(`${path}-wal`)) checkLog(path);
      return { ...nothingChecked, path, problems: [] };
    }
    snapshot = await openSqliteSnapshot(path);
    return await read(snapshot, path, bytesMax);
  } catch (error) {
    return { ...nothingChecked, path, problems: [problemOf(path, error)] };
  } finally {
    await snapshot?.close();
  }
}
