// The same tests of the store on each database.

import { statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { databaseFileName } from "../../../src/platform/store/data-folder.ts";
import type { SqlDriver } from "../../../src/platform/store/driver.ts";
import { migrate } from "../../../src/platform/store/migrations.ts";
import { PostgresDriver } from "../../../src/platform/store/postgres/driver.ts";
import type { Store } from "../../../src/platform/store/store.ts";
import { PostgresServer, postgresPrograms } from "../../support/postgres/postgres.ts";
import { Files, openPlace, silent } from "./files.ts";

/** Database operations for tests, the same for each database. */
export interface Databases {
  readonly blobType: string;
  /** Prefix of a query that returns its plan. */
  readonly explain: string;
  /** Creates enough registrations for realistic query plans. */
  readonly fillForPlans: readonly string[];
  /** Names of the tables, except for the driver's own. */
  readonly tables: string;
  /** Whether a slow schema step is in progress. */
  isStepUnderWay(place: string): Promise<boolean>;
  /** Errors that the database itself finds in its files. */
  damage(place: string): Promise<readonly unknown[]>;
  /** A place for a database: the same place gives the same database. */
  place(): string;
  driver(place?: string): Promise<SqlDriver>;
  /** Created, so that a child process can open it. */
  make(place: string): Promise<void>;
  /** With the newest schema. */
  migrated(place?: string): Promise<SqlDriver>;
  store(place?: string): Promise<Store>;
}

class SqliteDatabases implements Databases {
  readonly blobType = "blob";
  readonly explain = "EXPLAIN QUERY PLAN";
  readonly fillForPlans = []; // it plans by the indexes only
  readonly tables = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name";
  readonly #files: Files;

  constructor(files: Files) {
    this.#files = files;
  }

  /** Pages of the unfinished step are in the log. */
  isStepUnderWay(place: string): Promise<boolean> {
    const log = `${join(place, databaseFileName)}-wal`;
    const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
    return Promise.resolve(size > 4_000_000);
  }

  async damage(place: string): Promise<readonly unknown[]> {
    const driver = await this.driver(place);
    const rows = await driver.query("PRAGMA integrity_check", []);
    return rows.flat().filter((line) => line !== "ok");
  }

  place(): string {
    return this.#files.folder();
  }

  make(): Promise<void> {
    return Promise.resolve();
  }

  driver(place = this.place()): Promise<SqlDriver> {
    return this.#files.driver({ path: join(place, databaseFileName) });
  }

  async migrated(place?: string): Promise<SqlDriver> {
    const driver = await this.driver(place);
    await migrate(driver, this.blobType);
    return driver;
  }

  store(place?: string): Promise<Store> {
    return this.#files.store(place);
  }
}

/** A place is the URL of a database of this test. */
class PostgresDatabases implements Databases {
  readonly blobType = "bytea";
  readonly explain = "EXPLAIN";
  readonly fillForPlans = [
    `INSERT INTO registrations (signature, account_id, lamports, slot, registered_ms, lifetime, state,
        settled_ms, counted_lamports, counted_order)
      SELECT decode(lpad(to_hex(i), 128, '0'), 'hex'), 'a_1', 1, 1, i, '\\x00', 'counted', i, 1, i
      FROM generate_series(1, 20000) AS i`,
    "ANALYZE registrations",
  ];
  readonly tables = `SELECT tablename FROM pg_tables
    WHERE schemaname = 'public' AND tablename <> 'commit_marks' ORDER BY tablename`;
  readonly #files: Files;
  readonly #server: () => PostgresServer;
  #made = 0;

  constructor(files: Files, server: () => PostgresServer) {
    this.#files = files;
    this.#server = server;
  }

  async isStepUnderWay(): Promise<boolean> {
    const [row = []] = await this.#server().run(
      "SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO more%' AND state = 'active'",
    );
    return row[0] === "1";
  }

  /** A killed child cannot damage the server's files. */
  damage(): Promise<readonly unknown[]> {
    return Promise.resolve([]);
  }

  place(): string {
    return this.#server().url(`place_${++this.#made}`);
  }

  make(place: string): Promise<void> {
    return this.#server().ensureDatabase(place);
  }

  async driver(place = this.place()): Promise<SqlDriver> {
    await this.make(place);
    const driver = await PostgresDriver.open({ url: place, clock: systemClock, log: silent });
    return this.#files.closing(driver);
  }

  async migrated(place?: string): Promise<SqlDriver> {
    const driver = await this.driver(place);
    await migrate(driver, this.blobType);
    return driver;
  }

  async store(place = this.place()): Promise<Store> {
    await this.make(place);
    return this.#files.closing(await openPlace(place));
  }
}

/** The same tests on each database; those on PostgreSQL are skipped if it is not installed. */
export function onEachDatabase(define: (databases: Databases) => void): void {
  const files = new Files();
  describe("on SQLite", () => {
    afterEach(() => files.clean());
    define(new SqliteDatabases(files));
  });
  describe.skipIf(postgresPrograms === null)("on PostgreSQL", () => {
    let server: PostgresServer | undefined;
    beforeAll(async () => {
      server = await PostgresServer.start();
    });
    afterEach(() => files.clean());
    afterAll(() => server?.remove());
    const started = (): PostgresServer => {
      if (server) return server;
      throw new Error("expected a server that was started");
    };
    define(new PostgresDatabases(files, started));
  });
}
