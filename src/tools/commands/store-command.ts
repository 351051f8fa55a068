// Shared parts of commands on the store: database location, opening and closing.
//
// Used by keys.ts, destinations.ts and the commands on the whole store. A service may use the
// same store; it picks their changes up.

import { join, resolve } from "node:path";
import { readOwnAddresses } from "../../core/addresses/own-addresses.ts";
import { systemClock } from "../../core/clock.ts";
import { type Config, loadConfig } from "../../core/configuration/configuration.ts";
import { maskPostgresUrl } from "../../core/configuration/postgres-url.ts";
import { createLogger } from "../../core/log.ts";
import { databaseFileName, hasDatabase } from "../../platform/store/data-folder.ts";
import { Store, type StoreOptions } from "../../platform/store/store.ts";
import type { DatabaseLocation } from "../../platform/store/transfer/database-location.ts";
import { type Arguments, exitCodes, usageError } from "../terminal/command.ts";
import type { Terminal } from "../terminal/terminal.ts";

export const defaultDirectory = "./data";

/** Undefined without --config; --data or its default then applies. */
export function configOf(args: Arguments): Config | undefined {
  args.exclusive("config", "data");
  const file = args.text("config");
  return file === undefined ? undefined : loadConfig(file, readOwnAddresses());
}

/** Location of the existing or future database. */
export function locationOf(args: Arguments): DatabaseLocation {
  return configOf(args)?.data ?? { directory: args.text("data") ?? defaultDirectory };
}

/** The database's file; null if it does not exist. Throws ShredwayError "store_failed" if that is unknown. */
export function fileOf({ directory }: DatabaseLocation): string | null {
  return hasDatabase(directory) ? join(directory, databaseFileName) : null;
}

/** The place of the database for people, without a password: a file, or a URL. */
export function placeOf({ directory, postgres }: DatabaseLocation): string {
  return postgres === undefined ? resolve(directory, databaseFileName) : maskPostgresUrl(postgres);
}

/**
 * Refuses the default folder without a database: its content would belong to no service, and the caller
 * probably means another one.
 */
export function refuseNewDefaultFolder(args: Arguments): void {
  if (args.given("config") || args.given("data")) return;
  if (fileOf({ directory: defaultDirectory }) !== null) return;
  throw usageError(
    `${resolve(defaultDirectory)} contains no database; expected the database of a service: ` +
      "--config FILE names its configuration, --data DIRECTORY its data folder",
  );
}

/**
 * With `mustExist`, refuses a folder without a database and a database without tables. Resolves
 * to the exit code.
 */
export function withStore(
  args: Arguments,
  terminal: Terminal,
  mustExist: boolean,
  work: (store: Store) => Promise<void>,
): Promise<number> {
  return withOpenStore(args, terminal, { mustExist }, work);
}

/** For commands that change nothing: also refuses a database whose schema would have to be migrated. */
export function withReadStore(
  args: Arguments,
  terminal: Terminal,
  work: (store: Store) => Promise<void>,
): Promise<number> {
  return withOpenStore(args, terminal, { mustExist: true, isOnlyRead: true }, work);
}

async function withOpenStore(
  args: Arguments,
  terminal: Terminal,
  how: Pick<StoreOptions, "mustExist" | "isOnlyRead">,
  work: (store: Store) => Promise<void>,
): Promise<number> {
  if (how.mustExist) refuseNewDefaultFolder(args);
  const { directory, postgres } = locationOf(args);
  const log = createLogger({ level: "warn" });
  const store = await Store.open({ directory, postgres, clock: systemClock, log, ...how });
  try {
    for (const warning of store.warnings) terminal.note(`warning: ${warning}`);
    await work(store);
    return exitCodes.ok;
  } finally {
    await store.close();
  }
}
