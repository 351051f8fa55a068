// Database inspection: what the start of this node would refuse about its database. Changes nothing.
//
// Called by `shredway doctor`. It uses the start's own checks: those of the store, and the comparison
// of the nodes' settings.

import { hostname } from "node:os";
import type { Clock } from "../core/clock.ts";
import type { Config } from "../core/configuration/configuration.ts";
import { nodeNameOf } from "../core/configuration/node-name.ts";
import { messageOf } from "../core/errors.ts";
import type { DatabaseFact, DatabaseFileFact } from "../platform/doctor/database-checks.ts";
import { checkFile } from "../platform/store/file-check.ts";
import { migrations } from "../platform/store/migrations.ts";
import { checkStart } from "../platform/store/start-check.ts";
import { clockProblem, measureClockOffset } from "./clock-offset.ts";
import {
  differencesOf,
  nodeSettingsOf,
  readNodeSettings,
  textOfDifference,
} from "./node-settings.ts";

type Differences = DatabaseFact["differences"];

/** null: the configuration has no shared database. Never rejects. */
export async function inspectDatabase(config: Config, clock: Clock): Promise<DatabaseFact | null> {
  const { postgres, directory } = config.data;
  if (postgres === undefined || !config.http) return null;
  const node = nodeNameOf(config.data.node, hostname());
  const newest = migrations.length;
  try {
    let clockOffsetMs = 0;
    const onClock = async (databaseTimeMs: () => Promise<number>): Promise<void> => {
      clockOffsetMs = await measureClockOffset(clock, databaseTimeMs);
    };
    const found = await checkStart({ directory, postgres }, clock, { onClock });
    const own = nodeSettingsOf(config);
    const differences = found.nodes.flatMap(({ name, settings: text, isRunning }): Differences => {
      const settings = isRunning && name !== node ? readNodeSettings(text) : null;
      if (!settings) return [];
      return differencesOf(own, settings).map((one) => ({
        text: textOfDifference(name, one),
        isGrave: one.isGrave,
      }));
    });
    return {
      problems: found.problems.map(({ error, remedy }) => ({ text: error.message, remedy })),
      version: found.version,
      newest,
      node,
      isNameTaken: found.isRunning(node),
      differences,
      clockProblem: clockProblem(clockOffsetMs),
      unusableKeys: found.unusableKeys,
    };
  } catch (error) {
    // The check "postgres" reports a server that does not answer.
    const problems = [
      { text: messageOf(error), remedy: "correct the findings of the check postgres" },
    ];
    return {
      problems,
      version: 0,
      newest,
      node,
      isNameTaken: false,
      differences: [],
      clockProblem: null,
      unusableKeys: [],
    };
  }
}

/** null: the configuration has no SQLite file. Never rejects. */
export async function inspectDatabaseFile(config: Config): Promise<DatabaseFileFact | null> {
  const { postgres, directory } = config.data;
  if (postgres !== undefined || !config.http) return null;
  const { problems, ...found } = await checkFile(directory);
  return {
    ...found,
    problems: problems.map(({ error, remedy }) => ({ text: error.message, remedy })),
    newest: migrations.length,
  };
}
