// One SQLite file and the execution of batches on it. Blocks, so it runs on its own thread.
//
// Created by worker.ts. A batch runs its reads first, then all its transactions in one commit, so one
// disk sync covers everything that arrived during the previous commit. Transactions with several
// statements have savepoints, so a failing one does not affect the others.

import {
  DatabaseSync,
  type DatabaseSyncInstance,
  type StatementSyncInstance,
} from "@photostructure/sqlite";
import { quote } from "../../../core/errors.ts";
import {
  type Batch,
  type BatchResult,
  type DecodedItem,
  type DecodedStatement,
  decodeBatch,
  type Failure,
  type ReadResult,
  type WriteResult,
} from "../batch.ts";
import type { Row, SqlValue } from "../driver.ts";
import { plainText, storedText } from "../stored-text.ts";
import { CommitCount, checkCommits } from "./commit-count.ts";
import { inUseCode } from "./failure.ts";
import { OpenFiles } from "./open-files.ts";

export interface SqliteOptions {
  readonly path: string;
  /** Time to wait for a lock of another process on the file. */
  readonly busyMs: number;
  /** Size limit of the file in pages; tests use it to fill a disk. */
  readonly pagesMax?: number;
  /**
   * A file that only this process may hold while it runs; absent: several processes may use the
   * database.
   */
  readonly lockPath?: string;
}

/** 16 MiB. A larger limit makes checkpoint pauses rarer and longer, and the WAL file larger. */
const checkpointPages = 4096;
const logBytesMax = 64 * 1024 * 1024;
/**
 * Signatures are in no order, so each row of a submission changes another page of an index. By default, SQLite
 * keeps 2 MiB of pages: with 150,000 submissions, each row then read two more pages.
 */
const cacheKiB = 32 * 1024;

/** Rows as arrays, and integers as bigint: nothing is rounded. */
export const asStored = { returnArrays: true, readBigInts: true };

interface SqliteError {
  readonly code: unknown;
  readonly sqliteCodeName: unknown;
}

interface Prepared {
  readonly statement: StatementSyncInstance;
  /** Index of the parameter for each "?" of the text; null: in order. */
  readonly order: readonly number[] | null;
}

/** The name of SQLite's code ("SQLITE_BUSY") if the error has one, otherwise the error's own code. */
export function failureOf(error: unknown): Failure {
  if (!(error instanceof Error)) return { code: "", message: String(error) };
  const { message, code, sqliteCodeName = code }: Partial<SqliteError> & Error = error;
  return { code: typeof sqliteCodeName === "string" ? sqliteCodeName : "", message };
}

/** The first value of the row with which SQLite answers. */
function firstValue(statement: StatementSyncInstance): unknown {
  const row: readonly unknown[] | undefined = statement.get();
  return row?.[0];
}

/** Held until the process ends in any way: a kernel lock on a file, through SQLite. */
function holdLock(path: string): DatabaseSyncInstance {
  const lock = new DatabaseSync(path, { timeout: 0 });
  try {
    lock.exec("BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock.close();
    if (!failureOf(error).code.startsWith("SQLITE_BUSY")) throw error;
    throw Object.assign(new Error("another process uses it"), { code: inUseCode });
  }
}

/** SQLite treats $1 as a name and requires binding by name; ? binds by position. */
export function withPlaceholders(sql: string): { text: string; order: number[] | null } {
  const order: number[] = [];
  const text = sql.replaceAll(/\$(\d+)/g, (_match, number: string) => {
    order.push(Number(number) - 1);
    return "?";
  });
  return { text, order: order.every((place, i) => place === i) ? null : order };
}

/** The rows with their texts as they were before storing. */
export function plainRows(rows: SqlValue[][]): Row[] {
  for (const row of rows) {
    for (const [i, value] of row.entries())
      if (typeof value === "string") row[i] = plainText(value);
  }
  return rows;
}

export class SqliteDatabase {
  readonly #database: DatabaseSyncInstance;
  readonly #lock: DatabaseSyncInstance | undefined;
  readonly #texts: string[] = [];
  readonly #prepared = new Map<number, Prepared>();
  readonly #begin: StatementSyncInstance;
  readonly #commit: StatementSyncInstance;
  readonly #savepoint: StatementSyncInstance;
  readonly #release: StatementSyncInstance;
  readonly #version: StatementSyncInstance;
  readonly #commits: CommitCount;
  readonly #files: OpenFiles;
  #isFull = true;

  /** Throws the errors of SQLite. */
  constructor({ path, busyMs, pagesMax, lockPath }: SqliteOptions) {
    this.#lock = lockPath === undefined ? undefined : holdLock(lockPath);
    let database: DatabaseSyncInstance | undefined;
    try {
      checkCommits(path, busyMs);
      database = new DatabaseSync(path, { timeout: busyMs, ...asStored });
      this.#database = database;
      const mode = firstValue(database.prepare("PRAGMA journal_mode = WAL"));
      if (mode !== "wal") {
        const got = quote(mode);
        throw new Error(`expected a file system that can hold a write-ahead log, got mode ${got}`);
      }
      database.exec("PRAGMA foreign_keys = ON");
      database.exec("PRAGMA synchronous = FULL");
      database.exec("PRAGMA temp_store = MEMORY"); // savepoints store old pages there
      database.exec("PRAGMA trusted_schema = OFF");
      database.exec(`PRAGMA wal_autocheckpoint = ${checkpointPages}`);
      database.exec(`PRAGMA journal_size_limit = ${logBytesMax}`);
      database.exec(`PRAGMA cache_size = -${cacheKiB}`); // negative: in KiB
      if (pagesMax !== undefined) database.exec(`PRAGMA max_page_count = ${pagesMax}`);
      this.#begin = database.prepare("BEGIN IMMEDIATE");
      this.#commit = database.prepare("COMMIT");
      this.#savepoint = database.prepare("SAVEPOINT one");
      this.#release = database.prepare("RELEASE one");
      this.#version = database.prepare("PRAGMA data_version");
      this.#commits = new CommitCount(database, path);
      this.#files = new OpenFiles(path);
    } catch (error) {
      database?.close();
      this.#lock?.close();
      throw error;
    }
  }

  /** Never throws: a failure is part of the result. */
  run(batch: Batch): BatchResult {
    for (const text of batch.texts) this.#texts.push(text);
    const items = decodeBatch(batch);
    const reads = items.filter(({ isRead }) => isRead).map((item) => this.#read(item));
    const transactions = items.filter(({ isRead }) => !isRead);
    const writes = transactions.length > 0 ? this.#write(transactions, batch.isDurable) : [];
    return { reads, writes, foreignVersion: this.foreignVersion() };
  }

  /** A number that changes with commits of other connections, but not of this one. */
  foreignVersion(): number {
    try {
      return Number(firstValue(this.#version));
    } catch {
      return -1; // the batch's own results contain the error
    }
  }

  /** Moves the log into the file, as far as no other process reads it. */
  close(): void {
    try {
      this.#database.exec("PRAGMA wal_checkpoint(PASSIVE)");
    } finally {
      this.#database.close();
      this.#commits.close();
      this.#lock?.close();
    }
  }

  #read({ statements }: DecodedItem): ReadResult {
    try {
      const [first] = statements;
      if (!first) return [];
      const { statement, order } = this.#prepare(first.text);
      return plainRows(statement.all(...storedParameters(first.params, order)));
    } catch (error) {
      return failureOf(error);
    }
  }

  #write(transactions: readonly DecodedItem[], isDurable: boolean): WriteResult[] {
    try {
      this.#files.check();
      this.#synchronize(isDurable);
      this.#begin.run();
      // A single statement is atomic without a savepoint.
      const results = transactions.map(({ statements }) =>
        transactions.length === 1 || statements.length === 1
          ? this.#runAll(statements)
          : this.#runInSavepoint(statements),
      );
      const [only] = results;
      if (results.length === 1 && only && !isDone(only)) {
        this.#database.exec("ROLLBACK");
        return results;
      }
      const count = this.#commits.increase();
      this.#commit.run();
      if (isDurable) this.#commits.record(count);
      return results;
    } catch (error) {
      const failure = failureOf(error);
      try {
        if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      } catch {
        // reports the first failure
      }
      return transactions.map(() => failure);
    }
  }

  /** Without FULL, a commit is in the kernel, not on disk; a later FULL commit includes it. */
  #synchronize(isDurable: boolean): void {
    if (this.#isFull === isDurable) return;
    this.#database.exec(`PRAGMA synchronous = ${isDurable ? "FULL" : "NORMAL"}`);
    this.#isFull = isDurable;
  }

  #runInSavepoint(statements: readonly DecodedStatement[]): WriteResult {
    this.#savepoint.run();
    const result = this.#runAll(statements);
    if (!isDone(result)) this.#database.exec("ROLLBACK TO one");
    this.#release.run();
    return result;
  }

  /** Throws if the failure affected the whole commit (disk full, device failed). */
  #runAll(statements: readonly DecodedStatement[]): WriteResult {
    const changes: number[] = [];
    try {
      for (const { text, params, mustChange } of statements) {
        const { statement, order } = this.#prepare(text);
        // A bigint, as every integer of this database; the package's type says number.
        const done: { readonly changes: number | bigint } = statement.run(
          ...storedParameters(params, order),
        );
        const changed = Number(done.changes);
        if (mustChange && changed === 0) return [...changes, -1];
        changes.push(changed);
      }
      return changes;
    } catch (error) {
      if (!this.#database.isTransaction) throw error;
      return failureOf(error);
    }
  }

  #prepare(number: number): Prepared {
    const known = this.#prepared.get(number);
    if (known) return known;
    const { text, order } = withPlaceholders(this.#texts[number] ?? "");
    const prepared = { statement: this.#database.prepare(text), order };
    this.#prepared.set(number, prepared);
    return prepared;
  }
}

/** The parameters as SQLite stores them, in the order of the question marks. */
export function storedParameters(
  params: readonly SqlValue[],
  order: readonly number[] | null,
): SqlValue[] {
  const ordered = order ? order.map((place) => params[place] ?? null) : params;
  return ordered.map((value) => (typeof value === "string" ? storedText(value) : value));
}

function isDone(result: WriteResult): result is readonly number[] {
  return !("code" in result) && result.at(-1) !== -1;
}
