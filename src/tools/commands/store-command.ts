// Shared parts of commands on the store: actions, database location, opening and closing.
//
// Used by keys.ts, destinations.ts and the commands on the whole store. A service may use the
// same store; it picks their changes up.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { readOwnAddresses } from "../../core/addresses/own-addresses.ts";
import { systemClock } from "../../core/clock.ts";
import { type Config, loadConfig } from "../../core/configuration/configuration.ts";
import { quote } from "../../core/errors.ts";
import { createLogger } from "../../core/log.ts";
import { databaseFileName } from "../../platform/store/data-folder.ts";
import { Store } from "../../platform/store/store.ts";
import type { DatabaseLocation } from "../../platform/store/transfer/database-location.ts";
import { type Arguments, exitCodes, usageError } from "../terminal/command.ts";
import type { Terminal } from "../terminal/terminal.ts";

export const defaultDirectory = "./data";

interface Actions<T extends string> {
  /** Name of the command. */
  readonly name: string;
  readonly actions: readonly T[];
  /** Actions that take an id. */
  readonly withId: readonly T[];
  /** "a key", with an example id, for messages. */
  readonly what: string;
  readonly exampleId: string;
  /** Options that only some actions accept. */
  readonly ownOptions: Readonly<Record<string, readonly T[]>>;
}

/** Returns the action, and its id or "". Throws a usage error. */
export function readAction<T extends string>(
  args: Arguments,
  { name, actions, withId, what, exampleId, ownOptions }: Actions<T>,
): { readonly action: T; readonly id: string } {
  const [given, ...rest] = args.positionals;
  const action = actions.find((known) => known === given);
  if (!action) {
    throw usageError(
      `${given === undefined ? "missing action" : `unknown action ${quote(given)}`}; expected one of ${actions.join(", ")}`,
    );
  }
  for (const [option, owners] of Object.entries(ownOptions)) {
    if (args.given(option) && !owners.includes(action)) {
      const expected = owners.map((owner) => `${name} ${owner}`).join(" or ");
      throw usageError(`--${option} is not allowed with ${action}; it is an option of ${expected}`);
    }
  }
  const takesId = withId.includes(action);
  const [id, extra] = takesId ? rest : [undefined, rest[0]];
  if (takesId && id === undefined) {
    throw usageError(
      `${name} ${action}: missing id of ${what}; for example ${name} ${action} ${exampleId}`,
    );
  }
  if (extra !== undefined)
    throw usageError(`${name} ${action}: unexpected argument ${quote(extra)}`);
  return { action, id: id ?? "" };
}

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

/** The database's file; null if it does not exist. */
export function fileOf({ directory }: DatabaseLocation): string | null {
  const path = join(directory, databaseFileName);
  return existsSync(path) ? path : null;
}

/**
 * With `mustExist`, refuses a folder without a database and a database without tables. Resolves
 * to the exit code.
 */
export async function withStore(
  args: Arguments,
  terminal: Terminal,
  mustExist: boolean,
  work: (store: Store) => Promise<void>,
): Promise<number> {
  const { directory, postgres } = locationOf(args);
  const log = createLogger({ level: "warn" });
  const store = await Store.open({ directory, postgres, clock: systemClock, log, mustExist });
  try {
    for (const warning of store.warnings) terminal.note(`warning: ${warning}`);
    await work(store);
    return exitCodes.ok;
  } finally {
    await store.close();
  }
}
