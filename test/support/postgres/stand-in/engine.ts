// The engine of the stand-in: PostgreSQL itself, compiled to WebAssembly (PGlite), in this thread.
//
// It has one backend, so that one transaction is open at a time. Sessions share it: each has its own search
// path, which begins with the schema that takes the place of its database. What a backend knows about itself and
// about others is answered by objects of the schema `standin`, which precedes pg_catalog in the search path.

import { readFileSync } from "node:fs";
import type { PGlite } from "@electric-sql/pglite";
import { closeMessages, messagesIn, queryMessage } from "./messages.ts";

/** A session, as its functions and views show it. */
export interface EngineSession {
  readonly pid: number;
  /** The schema that takes the place of a database. */
  readonly place: string;
  /** application_name. */
  readonly name: string;
}

/** "I": no transaction; "T": inside of one; "E": inside of one that has failed. */
export type TransactionStatus = "I" | "T" | "E";

export interface EngineAnswer {
  /** Messages for the client. */
  readonly bytes: Buffer;
  readonly status: TransactionStatus;
  /** NotificationResponse messages, for every listener of this place. */
  readonly notifications: readonly Buffer[];
}

const settings = [
  "shared_buffers=16MB",
  "max_wal_size=64MB",
  "fsync=on",
  "autovacuum=off",
  "timezone=UTC",
];

const objects = `
CREATE SCHEMA standin;
CREATE TABLE standin.sessions (pid integer PRIMARY KEY, place text NOT NULL, name text NOT NULL);
CREATE TABLE standin.locks (place text, number bigint, pid integer NOT NULL, PRIMARY KEY (place, number));
CREATE FUNCTION standin.pg_backend_pid() RETURNS integer LANGUAGE sql AS
  $$ SELECT current_setting('standin.pid')::integer $$;
CREATE FUNCTION standin.pg_terminate_backend(pid integer, timeout bigint DEFAULT 0) RETURNS boolean
  LANGUAGE sql AS $$ SELECT true $$;
CREATE FUNCTION standin.set_config(name text, value text, is_local boolean) RETURNS text
  LANGUAGE sql AS $$ SELECT value $$;
CREATE FUNCTION standin.pg_try_advisory_lock(wanted bigint) RETURNS boolean LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO standin.locks VALUES (current_setting('standin.place'), wanted, standin.pg_backend_pid())
      ON CONFLICT DO NOTHING;
    RETURN EXISTS (SELECT FROM standin.locks WHERE place = current_setting('standin.place')
      AND number = wanted AND pid = standin.pg_backend_pid());
  END $$;
CREATE FUNCTION standin.pg_advisory_unlock(held bigint) RETURNS boolean LANGUAGE plpgsql AS $$
  BEGIN
    DELETE FROM standin.locks WHERE place = current_setting('standin.place')
      AND number = held AND pid = standin.pg_backend_pid();
    RETURN FOUND;
  END $$;
CREATE FUNCTION standin.fail(code text, reason text) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    RAISE EXCEPTION USING ERRCODE = code, MESSAGE = reason;
  END $$;
CREATE VIEW standin.pg_stat_activity AS
  SELECT pid, current_database() AS datname, name AS application_name FROM standin.sessions
  WHERE place = current_setting('standin.place');
CREATE VIEW standin.pg_locks AS
  SELECT 'advisory'::text AS locktype,
    (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()) AS database,
    ((number >> 32) & 4294967295)::oid AS classid, (number & 4294967295)::oid AS objid,
    1::smallint AS objsubid, true AS granted, pid
  FROM standin.locks WHERE place = current_setting('standin.place');
`;

/** A text as a literal of SQL. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Functions of JavaScript that are the engine's clocks and timer. */
type Clocks = Readonly<Record<"now" | "monotonic" | "timer", unknown>>;

function presentClocks(): Clocks {
  const { now } = Date;
  const monotonic: unknown = Reflect.get(performance, "now");
  return { now, monotonic, timer: globalThis.setTimeout };
}

function setClocks({ now, monotonic, timer }: Clocks): void {
  Reflect.set(Date, "now", now);
  Reflect.set(performance, "now", monotonic);
  Reflect.set(globalThis, "setTimeout", timer);
}

/** Taken before a simulation replaces them. */
const realClocks = presentClocks();
/** The engine would be interrupted in real time; its timers only serve statistics. */
const noTimer = (): number => 0;

/** Names a file with the files of an empty database (template.ts). */
export const templateVariable = "SHREDWAY_TEST_STAND_IN_TEMPLATE";

/** An empty database, in memory. */
export async function createDatabase(): Promise<PGlite> {
  const { PGlite } = await import("@electric-sql/pglite");
  const template = process.env[templateVariable];
  return PGlite.create({
    postgresqlconf: settings,
    ...(template !== undefined && { loadDataDir: new Blob([readFileSync(template)]) }),
  });
}

let opened: Promise<PostgresEngine> | undefined;

export class PostgresEngine {
  readonly #database: PGlite;
  #active: EngineSession | null = null;
  /** The time that the engine reads; null: the real one. */
  nowMs: (() => number) | null = null;

  /** The engine of this process. Its start takes a second or more. */
  static open(): Promise<PostgresEngine> {
    opened ??= PostgresEngine.#start();
    return opened;
  }

  static async #start(): Promise<PostgresEngine> {
    const clocks = presentClocks();
    setClocks(realClocks);
    try {
      const engine = new PostgresEngine(await createDatabase());
      engine.#do(objects);
      return engine;
    } finally {
      setClocks(clocks);
    }
  }

  private constructor(database: PGlite) {
    this.#database = database;
  }

  createPlace(place: string): void {
    this.#do(`CREATE SCHEMA IF NOT EXISTS ${place}`);
  }

  /** No session may be there. */
  removePlace(place: string): void {
    this.#do(`DROP SCHEMA ${place} CASCADE; DELETE FROM standin.locks WHERE place = '${place}'`);
    this.#do(`DELETE FROM standin.sessions WHERE place = '${place}'`);
    this.#do("CHECKPOINT"); // its log is in memory
  }

  begin({ pid, place, name }: EngineSession): void {
    this.#do(`INSERT INTO standin.sessions VALUES (${pid}, '${place}', ${quoted(name)})`);
  }

  /** `statements`: names of its prepared statements. Rolls its transaction back. */
  end({ pid }: EngineSession, statements: readonly string[], isInTransaction: boolean): void {
    if (isInTransaction) this.#do("ROLLBACK");
    this.#do(
      `DELETE FROM standin.sessions WHERE pid = ${pid}; DELETE FROM standin.locks WHERE pid = ${pid}`,
    );
    this.#answer(closeMessages(statements));
  }

  /** One or more requests of a session; no other one may be inside of a transaction. */
  run(session: EngineSession, bytes: Uint8Array): EngineAnswer {
    if (this.#active !== session) {
      const { pid, place } = session;
      this.#do(
        `SET search_path = ${place}, standin, pg_catalog; SET standin.place = '${place}'; SET standin.pid = '${pid}'`,
      );
      this.#active = session;
    }
    return this.#answer(bytes);
  }

  /** A statement that fails with this error. */
  fail(session: EngineSession, code: string, message: string): EngineAnswer {
    return this.run(session, queryMessage(`SELECT standin.fail('${code}', ${quoted(message)})`));
  }

  #answer(bytes: Uint8Array): EngineAnswer {
    const answer = this.#execute(bytes);
    const notifications: Buffer[] = [];
    const others: Buffer[] = [];
    let status: TransactionStatus = "I";
    for (const { type, bytes: message } of messagesIn(answer)) {
      if (type === "A") notifications.push(message);
      else others.push(message);
      if (type === "Z") {
        const letter = message.toString("latin1", 5);
        status = letter === "T" || letter === "E" ? letter : "I";
      }
    }
    const isPlain = notifications.length === 0;
    return { bytes: isPlain ? answer : Buffer.concat(others), status, notifications };
  }

  #execute(bytes: Uint8Array): Buffer {
    const clocks = presentClocks();
    const time = this.nowMs?.();
    const now = time === undefined ? realClocks.now : () => time;
    const monotonic = time === undefined ? realClocks.monotonic : () => time;
    setClocks({ now, monotonic, timer: noTimer });
    try {
      return Buffer.from(this.#database.execProtocolRawSync(bytes));
    } finally {
      setClocks(clocks);
    }
  }

  #do(sql: string): void {
    const answer = this.#execute(queryMessage(sql));
    for (const { type, bytes } of messagesIn(answer)) {
      if (type !== "E") continue;
      throw new Error(`the stand-in failed: ${bytes.toString("utf8", 5)}\n${sql}`);
    }
  }
}
