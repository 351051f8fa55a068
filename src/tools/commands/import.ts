// `shredway import`: reads an export into an empty database.
//
// The whole file is checked before any change. Until the import is complete, every program
// refuses the database. A database in use, or one that is not empty, is refused.

import { systemClock } from "../../core/clock.ts";
import { createLogger } from "../../core/log.ts";
import { migrations } from "../../platform/store/migrations.ts";
import { nameOfLocation, openDatabase } from "../../platform/store/transfer/database-location.ts";
import { checkExport, importDatabase } from "../../platform/store/transfer/import.ts";
import { type Arguments, type Command, exitCodes } from "../terminal/command.ts";
import { formatCount, toJson } from "../terminal/formatting.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { defaultDirectory, locationOf } from "./store-command.ts";

export const importCommand: Command = {
  name: "import",
  summary: "read an export into an empty database",
  usage: ["import --input FILE [--config FILE | --data DIRECTORY] [--json]"],
  description: `
Reads an export of "shredway export" into an empty database, SQLite or PostgreSQL. An export of an older
schema is converted. Every line is checked first, so a truncated or modified file changes nothing. After
an interruption every program refuses the database until the import is repeated. No service may use the
database meanwhile.`,
  options: {
    input: { value: "FILE", help: "a file written by shredway export" },
    config: { value: "FILE", help: "the service's configuration, for its database" },
    data: { value: "DIRECTORY", help: `the data folder (default ${defaultDirectory})` },
    json: { help: "print the result as one JSON object" },
  },
  examples: ["shredway import --config postgres.yaml --input shredway.export"],
  run,
};

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  const path = args.required("input", "shredway.export");
  const location = locationOf(args);
  const log = createLogger({ level: "warn" });
  const progress = (what: string) => (rows: number) =>
    terminal.progress(`${what} ${formatCount(rows)} rows`);
  const checked = await checkExport(path, progress("checked"));
  const database = await openDatabase(location, { clock: systemClock, log, isAlone: true });
  try {
    const { driver, blobType, warnings } = database;
    for (const warning of warnings) terminal.note(`warning: ${warning}`);
    const onProgress = progress("imported");
    const { wasInterrupted } = await importDatabase({
      path,
      checked,
      driver,
      blobType,
      onProgress,
    });
    terminal.clearProgress();
    if (wasInterrupted) terminal.note("removed the remains of an interrupted import first");
  } finally {
    await database.driver.close();
  }
  const { head, tail } = checked;
  const total = [...tail.rows.values()].reduce((sum, count) => sum + count, 0);
  if (args.flag("json")) {
    const { schemaVersion, createdNs, node } = head;
    const rows = Object.fromEntries(tail.rows);
    terminal.line(
      toJson({
        schemaVersion,
        newest: migrations.length,
        createdNs,
        node,
        rows,
        sha256: tail.sha256,
      }),
    );
  } else {
    terminal.line(
      `${nameOfLocation(location)}: imported ${formatCount(total)} rows of ${tail.rows.size} tables, ` +
        `exported by ${head.node} at ${new Date(Number(head.createdNs / 1_000_000n)).toISOString()}, ` +
        `schema version ${head.schemaVersion}`,
    );
  }
  return exitCodes.ok;
}
