// What people read when PostgreSQL refuses: the database, what that means for them, its own words.
//
// The database's password never stands in them: it is named by host and name alone.

import { messageOf, ShredwayError } from "../../../core/errors.ts";
import type { Failure } from "../batch.ts";

/** Of the failure when the connection was lost, and nothing can be said of what it was at. */
export const lostCode = "LOST";
/** The server's own, when it takes no changes: a replica, or one that was set so. */
export const readOnlyCode = "25006";
/** The server's own, when it lets no more in, or no more of this role. */
export const fullCode = "53300";
/** Of the failure when nobody knows whether a commit holds. */
export const unknownCode = "UNKNOWN";

/** By the beginning of the SQLSTATE; the first that fits. */
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

/** Of those the connection does not live on, or is of no more use: another server may take changes. */
const endings = /^(LOST|08|57P0|25P03|25006)/;
/** What the connection prepared before somebody changed the schema. */
const outdated = /^(0A000|26000)/;
/** Two changed the same in different order: the same again does it. */
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

/** A failure on its way to whoever asked. */
export class PostgresError extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** What was thrown, as a failure: without a code of the server's, the connection is lost. */
export function failureOf(error: unknown): Failure {
  if (error instanceof PostgresError) return error.failure;
  if (error instanceof ShredwayError) return { code: "", message: error.message };
  const code =
    error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
  const isServers = error instanceof Error && "severity" in error && code !== "";
  // Several addresses that all refuse have no message.
  return { code: isServers ? code : lostCode, message: messageOf(error) || code };
}

/** ShredwayError "store_failed" for a failure at the database called `name`. */
export function storeFailure(name: string, { code, message }: Failure): ShredwayError {
  const meaning = meanings.find(([known]) => code.startsWith(known))?.[1];
  const words = [message, code].filter((part) => part !== "").join("; ");
  return new ShredwayError(
    "store_failed",
    `${name}: ${meaning === undefined ? words : `${meaning} (${words})`}`,
    { details: { database: name, code } },
  );
}
