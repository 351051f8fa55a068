// The data folder and its database file, private to their owner.
//
// Called by store.ts before the database opens the file. SQLite gives its other files the mode of the
// first one, so the first one is created here.

import { closeSync, existsSync, mkdirSync, openSync, statSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { forgetCommits } from "./sqlite/commit-count.ts";

export const databaseFileName = "shredway.db";
/** Held by the service that uses the folder; commands that change keys do not need it. */
const lockFileName = "service.lock";

/** Permission bits of group and others. */
const othersMask = 0o077;
const othersWriteMask = 0o022;

interface DataFolder {
  readonly databasePath: string;
  readonly lockPath: string;
  /** Problems for the operator: modes that give others access. */
  readonly warnings: readonly string[];
}

function modeText(mode: number): string {
  return `0${(mode & 0o777).toString(8)}`;
}

function warningsOf(directory: string, databasePath: string): string[] {
  const folderMode = statSync(directory).mode;
  const fileMode = statSync(databasePath).mode;
  const letsIn = (folderMode & othersMask) !== 0;
  const isReadable = letsIn && (fileMode & othersMask) !== 0;
  const isWritable = (folderMode & othersWriteMask) !== 0;
  if (!isReadable && !isWritable) return [];
  return [
    `${directory}: expected modes 0700 (folder) and 0600 (files), got ` +
      `${modeText(folderMode)} and ${databaseFileName} ${modeText(fileMode)}: other users of this ` +
      `machine can ${isWritable ? "change" : "read"} the data; run: ` +
      `chmod -R go= ${directory}`,
  ];
}

/** The problem of the folder, and its repair. */
function refusalOf(directory: string, cause: unknown): string {
  const key = `data.directory: ${directory}`;
  const code = cause instanceof Error && "code" in cause ? cause.code : "";
  if (code === "EEXIST" || code === "ENOTDIR") {
    return `${key} is a file, or a part of its path is one; expected a folder: rename the file, or set another path`;
  }
  if (code === "EACCES" || code === "EPERM" || code === "EROFS") {
    const user = userInfo().username;
    return (
      `${key} is not writable by the user ${user} (${code}); expected a folder of that user: run ` +
      `chown -R ${user} ${directory}, or set another path`
    );
  }
  return `${key}: ${messageOf(cause)}`;
}

/**
 * Creates missing folders and files. `mustExist`: rejects a folder without a database. Throws
 * ShredwayError "store_failed".
 */
export function prepareDataFolder(directory: string, mustExist = false): DataFolder {
  const databasePath = join(directory, databaseFileName);
  try {
    if (!existsSync(databasePath)) {
      if (mustExist) throw new Error(`expected a folder with ${databaseFileName}, got none`);
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      forgetCommits(databasePath);
      closeSync(openSync(databasePath, "a", 0o600));
    }
    const lockPath = join(directory, lockFileName);
    if (!existsSync(lockPath)) closeSync(openSync(lockPath, "a", 0o600));
    return { databasePath, lockPath, warnings: warningsOf(directory, databasePath) };
  } catch (cause) {
    throw new ShredwayError("store_failed", refusalOf(directory, cause), { cause });
  }
}
