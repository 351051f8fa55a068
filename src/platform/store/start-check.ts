// Start check: what the start of a service would refuse about its database. Changes nothing.
//
// store.ts runs it before it opens the database and throws the first problem; `shredway doctor` lists
// all of them. file-check.ts is the check of an SQLite file. On PostgreSQL it reads the role's privileges, because a missing one would otherwise
// appear in the middle of the start, or at the first write.

import type { Clock } from "../../core/clock.ts";
import { postgresHosts, postgresName } from "../../core/configuration/postgres-url.ts";
import { isShredwayError, reworded, ShredwayError } from "../../core/errors.ts";
import { nodeLockOf } from "../../core/node-lock-name.ts";
import { unusableKeyTexts } from "../../gateway/accounts/unusable-keys.ts";
import { integerAt, textAt, textOrNullAt } from "./driver.ts";
import { checkVersion, migrations } from "./migrations.ts";
import { heldLocksQuery, lockNumberOf } from "./postgres/locks.ts";
import { openPostgresSnapshot, type Snapshot, versionIfAny } from "./snapshot.ts";
import { readKeyRows } from "./tables/key-store.ts";
import { nodeOf, nodesQuery, type StoredNode, timeQuery } from "./tables/node-store.ts";
import { readPublicKeyRows } from "./tables/public-key-store.ts";
import { type DatabaseLocation, isUntouched, notImported } from "./transfer/database-location.ts";
import { isMark } from "./transfer/mark.ts";
import { tablesAt } from "./transfer/tables.ts";

export interface StartProblem {
  readonly error: ShredwayError;
  /** A command, or what to change. */
  readonly remedy: string;
}

/** A row of the table of nodes. */
interface CheckedNode extends StoredNode {
  readonly isRunning: boolean;
}

interface StartCheck {
  readonly problems: readonly StartProblem[];
  /** Schema version; 0: no tables yet. */
  readonly version: number;
  /** Empty if there is a problem, or the schema has no such table yet. */
  readonly nodes: readonly CheckedNode[];
  /** Stored keys that this version cannot use, one sentence each; empty for another schema version. */
  readonly unusableKeys: readonly string[];
  /** Whether a running service has this node name. */
  readonly isRunning: (node: string) => boolean;
}

const roleQuery = `SELECT CAST(current_user AS text), CAST(current_schema() AS text),
  CAST(coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS integer)`;
const privileges = ["SELECT", "INSERT", "UPDATE", "DELETE"] as const;
/** The tables of the driver and of the migrations themselves. */
const ownTables = ["schema_version", "commit_marks"];
const missingPrivileges = privileges
  .map((one) => `CASE WHEN has_table_privilege(tables.id, '${one}') THEN NULL ELSE '${one}' END`)
  .join(", ");

/** Name, missing privileges, whether the role owns the table; only tables that exist. */
function tablesQuery(): string {
  const names = [...ownTables, ...tablesAt(migrations.length).map(({ name }) => name)];
  return `SELECT tables.name, concat_ws(', ', ${missingPrivileges}),
      CAST(pg_has_role(pg_class.relowner, 'USAGE') AS integer)
    FROM (SELECT name, to_regclass(name) AS id FROM unnest(ARRAY['${names.join("', '")}']) AS name) AS tables
    JOIN pg_class ON pg_class.oid = tables.id ORDER BY tables.name`;
}

interface Role {
  readonly name: string;
  /** null: none that the role may use. */
  readonly schema: string | null;
  readonly mayCreate: boolean;
}

interface TableRights {
  readonly name: string;
  readonly missing: string;
  readonly isOwn: boolean;
}

function refused(database: string, text: string, remedy: string): StartProblem {
  const error = new ShredwayError("store_failed", `${database}: ${text} (docs/postgres.md)`);
  return { error, remedy };
}

function missingRights(database: string, role: Role, tables: readonly TableRights[]) {
  const poor = tables.filter(({ missing }) => missing !== "");
  if (poor.length === 0) return [];
  const listed = poor.map(({ name, missing }) => `${name} (${missing})`).join(", ");
  const text = `the role ${role.name} lacks privileges on tables: ${listed}`;
  const remedy = `as the tables' owner: GRANT ${privileges.join(", ")} ON ALL TABLES IN SCHEMA ${role.schema ?? "public"} TO ${role.name}`;
  return [refused(database, `${text}; expected ${privileges.join(", ")}`, remedy)];
}

/** The problem of a schema that must be created or changed by a role that may not do so. */
function schemaRights(
  database: string,
  role: Role,
  tables: readonly TableRights[],
  version: number,
): StartProblem[] {
  const remedy =
    "run shredway migrate with the URL of the tables' owner, then grant the privileges";
  if (role.schema === null) {
    return [refused(database, `the role ${role.name} may use no schema`, remedy)];
  }
  const missing = ownTables.filter((name) => !tables.some((table) => table.name === name));
  const isOld = version < migrations.length;
  if (!isOld && missing.length === 0) return [];
  const foreign = isOld ? tables.filter(({ isOwn }) => !isOwn) : [];
  if (role.mayCreate && foreign.length === 0) return [];
  const state =
    version === 0
      ? "the database has no tables"
      : isOld
        ? `the schema has version ${version} and must be migrated to version ${migrations.length}`
        : `the table ${missing.join(", ")} is missing`;
  const right =
    foreign.length > 0 && role.mayCreate
      ? "does not own the tables"
      : `may not create tables in the schema ${role.schema}`;
  return [refused(database, `${state}, and the role ${role.name} ${right}`, remedy)];
}

export function versionProblem(version: number): StartProblem[] {
  try {
    checkVersion(version);
    return [];
  } catch (error) {
    const remedy = isMark(version)
      ? "repeat shredway import, or restore a backup"
      : "install the newer version of Shredway on this node, or restore a backup of the older schema";
    if (error instanceof ShredwayError) return [{ error, remedy }];
    throw error;
  }
}

async function readTables(snapshot: Snapshot): Promise<TableRights[]> {
  const rows = await snapshot.query(tablesQuery(), []);
  return rows.map((row) => ({
    name: textAt(row, 0),
    missing: textAt(row, 1),
    isOwn: integerAt(row, 2) === 1n,
  }));
}

/** The schema version with the table of nodes. */
const nodesVersion = 5;

async function readNodes(
  snapshot: Snapshot,
  isRunning: StartCheck["isRunning"],
): Promise<CheckedNode[]> {
  const rows = await snapshot.query(nodesQuery, []);
  return rows.map(nodeOf).map((node) => ({ ...node, isRunning: isRunning(node.name) }));
}

/** Stored keys that this version cannot use, one sentence each; empty for another schema version. */
export async function readUnusableKeys(snapshot: Snapshot, version: number): Promise<string[]> {
  if (version !== migrations.length) return [];
  const { unusable: keys } = await readKeyRows(snapshot);
  const { unusable: publicKeys } = await readPublicKeyRows(snapshot);
  return unusableKeyTexts(keys, publicKeys);
}

async function readSchema(
  location: DatabaseLocation & { readonly postgres: string },
  snapshot: Snapshot,
): Promise<Pick<StartCheck, "problems" | "version">> {
  const database = postgresName(location.postgres);
  const [row = []] = await snapshot.query(roleQuery, []);
  const role = {
    name: textAt(row, 0),
    schema: textOrNullAt(row, 1),
    mayCreate: integerAt(row, 2) === 1n,
  };
  const tables = await readTables(snapshot);
  const rights = missingRights(database, role, tables);
  if (rights.length > 0) return { problems: rights, version: 0 };
  const version = await versionIfAny(snapshot, "postgres");
  const problems = [...versionProblem(version), ...schemaRights(database, role, tables, version)];
  if (problems.length === 0 && (await isUntouched(snapshot, version))) {
    const error = notImported(location);
    if (error) return { problems: [{ error, remedy: "run the commands of the finding" }], version };
  }
  return { problems, version };
}

async function connect(
  url: string,
  clock: Clock,
  interrupted: AbortSignal | undefined,
): Promise<Snapshot> {
  try {
    return await openPostgresSnapshot(url, clock, interrupted);
  } catch (error) {
    if (!isShredwayError(error, "store_failed")) throw error;
    const servers = postgresHosts(url).map(({ name }) => name);
    throw reworded(
      error,
      `data.postgres: could not use ${servers.join(" or ")}: ${error.message}; expected a PostgreSQL ` +
        "server that accepts changes: start it, or correct the URL in data.postgres",
    );
  }
}

interface StartCheckOptions {
  /** Receives a function that reads the server's wall clock, while the connection is open. */
  readonly onClock?: (databaseTimeMs: () => Promise<number>) => Promise<void>;
  /** Its abort ends the check at once. */
  readonly interrupted?: AbortSignal | undefined;
}

/** Throws ShredwayError "store_failed" if the database does not answer. */
export async function checkStart(
  location: DatabaseLocation & { readonly postgres: string },
  clock: Clock,
  { onClock, interrupted }: StartCheckOptions = {},
): Promise<StartCheck> {
  const snapshot = await connect(location.postgres, clock, interrupted);
  try {
    const { problems, version } = await readSchema(location, snapshot);
    const held = new Set(
      (await snapshot.query(heldLocksQuery, [])).map((row) => integerAt(row, 0)),
    );
    const isRunning = (node: string): boolean => held.has(lockNumberOf(nodeLockOf(node)));
    await onClock?.(async () => {
      const [row = []] = await snapshot.query(timeQuery, []);
      return Number(integerAt(row, 0));
    });
    const hasNodes = problems.length === 0 && version >= nodesVersion;
    return {
      problems,
      version,
      nodes: hasNodes ? await readNodes(snapshot, isRunning) : [],
      unusableKeys: problems.length === 0 ? await readUnusableKeys(snapshot, version) : [],
      isRunning,
    };
  } finally {
    await snapshot.close();
  }
}

/** Throws ShredwayError: the first problem, with its remedy. */
export async function requireStart(
  location: DatabaseLocation,
  clock: Clock,
  interrupted?: AbortSignal,
): Promise<void> {
  const { postgres } = location;
  if (postgres === undefined) return;
  const [problem] = (await checkStart({ ...location, postgres }, clock, { interrupted })).problems;
  if (!problem) return;
  throw reworded(problem.error, `${problem.error.message}; ${problem.remedy}`);
}
