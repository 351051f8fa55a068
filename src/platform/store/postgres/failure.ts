// Errors of PostgreSQL for people: the database, the consequence, and the server's own text.
//
// An error never contains the password; the database appears by host and name.

import { messageOf, ShredwayError } from "../../../core/errors.ts";
import type { Failure } from "../batch.ts";

/** The code if the connection was lost and the result of the statement is unknown. */
export const lostCode = "LOST";
/** The server's code if it is read-only: a replica, or set so. */
export const readOnlyCode = "25006";
/** The server's code if it, or this role, has too many connections. */
export const fullCode = "53300";
/** The code if the result of a commit is unknown. */
export const unknownCode = "UNKNOWN";

/** Texts by the start of the SQLSTATE; the first match applies. */
const meanings: readonly (readonly [code: string, meaning: string])[] = [
  ["53100", "expected room on the server's disk, got none"],
  [
    fullCode,
    "expected a free connection, got none: a limit of the server or of the role is reached",
  ],
  ["53", "expected a server with room for more, got one without"],
  ["28", "expected a role and a password that the server takes, got others"],
  ["3D000", "expected a database that is there, got none of that name"],
  ["42501", "expected the right to do that, got none; see docs/postgres.md"],
  [readOnlyCode, "expected a server that takes changes, got one that only reads"],
  ["55P03", "expected to get a lock in time, got none: another process holds it"],
  ["57014", "expected an end in time, got none: the database is too slow"],
  ["57P", "expected a server that runs, got one that starts or ends"],
  ["40", "expected changes that go together with those of others, got a conflict again and again"],
  ["22", "expected values that a database can hold, got others"],
  ["23", "expected values that fit to what is kept, got others"],
  [lostCode, "expected a connection that holds, got its loss"],
  [
    unknownCode,
    "expected to learn whether a commit holds, got no answer: what was asked for may be kept or not",
  ],
];

/** Codes after which the connection is closed or useless; another server may accept changes. */
const endings = /^(LOST|08|57P0|25P03|25006)/;
/** The code if a prepared statement became invalid by a schema change. */
const outdated = /^(0A000|26000)/;
/** The code of a deadlock; a repetition resolves it. */
const conflicts = /^40(001|P01)/;

export function isLost({ code }: Failure): boolean {
  return endings.test(code);
}

export function isConflict({ code }: Failure): boolean {
  return conflicts.test(code);
}

export function isOutdated({ code }: Failure): boolean {
  return outdated.test(code);
}

/** A failure on its way to the caller. */
export class PostgresError extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** The error as a failure; without a code of the server, the connection counts as lost. */
export function failureOf(error: unknown): Failure {
  if (error instanceof PostgresError) return error.failure;
  if (error instanceof ShredwayError) return { code: "", message: error.message };
  const code =
    error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
  const isServers = error instanceof Error && "severity" in error && code !== "";
  // An error for several addresses has no message.
  return { code: isServers ? code : lostCode, message: messageOf(error) || code };
}

/** ShredwayError "store_failed" for a failure of the database `name`. */
export function storeFailure(name: string, { code, message }: Failure): ShredwayError {
  const meaning = meanings.find(([known]) => code.startsWith(known))?.[1];
  const words = [message, code].filter((part) => part !== "").join("; ");
  return new ShredwayError(
    "store_failed",
    `${name}: ${meaning === undefined ? words : `${meaning} (${words})`}`,
    { details: { database: name, code } },
  );
}
