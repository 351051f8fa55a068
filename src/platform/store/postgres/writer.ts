// Transactions on one PostgreSQL connection: many in one commit, with an exact result for each.
//
// Created by driver.ts. A connection may be lost between COMMIT and its answer. Each commit therefore
// writes its number into this writer's row, and the next connection reads there whether it succeeded. A
// caller never gets "committed" for a commit that failed, nor "failed" for one that may have succeeded.

import { randomBytes } from "node:crypto";
import type { Logger } from "../../../core/log.ts";
import type { Failure, WriteResult } from "../batch.ts";
import { integerAt, type Statement } from "../driver.ts";
import { firstPauseMs, isFailure, longerPauseMs, PostgresConnection } from "./connection.ts";
import {
  failureOf,
  isConflict,
  isLost,
  lostCode,
  PostgresError,
  storeFailure,
  unknownCode,
} from "./failure.ts";
import { channel } from "./news.ts";
import { type ChangeNotification, payloadsOf } from "./payloads.ts";
import type { PostgresAddress } from "./servers.ts";
import { isDone, runGroup } from "./transactions.ts";

const marksQuery = "SELECT CAST(to_regclass('commit_marks') IS NOT NULL AS integer)";
const makeMarks = `CREATE TABLE commit_marks (
  writer text PRIMARY KEY, number bigint NOT NULL, at_ms bigint NOT NULL)`;
const forgetMarks = "DELETE FROM commit_marks WHERE at_ms < $1";
const addMark = `INSERT INTO commit_marks (writer, number, at_ms) VALUES ($1, 0, $2)
  ON CONFLICT (writer) DO NOTHING`;
const mark = "UPDATE commit_marks SET number = $2, at_ms = $3 WHERE writer = $1";
// Waits for a transaction that is still running.
const readMark = "SELECT number FROM commit_marks WHERE writer = $1 FOR UPDATE";
const removeMark = "DELETE FROM commit_marks WHERE writer = $1";
/** The rest of a lost connection may hold rows or locks for a long time. */
export const endFormer = `SELECT CAST(COUNT(pg_terminate_backend(pid, 1000)) AS bigint) FROM pg_stat_activity
  WHERE application_name = $1 AND pid <> pg_backend_pid()`;
const notify = `SELECT 1 FROM pg_notify('${channel}', $1)`;

const markRetentionMs = 30n * 24n * 3_600_000n;
const msNs = 1_000_000n;
const recoveryRetryMs = 1000;
const conflictsMax = 10;
const noAnswer: Failure = { code: lostCode, message: "no answer" };

export interface WriterTimes {
  /** Wait for the server's return; then waiting calls are rejected. */
  readonly waitMs: number;
  /** Wait for the result of a commit whose connection was lost. */
  readonly outcomeMs: number;
}

interface WriterOptions extends PostgresAddress {
  readonly log: Logger;
  readonly writing: WriterTimes;
  /** A commit that was reported as unknown turned out to be committed. */
  readonly onLateCommit: () => void;
  /** From 0 to below 1. */
  readonly random: () => number;
}

export interface Transaction extends ChangeNotification {
  readonly statements: readonly Statement[];
}

/** Schema changes have no time limit. */
function isSchemaChange({ sql }: Statement): boolean {
  return /^\s*(CREATE|ALTER|DROP)\b/i.test(sql);
}

/**
 * The result of one attempt. `outcome`: the results if the commit whose answer was lost succeeded.
 */
type Attempt = WriteResult[] | (Failure & { readonly outcome?: WriteResult[] });

export class PostgresWriter {
  readonly id = randomBytes(8).toString("hex");
  readonly #options: WriterOptions;
  readonly #name: string;
  readonly #closing = new AbortController();
  #connection: PostgresConnection | null = null;
  #connecting: Promise<PostgresConnection> | null = null;
  #isRecovering = false;
  #wasRefused = false;
  /** Number of the last commit that was tried. */
  #number = 0n;
  /** Number of the commit with an unknown result. */
  #unknown: bigint | null = null;
  /** Its callers have been notified. */
  #wasToldUnknown = false;
  /** The number of the last unknown commit. */
  #isKept = false;

  /** Throws PostgresError, or ShredwayError "store_failed" without the package. */
  static async open(options: WriterOptions): Promise<PostgresWriter> {
    const writer = new PostgresWriter(options);
    await writer.#connect();
    return writer;
  }

  private constructor(options: WriterOptions) {
    this.#options = options;
    this.#name = options.servers.name;
  }

  /**
   * One commit, or several after a conflict. Waits for an unreachable server until `endNs` of the
   * monotonic clock. Never rejects.
   */
  async write(transactions: readonly Transaction[], endNs: bigint): Promise<WriteResult[]> {
    const together = await this.#commit(transactions, endNs);
    if (together !== "conflict") return together;
    const results: WriteResult[] = [];
    for (const one of transactions) results.push(...(await this.#commitAlone(one, endNs)));
    return results;
  }

  /** All earlier calls have ended. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#connecting?.catch(() => {});
    const connection = this.#connection;
    if (!connection) return;
    if (this.#unknown === null) await connection.run([{ sql: removeMark, params: [this.id] }]);
    await connection.close();
  }

  async #commitAlone(transaction: Transaction, endNs: bigint): Promise<WriteResult[]> {
    for (let tries = 1; ; tries++) {
      const results = await this.#commit([transaction], endNs);
      if (results !== "conflict") return results;
      if (tries === conflictsMax) return [{ code: "40001", message: `${tries} times` }];
      const { clock, random } = this.#options;
      await clock.sleep(random() * firstPauseMs * tries);
    }
  }

  /** Repeats on a new connection if the last one was lost and none of it was committed. */
  async #commit(
    transactions: readonly Transaction[],
    endNs: bigint,
  ): Promise<WriteResult[] | "conflict"> {
    const refuse = (failure: Failure): WriteResult[] => transactions.map(() => failure);
    for (;;) {
      const connection = await this.#connected(endNs);
      if (!(connection instanceof PostgresConnection)) return refuse(connection);
      const attempt = await this.#try(connection, transactions);
      if (Array.isArray(attempt)) return attempt;
      if (!isLost(attempt)) {
        await connection.run([{ sql: "ROLLBACK" }]);
        return isConflict(attempt) ? "conflict" : refuse(attempt);
      }
      connection.destroy(attempt.message);
      if (attempt.outcome) {
        const isPersisted = await this.#findOut();
        if (isPersisted === null) return refuse({ code: unknownCode, message: attempt.message });
        if (isPersisted) return attempt.outcome;
      }
      if (this.#options.clock.monotonicNs() > endNs) return refuse(attempt);
    }
  }

  async #try(
    connection: PostgresConnection,
    transactions: readonly Transaction[],
  ): Promise<Attempt> {
    const isDurable = transactions.some((one) => one.isDurable);
    const isLong = transactions.some(({ statements }) => statements.some(isSchemaChange));
    const number = ++this.#number;
    const settings = [
      ...(isLong ? ["statement_timeout = 0", "lock_timeout = 0"] : []),
      ...(isDurable ? [] : ["synchronous_commit = off"]),
    ];
    const begin: Statement[] = [
      { sql: "BEGIN ISOLATION LEVEL READ COMMITTED", params: [] },
      ...settings.map((setting) => ({ sql: `SET LOCAL ${setting}`, params: [] })),
      { sql: mark, params: [this.id, number, this.#nowMs()], mustChange: true },
    ];
    const outcome = await runGroup(connection, begin, transactions, isLong);
    if (!Array.isArray(outcome)) return outcome;
    // Other processes are notified of committed changes only, in commit order.
    const done = transactions.filter((_, i) => isDone(outcome[i] ?? noAnswer));
    const notifications = payloadsOf(this.id, done).map((text) => ({
      sql: notify,
      params: [text],
    }));
    this.#unknown = number;
    const results = await connection.run([...notifications, { sql: "COMMIT" }]);
    const committed = results.at(-1) ?? noAnswer;
    // A server with a disk failure reports it and ends; after its restart, its data is correct.
    if (isFailure(committed) && !isConflict(committed)) {
      return { code: lostCode, message: committed.message, outcome };
    }
    this.#unknown = null;
    if (isFailure(committed)) return committed;
    if (committed.command === "COMMIT") return outcome;
    const failed = results.find(isFailure);
    return failed ?? { code: "", message: `expected a commit, got ${committed.command}` };
  }

  /** Whether the commit of unknown result succeeded; null: still unknown. */
  async #findOut(): Promise<boolean | null> {
    const { writing, log } = this.#options;
    const connection = await this.#connected(this.#in(writing.outcomeMs));
    if (connection instanceof PostgresConnection) return this.#isKept;
    this.#wasToldUnknown = true;
    log.error(storeFailure(this.#name, { ...connection, code: unknownCode }).message);
    void this.#recover();
    return null;
  }

  /** The error of calls until a connection exists again. */
  async #recover(): Promise<void> {
    if (this.#isRecovering) return;
    this.#isRecovering = true;
    while (!this.#closing.signal.aborted) {
      if ((await this.#connected(this.#in(recoveryRetryMs))) instanceof PostgresConnection) break;
      await this.#options.clock.sleep(recoveryRetryMs, this.#closing.signal);
    }
    this.#isRecovering = false;
  }

  #in(ms: number): bigint {
    return this.#options.clock.monotonicNs() + BigInt(ms) * msNs;
  }

  #nowMs(): bigint {
    return this.#options.clock.nowNs() / msNs;
  }

  /** A working connection, or the reason for its absence. Makes at least one attempt. */
  async #connected(endNs: bigint): Promise<PostgresConnection | Failure> {
    const { clock, log } = this.#options;
    for (let pauseMs = firstPauseMs; ; pauseMs = longerPauseMs(pauseMs)) {
      try {
        return await this.#connect();
      } catch (error) {
        const failure = failureOf(error);
        if (!this.#wasRefused) log.warn(storeFailure(this.#name, failure).message);
        this.#wasRefused = true;
        if (this.#in(pauseMs) > endNs || this.#closing.signal.aborted) return failure;
        await clock.sleep(pauseMs, this.#closing.signal);
      }
    }
  }

  #connect(): Promise<PostgresConnection> {
    const known = this.#connection;
    if (known && !known.isLost) return Promise.resolve(known);
    this.#connecting ??= this.#open().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  async #open(): Promise<PostgresConnection> {
    const { servers, log } = this.#options;
    const purpose = `shredway ${this.id}`;
    const connection = await servers.open(purpose);
    try {
      await connection.query(endFormer, [purpose]);
      await this.#settleUnknown(connection);
      await this.#makeMarks(connection);
    } catch (error) {
      connection.destroy("not set up");
      throw error;
    }
    if (this.#wasRefused) log.info(`${this.#name}: the database responds again`);
    this.#wasRefused = false;
    this.#connection = connection;
    return connection;
  }

  async #settleUnknown(connection: PostgresConnection): Promise<void> {
    const number = this.#unknown;
    if (number === null) return;
    const [row] = await connection.query(readMark, [this.id]);
    this.#isKept = row !== undefined && integerAt(row, 0) === number;
    this.#unknown = null;
    if (this.#wasToldUnknown && this.#isKept) this.#options.onLateCommit();
    this.#wasToldUnknown = false;
  }

  async #makeMarks(connection: PostgresConnection): Promise<void> {
    const isThere = async (): Promise<boolean> => {
      const [row = []] = await connection.query(marksQuery);
      return integerAt(row, 0) === 1n;
    };
    if (!(await isThere())) {
      const [marks = noAnswer] = await connection.run([{ sql: makeMarks }], true);
      // Another process may have been faster.
      if (isFailure(marks) && !(await isThere())) throw new PostgresError(marks);
    }
    const nowMs = this.#nowMs();
    await connection.query(forgetMarks, [nowMs - markRetentionMs]);
    await connection.query(addMark, [this.id, nowMs]);
  }
}
