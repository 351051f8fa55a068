// Replay: brings the submissions that a killed process had acknowledged into the database.
//
// Called by Store.open after the migrations, and by the command export. A row that the database has
// already stays as it is, because it is newer. So a second replay of the same file changes nothing. The rows of a
// new bundle are in one frame, also if a newer bundle has one of them since: so the bundle is known from them.

import { join } from "node:path";
import type { Clock } from "../../../core/clock.ts";
import type { Logger } from "../../../core/log.ts";
import { bundleIdOf } from "../../../gateway/submission/tracked-transaction.ts";
import type { BundleRecord } from "../../../gateway/submission/types.ts";
import { databaseFileName, isInUse } from "../data-folder.ts";
import {
  integerAt,
  type SqlDriver,
  type SqlValue,
  type Statement,
  textAt,
  textOrNullAt,
} from "../driver.ts";
import { SqliteDriver } from "../sqlite/driver.ts";
import { additionOfBundle } from "../tables/bundle-rows.ts";
import { type JournalRows, readJournal } from "./submission-journal.ts";

const rowsPerCommit = 500;
/** An export may find the database of an earlier version. */
const bundlesTable = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'bundles'";

/** The bundles that have all their rows in the file. */
function bundlesIn({ columns, rows }: JournalRows): BundleRecord[] {
  const at = (name: string): number => columns.indexOf(name);
  const [account, id, index] = [at("account_id"), at("bundle_id"), at("bundle_index")];
  const groups = new Map<string, (readonly SqlValue[])[]>();
  for (const row of rows) {
    if (textOrNullAt(row, id) === null) continue;
    const key = `${textAt(row, account)} ${textAt(row, id)}`;
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  return [...groups.values()].flatMap((group) => {
    const ordered = group.toSorted((a, b) => Number(integerAt(a, index) - integerAt(b, index)));
    const signatures = ordered.map((row) => textAt(row, at("signature")));
    const [first] = ordered;
    if (!first || bundleIdOf(signatures) !== textAt(first, id)) return [];
    const acceptedNs = integerAt(first, at("received_ns"));
    return {
      accountId: textAt(first, account),
      bundleId: textAt(first, id),
      acceptedNs,
      signatures,
    };
  });
}

/** Returns the number of rows in the files. Rejects with the error of the files or of the database. */
export async function replayJournal(databasePath: string, driver: SqlDriver): Promise<number> {
  let count = 0;
  for (const found of readJournal(databasePath)) {
    const { columns, rows } = found;
    const placeholders = columns.map((_, i) => `$${i + 1}`).join(", ");
    const sql = `INSERT INTO submissions (${columns.join(", ")}) VALUES (${placeholders})
      ON CONFLICT (account_id, signature) DO NOTHING`;
    const hasBundles = (await driver.query(bundlesTable, [])).length > 0;
    const statements = [
      ...rows.map((params): Statement => ({ sql, params })),
      ...(hasBundles ? bundlesIn(found).map(additionOfBundle) : []),
    ];
    for (let at = 0; at < statements.length; at += rowsPerCommit) {
      await driver.transaction(statements.slice(at, at + rowsPerCommit), "survives-kill", []);
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
