// The checks of the database: what the service's start would refuse, and differences from other nodes.
// Pure.
//
// Called by src/tools/commands/doctor.ts with the facts of src/app/database-inspection.ts.

import { about, type Finding, type Found, withMeasure } from "./finding.ts";

export interface DatabaseFact {
  readonly problems: readonly { readonly text: string; readonly remedy: string }[];
  /** Schema version; 0: no tables yet. */
  readonly version: number;
  /** Schema version of this program. */
  readonly newest: number;
  /** Name of this node. */
  readonly node: string;
  /** A running service has that name. */
  readonly isNameTaken: boolean;
  /** Differences from the settings of running nodes. */
  readonly differences: readonly { readonly text: string; readonly isGrave: boolean }[];
  /** Difference between the clocks of this machine and of the database; null: none. */
  readonly clockProblem: string | null;
  /** Stored keys that this version cannot use, one sentence each. */
  readonly unusableKeys: readonly string[];
}

/** The SQLite file of a service without a shared database. */
export interface DatabaseFileFact {
  readonly path: string;
  readonly problems: DatabaseFact["problems"];
  /** Schema version; 0: no tables yet. */
  readonly version: number;
  /** Schema version of this program. */
  readonly newest: number;
  /** Size of a content that was too large to check; null: it was checked. */
  readonly uncheckedBytes: number | null;
  readonly unusableKeys: DatabaseFact["unusableKeys"];
}

/** `isServiceHere`: a port of http.listen is in use, so the service may already run on this machine. */
export function checkDatabase(fact: DatabaseFact, isServiceHere: boolean): Finding[] {
  return [schema(fact), nodeName(fact, isServiceHere), differences(fact), clock(fact), keys(fact)]
    .flat()
    .map(withMeasure);
}

const aboutFile = about(
  "database",
  "The service refuses to start with a file that it cannot use, or that lost acknowledged changes.",
);

export function checkDatabaseFile(fact: DatabaseFileFact): Finding[] {
  const { problems } = fact;
  if (problems.length > 0) {
    return problems.map(({ text, remedy }) => withMeasure(aboutFile.fail(text, remedy)));
  }
  return [fileState(fact), ...keys(fact)].map(withMeasure);
}

function fileState({ path, version, newest, uncheckedBytes }: DatabaseFileFact): Found {
  const { ok, warn } = aboutFile;
  if (uncheckedBytes !== null) {
    const size = `${Math.round(uncheckedBytes / 2 ** 20)} MiB`;
    const text = `${path}: schema version ${version}; the content was not checked, because it has ${size}`;
    return warn(text, `sqlite3 ${path} "PRAGMA quick_check"`);
  }
  const state = `${path}: schema version ${version}, no commit missing, content undamaged`;
  return ok(version === newest ? state : nextStart(version, newest));
}

function nextStart(version: number, newest: number): string {
  const change =
    version === 0 ? "creates the tables" : `migrates the schema from version ${version}`;
  return `the next start ${change} to version ${newest}`;
}

function schema({ problems, version, newest }: DatabaseFact): Found[] {
  const { ok, fail } = about(
    "database",
    "The service refuses to start with a schema or a role that it cannot use.",
  );
  if (problems.length > 0) return problems.map(({ text, remedy }) => fail(text, remedy));
  if (version === newest) return [ok(`schema version ${version}, and the role has its privileges`)];
  return [ok(nextStart(version, newest))];
}

function nodeName({ problems, node, isNameTaken }: DatabaseFact, isServiceHere: boolean): Found[] {
  if (problems.length > 0) return [];
  const { ok, fail } = about(
    "node-name",
    "Two services of one name would send the same submissions, so the second one refuses to start.",
  );
  if (!isNameTaken) return [ok(`no running service uses the name ${node}`)];
  const text = `data.node: a running service uses the name ${node}`;
  if (isServiceHere)
    return [ok(`${text}; a port of http.listen is in use, so it is probably this one`)];
  return [fail(`${text}, on another machine`, "set data.node to a name that no other node has")];
}

function differences({ problems, differences: all }: DatabaseFact): Found[] {
  if (problems.length > 0) return [];
  const { ok, withLevel } = about(
    "nodes",
    "Nodes with different settings give customers wrong tiers, or each shred twice or not at all.",
  );
  if (all.length === 0) return [ok("all running nodes are configured alike")];
  return all.map(({ text, isGrave }) =>
    withLevel(
      isGrave ? "fail" : "warn",
      text,
      isGrave
        ? "configure all nodes alike, then restart all of them"
        : "configure all nodes alike, then reload them",
    ),
  );
}

function keys({ unusableKeys }: Pick<DatabaseFact, "unusableKeys">): Found[] {
  const { warn } = about(
    "keys",
    "Callers with such a key are refused. All other keys stay in force.",
  );
  const remedy =
    "revoke it (shredway keys revoke, shredway public-keys remove), or install the version that wrote it";
  return unusableKeys.map((text) => warn(text, remedy));
}

function clock({ problems, clockProblem }: DatabaseFact): Found[] {
  if (problems.length > 0) return [];
  const { ok, warn } = about(
    "database-clock",
    "Nodes with different clocks record different times for tips and statistics.",
  );
  if (clockProblem === null) return [ok("the clocks of this machine and of the database agree")];
  return [warn(clockProblem, "chronyc makestep, on the machine whose clock is wrong")];
}
