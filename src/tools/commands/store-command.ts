// What commands on the store share: their actions, its place, the store opened and closed.
//
// Used by keys.ts, destinations.ts, and by the commands on the whole of a store. A service may run on the
// same store; it sees their changes.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { readOwnAddresses } from "../../core/addresses/own-addresses.ts";
import { systemClock } from "../../core/clock.ts";
import { type Config, loadConfig } from "../../core/configuration/configuration.ts";
import { quote } from "../../core/errors.ts";
import { createLogger } from "../../core/log.ts";
import { databaseFileName } from "../../platform/store/data-folder.ts";
import { Store } from "../../platform/store/store.ts";
import type { Place } from "../../platform/store/transfer/place.ts";
import { type Arguments, exitCodes, usageError } from "../terminal/command.ts";
import type { Terminal } from "../terminal/terminal.ts";

export const defaultDirectory = "./data";

interface Actions<T extends string> {
  /** Of the command. */
  readonly name: string;
  readonly actions: readonly T[];
  /** Those that take an id. */
  readonly withId: readonly T[];
  /** "a key", and an id of one, for messages. */
  readonly what: string;
  readonly exampleId: string;
  /** Options of some actions alone. */
  readonly ownOptions: Readonly<Record<string, readonly T[]>>;
}

/** The action and, where it takes one, the id; otherwise "". Throws a usage error. */
export function readAction<T extends string>(
  args: Arguments,
  { name, actions, withId, what, exampleId, ownOptions }: Actions<T>,
): { readonly action: T; readonly id: string } {
  const [given, ...rest] = args.positionals;
  const action = actions.find((known) => known === given);
  if (!action) {
    const got = given === undefined ? "none" : quote(given);
    throw usageError(`expected one of ${actions.join(", ")}, got ${got}`);
  }
  for (const [option, owners] of Object.entries(ownOptions)) {
    if (args.given(option) && !owners.includes(action)) {
      const expected = owners.map((owner) => `${name} ${owner}`).join(" or ");
      throw usageError(`--${option}: expected with ${expected} only, got it with ${action}`);
    }
  }
  const takesId = withId.includes(action);
  const [id, extra] = takesId ? rest : [undefined, rest[0]];
  if (takesId && id === undefined) {
    throw usageError(
      `expected the id of ${what}, for example ${name} ${action} ${exampleId}; got none`,
    );
  }
  if (extra !== undefined) throw usageError(`${name} ${action}: got ${quote(extra)} too much`);
  return { action, id: id ?? "" };
}

/** undefined: --data or its default says where. */
export function configOf(args: Arguments): Config | undefined {
  args.exclusive("config", "data");
  const file = args.text("config");
  return file === undefined ? undefined : loadConfig(file, readOwnAddresses());
}

/** Where the database is, or is to be. */
export function placeOf(args: Arguments): Place {
  return configOf(args)?.data ?? { directory: args.text("data") ?? defaultDirectory };
}

/** The database's file; null: there is none yet. */
export function fileOf({ directory }: Place): string | null {
  const path = join(directory, databaseFileName);
  return existsSync(path) ? path : null;
}

/** `mustExist`: a folder without a database, or a database without tables, is refused. Settles with the exit code. */
export async function withStore(
  args: Arguments,
  terminal: Terminal,
  mustExist: boolean,
  work: (store: Store) => Promise<void>,
): Promise<number> {
  const { directory, postgres } = placeOf(args);
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
