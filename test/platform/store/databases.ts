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
import { StandInSockets } from "../../support/postgres/stand-in/sockets.ts";
import { Files, openLocation, silent } from "./files.ts";

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
  isStepUnderWay(location: string): Promise<boolean>;
  /** Errors that the database itself finds in its files. */
  damage(location: string): Promise<readonly unknown[]>;
  /** A place for a database: the same place gives the same database. */
  location(): string;
  driver(location?: string): Promise<SqlDriver>;
  /** Created, so that a child process can open it. */
  make(location: string): Promise<void>;
  /** With the newest schema. */
  migrated(location?: string): Promise<SqlDriver>;
  store(location?: string): Promise<Store>;
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
  isStepUnderWay(location: string): Promise<boolean> {
    const log = `${join(location, databaseFileName)}-wal`;
    const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
    return Promise.resolve(size > 4_000_000);
  }

  async damage(location: string): Promise<readonly unknown[]> {
    const driver = await this.driver(location);
    const rows = await driver.query("PRAGMA integrity_check", []);
    return rows.flat().filter((line) => line !== "ok");
  }

  location(): string {
    return this.#files.folder();
  }

  make(): Promise<void> {
    return Promise.resolve();
  }

  driver(location = this.location()): Promise<SqlDriver> {
    return this.#files.driver({ path: join(location, databaseFileName) });
  }

  async migrated(location?: string): Promise<SqlDriver> {
    const driver = await this.driver(location);
    await migrate(driver, this.blobType);
    return driver;
  }

  store(location?: string): Promise<Store> {
    return this.#files.store(location);
  }
}

/** PostgreSQL or its stand-in: a place is the URL of a database of this test. */
abstract class AnyPostgresDatabases implements Databases {
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
    WHERE schemaname = current_schema() AND tablename <> 'commit_marks' ORDER BY tablename`;
  readonly #files: Files;
  #made = 0;

  constructor(files: Files) {
    this.#files = files;
  }

  abstract isStepUnderWay(): Promise<boolean>;
  abstract make(location: string): Promise<void>;
  protected abstract url(name: string): string;

  /** A killed child cannot damage the server's files. */
  damage(): Promise<readonly unknown[]> {
    return Promise.resolve([]);
  }

  location(): string {
    return this.url(`place_${++this.#made}`);
  }

  async driver(location = this.location()): Promise<SqlDriver> {
    await this.make(location);
    const driver = await PostgresDriver.open({ url: location, clock: systemClock, log: silent });
    return this.#files.closing(driver);
  }

  async migrated(location?: string): Promise<SqlDriver> {
    const driver = await this.driver(location);
    await migrate(driver, this.blobType);
    return driver;
  }

  async store(location = this.location()): Promise<Store> {
    await this.make(location);
    return this.#files.closing(await openLocation(location));
  }
}

class PostgresDatabases extends AnyPostgresDatabases {
  readonly #server: () => PostgresServer;

  constructor(files: Files, server: () => PostgresServer) {
    super(files);
    this.#server = server;
  }

  async isStepUnderWay(): Promise<boolean> {
    const [row = []] = await this.#server().run(
      "SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO more%' AND state = 'active'",
    );
    return row[0] === "1";
  }

  make(location: string): Promise<void> {
    return this.#server().ensureDatabase(location);
  }

  protected url(name: string): string {
    return this.#server().url(name);
  }
}

/** The stand-in of the simulation, behind a socket. */
class StandInDatabases extends AnyPostgresDatabases {
  readonly #sockets: () => StandInSockets;

  constructor(files: Files, sockets: () => StandInSockets) {
    super(files);
    this.#sockets = sockets;
  }

  isStepUnderWay(): Promise<boolean> {
    return Promise.resolve(this.#sockets().isUnderWay);
  }

  make(location: string): Promise<void> {
    this.#sockets().ensureDatabase(location);
    return Promise.resolve();
  }

  protected url(name: string): string {
    return this.#sockets().url(name);
  }
}

function isStarted<T>(server: T | undefined): T {
  if (server) return server;
  throw new Error("expected a server that was started");
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
    afterEach(async () => {
      await files.clean();
      server?.recycle();
    });
    afterAll(() => server?.remove());
    define(new PostgresDatabases(files, () => isStarted(server)));
  });
  describe("on the stand-in for PostgreSQL", () => {
    let sockets: StandInSockets | undefined;
    beforeAll(async () => {
      sockets = await StandInSockets.start();
    });
    afterEach(() => files.clean());
    afterAll(() => sockets?.close());
    define(new StandInDatabases(files, () => isStarted(sockets)));
  });
}
