// `shredway migrate`: migrates the database's schema to the newest version, or only checks it.
//
// For operators whose service may not change tables: the owner's role runs this command before a
// newer version of the service starts.

import { systemClock } from "../../core/clock.ts";
import { createLogger } from "../../core/log.ts";
import {
  checkVersion,
  migrate as migrateDatabase,
  migrations,
} from "../../platform/store/migrations.ts";
import {
  type DatabaseLocation,
  nameOfLocation,
  openDatabase,
  openSnapshot,
} from "../../platform/store/transfer/database-location.ts";
import { type Arguments, type Command, exitCodes } from "../terminal/command.ts";
import { toJson } from "../terminal/formatting.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { defaultDirectory, fileOf, locationOf, refuseNewDefaultFolder } from "./store-command.ts";

export const migrate: Command = {
  name: "migrate",
  summary: "migrate the database to the newest schema, or check its version",
  usage: ["migrate [--config FILE | --data DIRECTORY] [--check] [--json]"],
  description: `
Migrates the database's schema to the newest version, as the start of a newer service does. Each step is
one transaction. Use it if the service's own role may not change tables. --check changes nothing: the exit
code is 0 if the schema is the newest, and 1 if it is older or missing.`,
  options: {
    config: { value: "FILE", help: "the service's configuration, for its database" },
    data: { value: "DIRECTORY", help: `the data folder (default ${defaultDirectory})` },
    check: { help: "only check the version" },
    json: { help: "print one JSON object" },
  },
  examples: [
    "shredway migrate --config owner.yaml",
    "shredway migrate --config shredway.yaml --check --json",
  ],
  run,
};

async function versionAt(location: DatabaseLocation): Promise<number> {
  if (location.postgres === undefined && fileOf(location) === null) return 0;
  const { snapshot, version } = await openSnapshot(location, systemClock);
  await snapshot.close();
  checkVersion(version);
  return version;
}

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  const location = locationOf(args);
  refuseNewDefaultFolder(args);
  const from = await versionAt(location);
  const newest = migrations.length;
  const only = args.flag("check");
  if (!only) {
    const log = createLogger({ level: "warn" });
    const { driver, blobType, warnings } = await openDatabase(location, {
      clock: systemClock,
      log,
      isAlone: false,
    });
    try {
      for (const warning of warnings) terminal.note(`warning: ${warning}`);
      await migrateDatabase(driver, blobType);
    } finally {
      await driver.close();
    }
  }
  const to = only ? from : newest;
  if (args.flag("json")) terminal.line(toJson({ from, to, newest }));
  else terminal.line(`${nameOfLocation(location)}: ${resultText(from, to, newest)}`);
  return to === newest ? exitCodes.ok : exitCodes.failed;
}

function resultText(from: number, to: number, newest: number): string {
  if (to !== newest) return `schema ${nameOf(from)}; the newest is version ${newest}`;
  if (from === to) return `schema version ${to}, the newest`;
  if (from === 0) return `schema set up at version ${to}, the newest`;
  return `schema migrated from ${nameOf(from)} to version ${to}, the newest`;
}

function nameOf(version: number): string {
  return version === 0 ? "not set up" : `version ${version}`;
}
