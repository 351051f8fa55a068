// One connection to PostgreSQL: sends statements in one batch and returns their results.
//
// Created by servers.ts for writers, readers, listeners and lock holders. Only this file uses pg, which
// is an optional package. A server that does not answer in time counts as lost, and so does a read-only
// one: the connection is closed, and waiting calls get an error.

import type { Duplex } from "node:stream";
import type { Client } from "pg";
import type { Clock } from "../../../core/clock.ts";
import { messageOf, quote, ShredwayError } from "../../../core/errors.ts";
import type { Failure } from "../batch.ts";
import type { Row, SqlValue } from "../driver.ts";
import { failureOf, isLost, isOutdated, lostCode, PostgresError, readOnlyCode } from "./failure.ts";
import { parameterOf, readerOf } from "./values.ts";

/** The oldest version that supports the statements' dialect. */
const versionMin = 150_000;
/** The program's texts are few and fixed; more than these are not prepared. */
const preparedMax = 500;

export interface PostgresTimes {
  /** Time to connect, authenticate and set up. */
  readonly connectMs: number;
  /**
   * Time for one statement; then the server cancels it. One second later, the connection is closed.
   */
  readonly answerMs: number;
  /** Time to wait for a lock of another process. */
  readonly lockMs: number;
}

/** Pause before a lost connection, or a call that needs one, is retried. */
export const firstPauseMs = 50;
const pauseMsMax = 1000;

/** The pause after one of `pauseMs`. */
export function longerPauseMs(pauseMs: number): number {
  return Math.min(pauseMsMax, pauseMs * 2);
}

export const defaultTimes: PostgresTimes = { connectMs: 5000, answerMs: 10_000, lockMs: 5000 };
const graceMs = 1000;
/** After this time without a message from its client, the server rolls a transaction back. */
const idleInTransactionMs = 8000;

interface ConnectionOptions {
  /** Address of one server. */
  readonly url: string;
  readonly clock: Clock;
  readonly times: PostgresTimes;
  /** Default: a socket of the kernel. */
  readonly openStream?: (() => Duplex) | undefined;
  /** Its abort closes the connection at once. */
  readonly interrupted?: AbortSignal | undefined;
}

interface Command {
  readonly sql: string;
  readonly params?: readonly SqlValue[];
}

interface Done {
  readonly rows: readonly Row[];
  /** Number of changed rows. */
  readonly changes: number;
  /** The command tag of the server, such as "COMMIT". */
  readonly command: string;
}

export type Result = Done | Failure;

export function isFailure(result: Result): result is Failure {
  return "code" in result;
}

let loaded: Promise<typeof import("pg")> | undefined;

/** Loads the package once, and tries again after a failure. Throws ShredwayError "store_failed" without it. */
export async function loadPostgresClient(): Promise<typeof import("pg")> {
  try {
    loaded ??= import("pg");
    return await loaded;
  } catch (cause) {
    loaded = undefined;
    throw new ShredwayError(
      "store_failed",
      `data.postgres: expected the optional package pg, got: ${messageOf(cause)}; install it with: npm install --include=optional`,
      { cause },
    );
  }
}

// A durable commit is never weaker than the server's disk. The server notices a killed client within a
// second and a dead machine within a minute, and then releases its locks.
const setUp = `SELECT current_setting('server_version_num')::bigint, current_setting('server_encoding'),
  current_setting('transaction_read_only'),
  set_config('client_encoding', 'UTF8', false), set_config('bytea_output', 'hex', false),
  set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false),
  set_config('idle_in_transaction_session_timeout', $3, false),
  set_config('tcp_keepalives_idle', '30', false), set_config('tcp_keepalives_interval', '10', false),
  set_config('tcp_keepalives_count', '3', false),
  set_config('client_connection_check_interval', '1000', false),
  set_config('synchronous_commit', CASE current_setting('synchronous_commit')
    WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)`;

export class PostgresConnection {
  readonly #client: Client;
  readonly #clock: Clock;
  readonly #times: PostgresTimes;
  /** Names of prepared statements, by their text. */
  readonly #names = new Map<string, string>();
  #prepared = 0;
  #lost: Failure | undefined;
  readonly #interrupted: AbortSignal | undefined;
  readonly #interrupt = (): void => this.destroy("interrupted");
  #isClosing = false;
  #underWay = 0;
  /** Called once if the connection ends without `close`. */
  onLost: () => void = () => {};
  onNotification: (payload: string) => void = () => {};

  /**
   * `purpose`: the connection's name in the server's lists. Throws PostgresError; ShredwayError
   * "store_failed" without the package.
   */
  static async open(options: ConnectionOptions, purpose: string): Promise<PostgresConnection> {
    const { url, openStream } = options;
    const pg = await loadPostgresClient();
    let connection: PostgresConnection | undefined;
    try {
      const client = new pg.default.Client({
        connectionString: url,
        application_name: purpose,
        keepAlive: true,
        pipeline: true,
        ...(openStream && { stream: openStream }),
      });
      connection = new PostgresConnection(client, options);
      await connection.#connect();
      return connection;
    } catch (error) {
      connection?.destroy("not opened");
      throw new PostgresError(failureOf(error));
    }
  }

  private constructor(client: Client, { clock, times, interrupted }: ConnectionOptions) {
    this.#client = client;
    this.#clock = clock;
    this.#times = times;
    client.on("error", (error: unknown) => this.#lose(failureOf(error)));
    client.on("end", () => this.#lose({ code: lostCode, message: "the connection was closed" }));
    this.#interrupted = interrupted;
    interrupted?.addEventListener("abort", this.#interrupt);
    client.on("notification", ({ payload }) => this.onNotification(payload ?? ""));
  }

  get isLost(): boolean {
    return this.#lost !== undefined;
  }

  /** Statements whose results are pending. */
  get underWay(): number {
    return this.#underWay;
  }

  /**
   * Sends all statements, then waits. Each has its own result. Never rejects. `mayTakeLong`: for schema
   * changes, which have no time limit.
   */
  async run(commands: readonly Command[], mayTakeLong = false): Promise<Result[]> {
    const lost = this.#lost;
    if (lost) return commands.map(() => lost);
    this.#underWay += commands.length;
    const waitMs = this.#times.answerMs + graceMs;
    const waiting = () =>
      this.#clock.after(waitMs, () => this.destroy(`no answer for ${waitMs} ms`));
    let timer = mayTakeLong ? undefined : waiting();
    const { stream } = this.#client.connection;
    stream.cork(); // one packet for all that fits into it
    const results = commands.map(async (command) => {
      const result = await this.#runOne(command);
      this.#underWay--;
      timer?.cancel();
      timer = this.#underWay > 0 && !mayTakeLong && !this.#lost ? waiting() : undefined;
      if (isFailure(result) && isLost(result)) this.destroy(result.message);
      return result;
    });
    stream.uncork();
    const all = await Promise.all(results);
    timer?.cancel();
    return all;
  }

  /** Rows of one statement. Throws PostgresError. */
  async query(sql: string, params: readonly SqlValue[] = []): Promise<readonly Row[]> {
    const [result = { code: lostCode, message: "no result" }] = await this.run([{ sql, params }]);
    if (isFailure(result)) throw new PostgresError(result);
    return result.rows;
  }

  /** Closes the connection in order; waits a limited time for pending statements. */
  async close(): Promise<void> {
    if (this.#lost) return;
    this.#isClosing = true;
    const timer = this.#clock.after(graceMs, () => this.destroy("closed"));
    await this.#client.end();
    timer.cancel();
    this.#lose({ code: lostCode, message: "closed" });
  }

  /** Closes it immediately; waiting calls get an error. */
  destroy(why: string): void {
    this.#lose({ code: lostCode, message: why });
    this.#client.connection.stream.destroy();
  }

  async #connect(): Promise<void> {
    const { connectMs, answerMs, lockMs } = this.#times;
    const late = `no connection within ${connectMs} ms`;
    const refuse = (): void => void this.#client.connection.stream.destroy(new Error(late));
    const timer = this.#clock.after(connectMs, refuse);
    try {
      await this.#client.connect();
      const params = [answerMs, lockMs, idleInTransactionMs].map(String);
      const [[version, encoding, readOnly] = []] = await this.query(setUp, params);
      if (typeof version !== "bigint" || version < versionMin || encoding !== "UTF8") {
        const message = `expected PostgreSQL 15 or newer and a database in UTF8, got ${quote(version)} and ${quote(encoding)}`;
        throw new PostgresError({ code: "", message });
      }
      if (readOnly !== "off") {
        throw new PostgresError({ code: readOnlyCode, message: "a replica, or set to read-only" });
      }
    } finally {
      timer.cancel();
    }
  }

  async #runOne({ sql, params = [] }: Command): Promise<Result> {
    try {
      const { rows, rowCount, command } = await this.#client.query<(SqlValue | null)[]>({
        ...this.#nameFor(sql, params.length > 0),
        text: sql,
        values: params.map(parameterOf),
        rowMode: "array",
        types: { getTypeParser: readerOf },
      });
      return { rows, changes: rowCount ?? 0, command };
    } catch (error) {
      const failure = failureOf(error);
      if (isOutdated(failure)) this.#names.delete(sql);
      return this.#lost && failure.code === lostCode ? this.#lost : failure;
    }
  }

  #nameFor(sql: string, hasParams: boolean): { name?: string } {
    if (!hasParams) return {};
    const known = this.#names.get(sql);
    if (known !== undefined) return { name: known };
    if (this.#prepared === preparedMax) return {};
    const name = `s${this.#prepared++}`;
    this.#names.set(sql, name);
    return { name };
  }

  #lose(failure: Failure): void {
    if (this.#lost) return;
    this.#lost = failure;
    this.#interrupted?.removeEventListener("abort", this.#interrupt);
    if (!this.#isClosing) this.onLost();
  }
}
