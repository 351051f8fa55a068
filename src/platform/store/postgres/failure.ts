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
  ["53100", "the disk of the server is full"],
  [fullCode, "no free connection: the limit of the server or of the role is reached"],
  ["53", "the server is out of resources"],
  ["28", "the server rejected the role or the password"],
  ["3D000", "no database of that name exists"],
  ["42501", "the role lacks a privilege; see docs/postgres.md"],
  [readOnlyCode, "the server is read-only"],
  ["55P03", "lock time-out: another process holds the lock"],
  ["57014", "statement time-out: the database is too slow"],
  ["57P", "the server is starting or shutting down"],
  ["40", "repeated conflicts with changes of other processes"],
  ["22", "invalid value for a column"],
  ["23", "constraint violation"],
  [lostCode, "the connection to the server was lost"],
  [unknownCode, "the result of a commit is unknown: the change may be stored or not"],
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

/** The driver's error if the server asks for a password and the URL has none. */
const noPassword = /client password must be a (non-empty )?string/;

/** The error as a failure; without a code of the server, the connection counts as lost. */
export function failureOf(error: unknown): Failure {
  if (error instanceof PostgresError) return error.failure;
  if (error instanceof ShredwayError) return { code: "", message: error.message };
  if (error instanceof Error && noPassword.test(error.message)) {
    const message =
      "the server asked for a password, got none; set it in data.postgres, in PGPASSWORD or in ~/.pgpass";
    return { code: "28P01", message };
  }
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
