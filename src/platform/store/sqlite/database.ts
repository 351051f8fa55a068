// One SQLite file and the batches that are done to it. Blocks: lives on a thread of its own.
//
// Made by worker.ts. A batch's reads come first, then all its transactions in one commit: one
// wait for the disk for everything that came while the last one was under way. Transactions of several
// statements have savepoints, so that one which fails takes no other with it.

import Database from "better-sqlite3";
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
import { inUseCode } from "./failure.ts";

export interface SqliteOptions {
  readonly path: string;
  /** How long to wait for another process that has the file locked. */
  readonly busyMs: number;
  /** Of the file, in pages; tests fill a disk with it. */
  readonly pagesMax?: number;
  /** A file that this process alone may hold, for its life; absent: many may use the database. */
  readonly lockPath?: string;
}

/** 16 MiB: larger makes pauses for checkpoints rarer and longer, and the file beside grows. */
const checkpointPages = 4096;
const logBytesMax = 64 * 1024 * 1024;

interface Prepared {
  readonly statement: Database.Statement<SqlValue[], Row>;
  /** Place in the parameters of each "?" of the text; null: in order. */
  readonly order: readonly number[] | null;
}

export function failureOf(error: unknown): Failure {
  const code =
    error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
  return { code, message: error instanceof Error ? error.message : String(error) };
}

/** Held until the process ends, however it ends: the kernel's lock of a file, by SQLite's means. */
function holdLock(path: string): Database.Database {
  const lock = new Database(path, { timeout: 0 });
  try {
    lock.exec("BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock.close();
    if (!failureOf(error).code.startsWith("SQLITE_BUSY")) throw error;
    throw Object.assign(new Error("another process has it"), { code: inUseCode });
  }
}

/** SQLite takes $1 for a name and wants names bound by name; with ? values are bound by place. */
export function withPlaces(sql: string): { text: string; order: number[] | null } {
  const order: number[] = [];
  const text = sql.replaceAll(/\$(\d+)/g, (_match, number: string) => {
    order.push(Number(number) - 1);
    return "?";
  });
  return { text, order: order.every((place, i) => place === i) ? null : order };
}

export class SqliteDatabase {
  readonly #database: Database.Database;
  readonly #lock: Database.Database | undefined;
  readonly #texts: string[] = [];
  readonly #prepared = new Map<number, Prepared>();
  readonly #begin: Database.Statement;
  readonly #commit: Database.Statement;
  readonly #savepoint: Database.Statement;
  readonly #release: Database.Statement;
  #isFull = true;

  /** Throws what SQLite throws. */
  constructor({ path, busyMs, pagesMax, lockPath }: SqliteOptions) {
    this.#lock = lockPath === undefined ? undefined : holdLock(lockPath);
    const database = new Database(path, { timeout: busyMs });
    this.#database = database;
    try {
      database.defaultSafeIntegers(true);
      const mode = database.pragma("journal_mode = WAL", { simple: true });
      if (mode !== "wal") {
        const got = quote(mode);
        throw new Error(`expected a file system that can hold a write-ahead log, got mode ${got}`);
      }
      database.pragma("foreign_keys = ON");
      database.pragma("synchronous = FULL");
      database.pragma("temp_store = MEMORY"); // savepoints keep old pages there
      database.pragma("trusted_schema = OFF");
      database.pragma(`wal_autocheckpoint = ${checkpointPages}`);
      database.pragma(`journal_size_limit = ${logBytesMax}`);
      if (pagesMax !== undefined) database.pragma(`max_page_count = ${pagesMax}`);
      this.#begin = database.prepare("BEGIN IMMEDIATE");
      this.#commit = database.prepare("COMMIT");
      this.#savepoint = database.prepare("SAVEPOINT one");
      this.#release = database.prepare("RELEASE one");
    } catch (error) {
      database.close();
      this.#lock?.close();
      throw error;
    }
  }

  /** Never throws: what fails is in the result. */
  run(batch: Batch): BatchResult {
    for (const text of batch.texts) this.#texts.push(text);
    const items = decodeBatch(batch);
    const reads = items.filter(({ isRead }) => isRead).map((item) => this.#read(item));
    const transactions = items.filter(({ isRead }) => !isRead);
    const writes = transactions.length > 0 ? this.#write(transactions, batch.isDurable) : [];
    return { reads, writes, foreignVersion: this.foreignVersion() };
  }

  /** A number that another connection's commits change, and this one's do not. */
  foreignVersion(): number {
    try {
      return Number(this.#database.pragma("data_version", { simple: true }));
    } catch {
      return -1; // the batch's own results say what is wrong
    }
  }

  /** Brings what is in the log into the file, as far as no other process reads it. */
  close(): void {
    try {
      this.#database.pragma("wal_checkpoint(PASSIVE)");
    } finally {
      this.#database.close();
      this.#lock?.close();
    }
  }

  #read({ statements }: DecodedItem): ReadResult {
    try {
      const [first] = statements;
      if (!first) return [];
      const { statement, order } = this.#prepare(first.text);
      return statement.all(...placed(first.params, order));
    } catch (error) {
      return failureOf(error);
    }
  }

  #write(transactions: readonly DecodedItem[], isDurable: boolean): WriteResult[] {
    try {
      this.#synchronize(isDurable);
      this.#begin.run();
      // One statement is all or nothing by itself.
      const results = transactions.map(({ statements }) =>
        transactions.length === 1 || statements.length === 1
          ? this.#runAll(statements)
          : this.#runInSavepoint(statements),
      );
      const [only] = results;
      if (results.length === 1 && only && !isDone(only)) this.#database.exec("ROLLBACK");
      else this.#commit.run();
      return results;
    } catch (error) {
      const failure = failureOf(error);
      try {
        if (this.#database.inTransaction) this.#database.exec("ROLLBACK");
      } catch {
        // the failure that is told is the first one
      }
      return transactions.map(() => failure);
    }
  }

  /** Without FULL a commit is with the kernel, not on the disk; a later FULL one takes it along. */
  #synchronize(isDurable: boolean): void {
    if (this.#isFull === isDurable) return;
    this.#database.pragma(`synchronous = ${isDurable ? "FULL" : "NORMAL"}`);
    this.#isFull = isDurable;
  }

  #runInSavepoint(statements: readonly DecodedStatement[]): WriteResult {
    this.#savepoint.run();
    const result = this.#runAll(statements);
    if (!isDone(result)) this.#database.exec("ROLLBACK TO one");
    this.#release.run();
    return result;
  }

  /** Throws when the failure took the whole commit with it (disk full, device failed). */
  #runAll(statements: readonly DecodedStatement[]): WriteResult {
    const changes: number[] = [];
    try {
      for (const { text, params, mustChange } of statements) {
        const { statement, order } = this.#prepare(text);
        const changed = statement.run(...placed(params, order)).changes;
        if (mustChange && changed === 0) return [...changes, -1];
        changes.push(changed);
      }
      return changes;
    } catch (error) {
      if (!this.#database.inTransaction) throw error;
      return failureOf(error);
    }
  }

  #prepare(number: number): Prepared {
    const known = this.#prepared.get(number);
    if (known) return known;
    const { text, order } = withPlaces(this.#texts[number] ?? "");
    const statement = this.#database.prepare<SqlValue[], Row>(text);
    if (statement.reader) statement.raw(true);
    const prepared = { statement, order };
    this.#prepared.set(number, prepared);
    return prepared;
  }
}

function placed(params: SqlValue[], order: readonly number[] | null): SqlValue[] {
  return order ? order.map((place) => params[place] ?? null) : params;
}

function isDone(result: WriteResult): result is readonly number[] {
  return !("code" in result) && result.at(-1) !== -1;
}
