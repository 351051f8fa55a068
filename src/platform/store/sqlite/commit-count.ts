// Commit count: detects an SQLite file that lost acknowledged changes, for example by a damaged log.
//
// SQLite ignores the rest of a damaged write-ahead log, and the whole log of an empty file, without an
// error. Each commit therefore increases a number in the database (PRAGMA user_version). After a commit
// has reached the disk, the number is also written to a file beside the database. That file is never
// ahead of an undamaged database, whenever the process or the machine stops. The number wraps at 2^31.

import {
  closeSync,
  constants,
  fchownSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import {
  DatabaseSync,
  type DatabaseSyncInstance,
  type StatementSyncInstance,
} from "@photostructure/sqlite";
import { damagedCode } from "./failure.ts";

const wrap = 2 ** 31;
const digits = 10;

function fileOf(databasePath: string): string {
  return `${databasePath}-commits`;
}

/** For a new database. */
export function forgetCommits(databasePath: string): void {
  rmSync(fileOf(databasePath), { force: true });
}

/** null: no file, or one that a loss of power left without its content. */
function recordedCount(databasePath: string): number | null {
  try {
    const [, text] = /^commits (\d{10})\n$/.exec(readFileSync(fileOf(databasePath), "utf8")) ?? [];
    return text === undefined ? null : Number(text);
  } catch {
    return null;
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function damaged(text: string): Error {
  return Object.assign(new Error(text), { code: damagedCode });
}

/**
 * The count in the file and its log. The value comes through a function, because a prepared statement
 * would keep the connection open until the garbage collection.
 */
function countAt(path: string, busyMs: number): number {
  const database = new DatabaseSync(path, { timeout: busyMs, readOnly: true });
  let count = 0;
  try {
    database.function("report", (value: unknown) => {
      count = Number(value);
      return 0;
    });
    database.exec("SELECT report(user_version) FROM pragma_user_version");
    return count;
  } finally {
    database.close();
  }
}

/**
 * Throws if the database lost commits that had reached the disk. Changes nothing, so that the damaged
 * log stays as it is.
 */
export function checkCommits(path: string, busyMs: number): void {
  // In this order: a process that creates the database writes the file before the log.
  const logSize = sizeOf(`${path}-wal`);
  if (logSize > 0 && sizeOf(path) === 0) {
    throw damaged(
      `the file has 0 bytes beside a write-ahead log of ${logSize} bytes; expected the database of that ` +
        `log. Restore a backup (docs/backup.md), or move ${path}-wal away to start without data`,
    );
  }
  const recorded = recordedCount(path); // before the database, which only grows
  if (recorded === null) return;
  const count = countAt(path, busyMs);
  const missing = (recorded - count + wrap) % wrap;
  if (missing === 0 || missing > wrap / 2) return;
  throw damaged(
    `${missing} acknowledged commits are missing: the file and its log contain ${count}, expected at ` +
      `least ${recorded}. Restore a backup (docs/backup.md). To continue with what is left, or after ` +
      `restoring a backup over the file, delete ${fileOf(path)}`,
  );
}

/** The number in an open database, and its file. */
export class CommitCount {
  readonly #database: DatabaseSyncInstance;
  readonly #current: StatementSyncInstance;
  /** null: this user may not write it, so losses of this connection's commits are not detected. */
  readonly #file: number | null;

  constructor(database: DatabaseSyncInstance, path: string) {
    this.#database = database;
    this.#current = database.prepare("PRAGMA user_version");
    this.#file = openRecord(path);
  }

  /** Increases the number in the current transaction. Returns it. */
  increase(): number {
    const row: readonly unknown[] | undefined = this.#current.get();
    const next = (Number(row?.[0]) + 1) % wrap;
    this.#database.exec(`PRAGMA user_version = ${next}`);
    return next;
  }

  /** `count`: of a commit that is on disk. Never throws: an older number is also correct. */
  record(count: number): void {
    if (this.#file === null) return;
    try {
      writeSync(this.#file, `commits ${String(count).padStart(digits, "0")}\n`, 0);
    } catch {
      // The next commit reports a disk that fails.
    }
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
  }
}

function openRecord(path: string): number | null {
  try {
    const { uid, gid } = statSync(path);
    // Not through a link: the service's user could make root change any file.
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW;
    const file = openSync(fileOf(path), flags, 0o600);
    // A command that root runs must not take the file from the service's user.
    if (process.getuid?.() === 0) fchownSync(file, uid, gid);
    return file;
  } catch {
    return null;
  }
}
