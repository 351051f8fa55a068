// Opens a whole database for migrate, export and import.
//
// Called by these commands and by store.ts.

import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../core/clock.ts";
import { postgresName } from "../../../core/configuration/postgres-url.ts";
import { ShredwayError } from "../../../core/errors.ts";
import type { Logger } from "../../../core/log.ts";
import { databaseFileName, prepareDataFolder } from "../data-folder.ts";
import { integerAt, type SqlDriver } from "../driver.ts";
import { defaultTimes, type PostgresConnection } from "../postgres/connection.ts";
import { PostgresDriver } from "../postgres/driver.ts";
import { failureOf, storeFailure } from "../postgres/failure.ts";
import { PostgresServers } from "../postgres/servers.ts";
import {
  openPostgresSnapshot,
  openSqliteSnapshot,
  type Snapshot,
  versionIfAny,
} from "../snapshot.ts";
import { SqliteDriver } from "../sqlite/driver.ts";
import { isMark } from "./mark.ts";
import { tablesAt } from "./tables.ts";

export interface DatabaseLocation {
  readonly directory: string;
  /** URL of a PostgreSQL instead of a file in the folder. */
  readonly postgres?: string | undefined;
}

/**
 * Rejects an empty PostgreSQL next to an SQLite file: the data was not imported yet, and rows in the
 * empty database would make the import impossible. Throws ShredwayError "store_failed".
 */
export async function checkImported(location: DatabaseLocation, clock: Clock): Promise<void> {
  const error = notImported(location);
  if (!error) return;
  const { snapshot, version } = await openSnapshot(location, clock);
  try {
    if (await isUntouched(snapshot, version)) throw error;
  } finally {
    await snapshot.close();
  }
}

/** The error if `location` is an empty PostgreSQL; null: there is no SQLite file beside it. */
export function notImported({ directory, postgres }: DatabaseLocation): ShredwayError | null {
  const file = join(directory, databaseFileName);
  if (postgres === undefined || !existsSync(file)) return null;
  return new ShredwayError(
    "store_failed",
    `data.postgres: ${postgresName(postgres)} is empty and ${file} exists; expected a database with ` +
      `the service's data. Run "shredway export" without data.postgres in the configuration, then ` +
      `"shredway import" with it; to start with an empty database, rename ${file} (docs/backup.md)`,
  );
}

/** It contains no rows. */
export async function isUntouched(snapshot: Snapshot, version: number): Promise<boolean> {
  if (isMark(version)) return false;
  for (const { name } of tablesAt(version)) {
    if ((await snapshot.query(`SELECT 1 FROM ${name} LIMIT 1`, [])).length > 0) return false;
  }
  return true;
}

export function nameOfLocation({ directory, postgres }: DatabaseLocation): string {
  return postgres === undefined ? join(directory, databaseFileName) : postgresName(postgres);
}

interface OpenSnapshot {
  readonly snapshot: Snapshot;
  /** Version of its schema; 0: none. It may be a mark. */
  readonly version: number;
}

/** Creates nothing: rejects a folder without a database. Throws ShredwayError "store_failed". */
export async function openSnapshot(
  location: DatabaseLocation,
  clock: Clock,
): Promise<OpenSnapshot> {
  const { directory, postgres } = location;
  const snapshot =
    postgres === undefined
      ? await openSqliteSnapshot(join(directory, databaseFileName))
      : await openPostgresSnapshot(postgres, clock);
  try {
    const version = await versionIfAny(snapshot, postgres === undefined ? "sqlite" : "postgres");
    return { snapshot, version };
  } catch (error) {
    await snapshot.close();
    throw error;
  }
}

interface OpenDatabase {
  readonly driver: SqlDriver;
  /** Its type for bytes. */
  readonly blobType: string;
  readonly warnings: readonly string[];
}

interface OpenOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Rejects a database that a service uses. */
  readonly isAlone: boolean;
}

// Only connections of this program have such names.
const othersQuery = `SELECT COUNT(*) FROM pg_stat_activity
  WHERE datname = current_database() AND application_name LIKE 'shredway %' AND pid <> pg_backend_pid()`;

/** Throws ShredwayError "store_failed" if other processes of this program have it open. */
async function checkUnused(url: string, clock: Clock): Promise<void> {
  let connection: PostgresConnection | undefined;
  try {
    const servers = new PostgresServers({ url, clock, times: defaultTimes });
    connection = await servers.open("shredway look");
    const [row = []] = await connection.query(othersQuery);
    if (integerAt(row, 0) === 0n) return;
  } catch (error) {
    throw error instanceof ShredwayError
      ? error
      : storeFailure(postgresName(url), failureOf(error));
  } finally {
    await connection?.close();
  }
  throw new ShredwayError(
    "store_failed",
    `${postgresName(url)}: another service or command has the database open; stop it first`,
  );
}

/** Creates what is missing, except for the tables. Throws ShredwayError "store_failed". */
export async function openDatabase(
  location: DatabaseLocation,
  options: OpenOptions,
): Promise<OpenDatabase> {
  const { directory, postgres: url } = location;
  const { clock, log, isAlone } = options;
  if (url !== undefined) {
    if (isAlone) await checkUnused(url, clock);
    const driver = await PostgresDriver.open({ url, clock, log });
    return { driver, blobType: "bytea", warnings: driver.warnings };
  }
  const { databasePath: path, lockPath, warnings } = prepareDataFolder(directory);
  const driver = await SqliteDriver.open({ path, clock, log, ...(isAlone && { lockPath }) });
  return { driver, blobType: "blob", warnings };
}
