// Snapshot: one consistent state of a database, read while other processes change it.
//
// Opened by the commands export and migrate --check, and by store.ts. On SQLite it is a read transaction
// on a separate connection and thread; on PostgreSQL a read-only transaction with one snapshot. It
// blocks no other process, but the database retains the old state while it is open.

import { once } from "node:events";
import { dirname } from "node:path";
import type { Worker } from "node:worker_threads";
import type { Clock } from "../../core/clock.ts";
import { postgresName } from "../../core/configuration/postgres-url.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import type { Failure } from "./batch.ts";
import { hasDatabase } from "./data-folder.ts";
import { integerAt, type Row, type SqlValue } from "./driver.ts";
import { versionOf } from "./migrations.ts";
import { defaultTimes } from "./postgres/connection.ts";
import { failureOf, storeFailure as postgresFailure } from "./postgres/failure.ts";
import { PostgresServers } from "./postgres/servers.ts";
import { storeFailure as sqliteFailure } from "./sqlite/failure.ts";
import type { SnapshotAnswer, SnapshotOptions, SnapshotRequest } from "./sqlite/snapshot-worker.ts";
import { startThread } from "./sqlite/thread.ts";
import { faultOf, keyOf, pageQuery, type Table } from "./transfer/tables.ts";

export interface Snapshot {
  query(sql: string, params: readonly SqlValue[]): Promise<readonly Row[]>;
  close(): Promise<void>;
}

const busyMs = 5000;
/** Rows per read: some hundred kilobytes. */
const pageRows = 1000;

/** A thread with one connection; it answers calls in order. */
class SqliteSnapshot implements Snapshot {
  readonly #path: string;
  readonly #worker: Worker;
  readonly #waiting: ((answer: SnapshotAnswer) => void)[] = [];
  #ended: Failure | undefined;

  /** Throws ShredwayError "store_failed". */
  static async open(options: SnapshotOptions): Promise<SqliteSnapshot> {
    const snapshot = new SqliteSnapshot(options);
    try {
      await snapshot.#answer();
      return snapshot;
    } catch (error) {
      await snapshot.#worker.terminate();
      throw error;
    }
  }

  private constructor(options: SnapshotOptions) {
    this.#path = options.path;
    this.#worker = startThread("snapshot-worker", options);
    this.#worker.on("message", (answer: SnapshotAnswer) => this.#waiting.shift()?.(answer));
    const end = (message: string): void => {
      this.#ended ??= { code: "", message };
      for (const notify of this.#waiting.splice(0)) notify({ failure: this.#ended });
    };
    this.#worker.on("error", (error: unknown) => end(messageOf(error)));
    this.#worker.on("exit", () => end("the thread of the file has ended"));
  }

  async query(sql: string, params: readonly SqlValue[]): Promise<readonly Row[]> {
    const request: SnapshotRequest = { sql, params };
    this.#worker.postMessage(request, []);
    return this.#answer();
  }

  /** Ends the transaction, which closes the file. */
  async close(): Promise<void> {
    if (this.#ended) return;
    const ended = once(this.#worker, "exit");
    this.#worker.postMessage("close", []);
    await ended;
  }

  async #answer(): Promise<readonly Row[]> {
    const answer = await new Promise<SnapshotAnswer>((resolve) => {
      if (this.#ended) resolve({ failure: this.#ended });
      else this.#waiting.push(resolve);
    });
    if ("rows" in answer) return answer.rows;
    throw sqliteFailure(this.#path, answer.failure);
  }
}

/** The file at `path`. Throws ShredwayError "store_failed". */
export async function openSqliteSnapshot(path: string): Promise<Snapshot> {
  if (!hasDatabase(dirname(path))) {
    throw new ShredwayError("store_failed", `${path}: expected a database, got no file`);
  }
  return SqliteSnapshot.open({ path, busyMs });
}

const begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
// The consumer of the rows may be slow.
const patience = "SET LOCAL idle_in_transaction_session_timeout = '10min'";

/** Throws ShredwayError "store_failed". */
export async function openPostgresSnapshot(
  url: string,
  clock: Clock,
  interrupted?: AbortSignal,
): Promise<Snapshot> {
  const failed = (error: unknown) => postgresFailure(postgresName(url), failureOf(error));
  try {
    const servers = new PostgresServers({ url, clock, times: defaultTimes, interrupted });
    const connection = await servers.open("shredway snapshot");
    await connection.query(begin);
    await connection.query(patience);
    const query: Snapshot["query"] = async (sql, params) => {
      try {
        return await connection.query(sql, params);
      } catch (error) {
        throw failed(error);
      }
    };
    return { query, close: () => connection.close() };
  } catch (error) {
    throw error instanceof ShredwayError ? error : failed(error);
  }
}

// SQLite has a list of tables, PostgreSQL a function.
const hasVersionQueries = {
  sqlite: "SELECT COUNT(*) FROM sqlite_master WHERE name = 'schema_version'",
  postgres: "SELECT CAST(COUNT(to_regclass('schema_version')) AS bigint)",
} as const;

/** The version of its schema, 0 without one. It may be a mark (transfer/mark.ts). */
export async function versionIfAny(
  snapshot: Pick<Snapshot, "query">,
  kind: keyof typeof hasVersionQueries,
): Promise<number> {
  const [row = []] = await snapshot.query(hasVersionQueries[kind], []);
  return integerAt(row, 0) === 0n ? 0 : versionOf(snapshot);
}

function checkRow(table: Table, row: Row): void {
  for (const [i, column] of table.columns.entries()) {
    const fault = faultOf(column, row[i] ?? null);
    if (fault === null) continue;
    const key = keyOf(table, row).map((value) =>
      value instanceof Uint8Array ? Buffer.from(value).toString("hex") : String(value),
    );
    const place = `${table.name}, row ${key.join(", ")}, column ${column.name}`;
    throw new ShredwayError("store_failed", `the store: ${place}: ${fault}`);
  }
}

/**
 * All rows of a table in pages. Throws ShredwayError "store_failed", also for a value of another type
 * than its column.
 */
export async function* pagesOf(snapshot: Snapshot, table: Table): AsyncGenerator<readonly Row[]> {
  const first = pageQuery(table, pageRows, false);
  const next = pageQuery(table, pageRows, true);
  let rows = await snapshot.query(first, []);
  for (;;) {
    for (const row of rows) checkRow(table, row);
    const last = rows.at(-1);
    if (!last) return;
    // Read while the previous rows are processed.
    const nextPage = rows.length < pageRows ? null : snapshot.query(next, keyOf(table, last));
    nextPage?.catch(() => {}); // reported where it is awaited
    yield rows;
    if (!nextPage) return;
    rows = await nextPage;
  }
}
