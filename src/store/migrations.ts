// The schema, as the steps that led to it, and bringing a database to the newest one.
//
// Run by store.ts at every start. A step is one transaction, and its first statement moves the version:
// of several processes that start at once one takes the step, the others see it taken. A step that was
// published is never changed: a new one follows it. {blob} is the database's word for bytes.

import { ShredwayError } from "../core/errors.ts";
import { integerAt, type SqlDriver } from "./driver.ts";

/** Statements that lead from the version before to this one; the first leads from 0 to 1. */
export type Migration = readonly string[];

export const migrations: readonly Migration[] = [
  [
    `CREATE TABLE accounts (
      id text PRIMARY KEY,
      name text NOT NULL UNIQUE,
      created_ns bigint NOT NULL
    )`,
    `CREATE TABLE api_keys (
      id text PRIMARY KEY,
      account_id text NOT NULL REFERENCES accounts (id),
      hash {blob} NOT NULL UNIQUE,
      hint text NOT NULL,
      label text NOT NULL,
      scopes text NOT NULL,
      requests_per_second bigint,
      burst bigint,
      allowed_ranges text NOT NULL,
      created_ns bigint NOT NULL,
      expires_ns bigint,
      revoked_ns bigint
    )`,
    "CREATE INDEX api_keys_account ON api_keys (account_id)",
    `CREATE TABLE submissions (
      account_id text NOT NULL,
      signature text NOT NULL,
      method text NOT NULL,
      bundle_id text,
      bundle_index bigint NOT NULL,
      options text NOT NULL,
      received_ns bigint NOT NULL,
      state text NOT NULL,
      ended_ns bigint,
      slot bigint,
      reason text,
      err text,
      events text NOT NULL,
      wire {blob},
      PRIMARY KEY (account_id, signature)
    )`,
    "CREATE INDEX submissions_open ON submissions (received_ns) WHERE state = 'open'",
    "CREATE INDEX submissions_ended ON submissions (ended_ns) WHERE ended_ns IS NOT NULL",
    `CREATE INDEX submissions_bundle ON submissions (account_id, bundle_id, bundle_index)
      WHERE bundle_id IS NOT NULL`,
  ],
];

const versionTable = "CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL)";
const firstVersion =
  "INSERT INTO schema_version (version) SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM schema_version)";
const versionQuery = "SELECT version FROM schema_version";
const nextVersion = "UPDATE schema_version SET version = $1 WHERE version = $2";

async function versionOf(driver: SqlDriver): Promise<number> {
  const [row] = await driver.query(versionQuery, []);
  if (row) return Number(integerAt(row, 0));
  throw new ShredwayError("store_failed", "the store: expected its schema's version, got none");
}

/**
 * Brings the database to the newest version. Throws ShredwayError "store_newer" when it is past that
 * already; then nothing was changed.
 */
export async function migrate(
  driver: SqlDriver,
  blobType: string,
  steps: readonly Migration[] = migrations,
): Promise<void> {
  const setUp = [versionTable, firstVersion].map((sql) => ({ sql, params: [] }));
  await driver.transaction(setUp, "durable");
  for (;;) {
    const version = await versionOf(driver);
    if (version > steps.length) {
      throw new ShredwayError(
        "store_newer",
        `the store: expected a schema of version ${steps.length} or older, got version ${version}: ` +
          "it was written by a newer version of the program, which must go on with it",
        { details: { version, newest: steps.length } },
      );
    }
    const step = steps[version];
    if (!step) return;
    const moved = { sql: nextVersion, mustChange: true };
    await driver.transaction(
      [
        { ...moved, params: [BigInt(version + 1), BigInt(version)] },
        ...step.map((sql) => ({ sql: sql.replaceAll("{blob}", blobType), params: [] })),
      ],
      "durable",
    );
  }
}
