// The schema as a list of migration steps, and the migration of a database to the newest version.
//
// Run by store.ts at every start. A step is one transaction whose first statement changes the version.
// If several processes start at once, one runs the step and the others skip it. A published step never
// changes; a new step follows it. {blob} is the database's type for bytes.

import { ShredwayError } from "../../core/errors.ts";
import { integerAt, type SqlDriver, type Statement } from "./driver.ts";
import { isMark, unfinished } from "./transfer/mark.ts";

/** Statements that lead from the previous version to this one; the first step leads from 0 to 1. */
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
  [
    // Keys with the scope submit from before this scope existed also get the shreds scope.
    "UPDATE api_keys SET scopes = scopes || ',shreds' WHERE scopes LIKE '%submit%'",
    `CREATE TABLE registrations (
      signature {blob} PRIMARY KEY,
      account_id text NOT NULL,
      lamports bigint NOT NULL,
      slot bigint NOT NULL,
      registered_ms bigint NOT NULL,
      lifetime {blob} NOT NULL,
      nonce_account {blob},
      state text NOT NULL,
      settled_ms bigint,
      counted_lamports bigint,
      counted_order bigint,
      reason text
    )`,
    "CREATE INDEX registrations_account ON registrations (account_id, registered_ms)",
    `CREATE INDEX registrations_pending ON registrations (registered_ms)
      WHERE state = 'pending'`,
    // Covers every read of expiring tips by the tier engine, which therefore never reads the table for
    // them.
    `CREATE INDEX registrations_leaving ON registrations
      (registered_ms, counted_order, account_id, counted_lamports, settled_ms)
      WHERE state = 'counted'`,
    `CREATE UNIQUE INDEX registrations_counted ON registrations (counted_order)
      WHERE counted_order IS NOT NULL`,
    `CREATE TABLE tier_states (
      account_id text PRIMARY KEY,
      tier text,
      grace_since_ms bigint,
      sum_lamports bigint NOT NULL,
      event_count bigint NOT NULL
    )`,
    `CREATE TABLE tier_events (
      account_id text NOT NULL,
      number bigint NOT NULL,
      at_ms bigint NOT NULL,
      kind text NOT NULL,
      tier_from text,
      tier_to text,
      sum_lamports bigint NOT NULL,
      PRIMARY KEY (account_id, number)
    )`,
    // One row.
    `CREATE TABLE tier_clock (
      id bigint PRIMARY KEY,
      evaluated_ms bigint NOT NULL,
      counted_order bigint NOT NULL
    )`,
    `CREATE TABLE destinations (
      id text PRIMARY KEY,
      account_id text NOT NULL REFERENCES accounts (id),
      region text NOT NULL,
      address text NOT NULL UNIQUE,
      created_ms bigint NOT NULL,
      state text NOT NULL,
      proved_ms bigint,
      proved_by text,
      proof_ends_ms bigint,
      paused_ms bigint,
      pause_reason text
    )`,
    "CREATE INDEX destinations_account ON destinations (account_id)",
    `CREATE TABLE landed_tips (
      signature {blob} PRIMARY KEY,
      lamports bigint NOT NULL,
      landed_ms bigint NOT NULL
    )`,
    "CREATE INDEX landed_tips_landed ON landed_tips (landed_ms)",
    // The last snapshot as JSON. One row.
    "CREATE TABLE tip_snapshots (id bigint PRIMARY KEY, snapshot text NOT NULL)",
  ],
  [
    `CREATE TABLE managed_nonces (
      number bigint PRIMARY KEY,
      key_id text NOT NULL UNIQUE,
      account_id text NOT NULL,
      address text NOT NULL UNIQUE,
      state text NOT NULL,
      created_ms bigint NOT NULL
    )`,
  ],
  // Several nodes on one database.
  [
    // The epoch of the present tier leader; writes of earlier leaders are rejected.
    "ALTER TABLE tier_clock ADD COLUMN epoch bigint NOT NULL DEFAULT 0",
    // Number of the last checkpoint that changed the state.
    "ALTER TABLE tier_clock ADD COLUMN checkpoint bigint NOT NULL DEFAULT 0",
    "ALTER TABLE tier_states ADD COLUMN checkpoint bigint NOT NULL DEFAULT 0",
    "CREATE INDEX tier_states_checkpoint ON tier_states (checkpoint)",
    // The node that sends and ends it; '': written before nodes had names.
    "ALTER TABLE submissions ADD COLUMN node text NOT NULL DEFAULT ''",
  ],
  // The settings that the nodes on one database compare, as JSON.
  ["CREATE TABLE nodes (name text PRIMARY KEY, settings text NOT NULL)"],
  // Whether a destination receives recovered shreds: 0 or 1.
  ["ALTER TABLE destinations ADD COLUMN recovered bigint NOT NULL DEFAULT 0"],
  // Proofs of the payers of registered tips, and registrations that lost their tip to one with a proof.
  [
    "ALTER TABLE registrations ADD COLUMN proof text",
    `CREATE TABLE claimed_registrations (
      signature {blob} PRIMARY KEY,
      account_id text NOT NULL,
      lamports bigint NOT NULL,
      slot bigint NOT NULL,
      registered_ms bigint NOT NULL,
      lifetime {blob} NOT NULL,
      nonce_account {blob},
      state text NOT NULL,
      settled_ms bigint,
      counted_lamports bigint,
      counted_order bigint,
      reason text,
      proof text,
      claimed_ms bigint NOT NULL,
      claimed_order bigint
    )`,
    "CREATE INDEX claimed_registrations_account ON claimed_registrations (account_id, registered_ms)",
    `CREATE INDEX claimed_registrations_leaving ON claimed_registrations
      (registered_ms, counted_order) WHERE counted_order IS NOT NULL`,
  ],
  // Ed25519 public keys of accounts (base58), and the audit trail of their registrations and removals.
  [
    `CREATE TABLE public_keys (
      public_key text PRIMARY KEY,
      purpose text NOT NULL,
      account_id text NOT NULL REFERENCES accounts (id),
      key_id text NOT NULL REFERENCES api_keys (id),
      registered_ms bigint NOT NULL
    )`,
    "CREATE INDEX public_keys_account ON public_keys (account_id)",
    "CREATE INDEX public_keys_key ON public_keys (key_id)",
    // key_id: the API key that made the call; NULL: the operator.
    `CREATE TABLE public_key_events (
      account_id text NOT NULL,
      number bigint NOT NULL,
      at_ms bigint NOT NULL,
      kind text NOT NULL,
      public_key text NOT NULL,
      purpose text NOT NULL,
      key_id text,
      PRIMARY KEY (account_id, number)
    )`,
  ],
  // Public keys of signed statements. Private keys are in files of the nodes.
  [
    `CREATE TABLE signing_keys (
      kid text PRIMARY KEY,
      public_key {blob} NOT NULL,
      node text NOT NULL,
      created_ms bigint NOT NULL,
      retired_ms bigint
    )`,
  ],
  // Percentiles of landed tips by quarter hour; NULL: no tip landed in it.
  [
    `CREATE TABLE tip_quarters (
      quarter bigint PRIMARY KEY,
      time_ms bigint NOT NULL,
      tip_count bigint NOT NULL,
      p25 bigint,
      p50 bigint,
      p75 bigint,
      p95 bigint,
      p99 bigint
    )`,
  ],
  // Dropped registrations of an account by their time, for their deletion.
  [
    `CREATE INDEX registrations_dropped ON registrations (account_id, settled_ms)
      WHERE state = 'dropped'`,
    `CREATE INDEX claimed_registrations_dropped ON claimed_registrations (account_id, claimed_ms)
      WHERE counted_order IS NULL`,
  ],
  // The thresholds of the last checkpoint as JSON; NULL: it was stored without them.
  ["ALTER TABLE tier_clock ADD COLUMN tiers text"],
  // The order in which quarter hours were stored; 0: before this column existed.
  ["ALTER TABLE tip_quarters ADD COLUMN number bigint NOT NULL DEFAULT 0"],
  // Accepted bundles, since a transaction can be in several. The signatures are in order, joined by ",".
  [
    `CREATE TABLE bundles (
      account_id text NOT NULL,
      bundle_id text NOT NULL,
      accepted_ns bigint NOT NULL,
      signatures text NOT NULL,
      PRIMARY KEY (account_id, bundle_id)
    )`,
    "CREATE INDEX bundles_accepted ON bundles (accepted_ns)",
  ],
];

const versionTable = "CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL)";
const firstVersion =
  "INSERT INTO schema_version (version) SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM schema_version)";
const versionQuery = "SELECT version FROM schema_version";
const nextVersion = "UPDATE schema_version SET version = $1 WHERE version = $2";

/**
 * A mark (transfer/mark.ts) while the database is being filled. Throws ShredwayError "store_failed"
 * without one.
 */
export async function versionOf(driver: Pick<SqlDriver, "query">): Promise<number> {
  const [row] = await driver.query(versionQuery, []);
  if (row) return Number(integerAt(row, 0));
  throw new ShredwayError("store_failed", "the store: expected its schema's version, got none");
}

/**
 * A role without the right to create tables needs none if the table exists. If several processes create
 * it at once, PostgreSQL rejects all but one.
 */
async function setUpVersion(driver: SqlDriver): Promise<void> {
  const isThere = (): Promise<boolean> =>
    driver.query(versionQuery, []).then(
      (rows) => rows.length > 0,
      () => false,
    );
  if (await isThere()) return;
  const setUp = [versionTable, firstVersion].map((sql) => ({ sql, params: [] }));
  try {
    await driver.transaction(setUp, "durable");
  } catch (error) {
    if (!(await isThere())) throw error;
  }
}

/**
 * Throws ShredwayError: "store_newer" for a version above `newest`, "store_failed" while the database is
 * being filled.
 */
export function checkVersion(version: number, newest: number = migrations.length): void {
  if (isMark(version)) throw unfinished(version);
  if (version <= newest) return;
  throw new ShredwayError(
    "store_newer",
    `the store: unsupported schema version ${version}; expected ${newest} or older: ` +
      "a newer version of Shredway wrote it; use that version",
    { details: { version, newest } },
  );
}

/** Throws like `checkVersion`, and ShredwayError "store_failed" for an older version; 0: no tables yet. */
export function requireNewest(version: number): void {
  checkVersion(version);
  if (version === migrations.length) return;
  const problem =
    version === 0
      ? "the database is not set up; start the service once"
      : `schema version ${version}; expected ${migrations.length}: use the version of Shredway that the service ` +
        "has, or upgrade the service first (its start, or shredway migrate, migrates the database)";
  throw new ShredwayError("store_failed", `the store: ${problem}`);
}

/** Statements of one step, except for the version. */
export function statementsOf(step: Migration, blobType: string): Statement[] {
  return step.map((sql) => ({ sql: sql.replaceAll("{blob}", blobType), params: [] }));
}

/**
 * Migrates the database to the newest version. Throws like `checkVersion`; then nothing was changed.
 */
export async function migrate(
  driver: SqlDriver,
  blobType: string,
  steps: readonly Migration[] = migrations,
): Promise<void> {
  await setUpVersion(driver);
  for (;;) {
    const version = await versionOf(driver);
    checkVersion(version, steps.length);
    const step = steps[version];
    if (!step) return;
    const moved = { sql: nextVersion, mustChange: true };
    await driver.transaction(
      [
        { ...moved, params: [BigInt(version + 1), BigInt(version)] },
        ...statementsOf(step, blobType),
      ],
      "durable",
    );
  }
}
