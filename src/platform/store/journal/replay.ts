// Replay: brings the submissions that a killed process had acknowledged into the database.
//
// Called by Store.open after the migrations, and by the command export. A row that the database has
// already stays as it is, because it is newer. So a second replay of the same file changes nothing.

import { join } from "node:path";
import type { Clock } from "../../../core/clock.ts";
import type { Logger } from "../../../core/log.ts";
import { databaseFileName, isInUse } from "../data-folder.ts";
import type { SqlDriver, Statement } from "../driver.ts";
import { SqliteDriver } from "../sqlite/driver.ts";
import { readJournal } from "./submission-journal.ts";

const rowsPerCommit = 500;

/** Returns the number of rows in the files. Rejects with the error of the files or of the database. */
export async function replayJournal(databasePath: string, driver: SqlDriver): Promise<number> {
  let count = 0;
  for (const { columns, rows } of readJournal(databasePath)) {
    const placeholders = columns.map((_, i) => `$${i + 1}`).join(", ");
    const sql = `INSERT INTO submissions (${columns.join(", ")}) VALUES (${placeholders})
      ON CONFLICT (account_id, signature) DO NOTHING`;
    for (let at = 0; at < rows.length; at += rowsPerCommit) {
      const statements = rows
        .slice(at, at + rowsPerCommit)
        .map((params): Statement => ({ sql, params }));
      await driver.transaction(statements, "survives-kill", []);
    }
    count += rows.length;
  }
  return count;
}

/** The same for a folder that only a killed service has left; does nothing while a service runs. */
export async function replayLeftJournal(
  directory: string,
  dependencies: { readonly clock: Clock; readonly log: Logger },
): Promise<void> {
  const path = join(directory, databaseFileName);
  if (isInUse(directory) !== false || readJournal(path).length === 0) return;
  const driver = await SqliteDriver.open({ path, ...dependencies });
  try {
    await replayJournal(path, driver);
  } finally {
    await driver.close();
  }
}
