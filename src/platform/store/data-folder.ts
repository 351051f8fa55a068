// The data folder and its database file, private to their owner.
//
// Called by store.ts before the database opens the file. SQLite gives its other files the mode of the
// first one, so the first one is created here.

import { closeSync, constants, lchownSync, openSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { codeOf, messageOf, ShredwayError } from "../../core/errors.ts";
import { createFolders } from "../../core/files.ts";
import { forgetJournal } from "./journal/submission-journal.ts";
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

/** Throws if the file may exist, but this user may not look at it. */
function exists(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}

/** The database may be a link to another disk. Through a link, the lock could create any file for root. */
const createFlags = constants.O_CREAT | constants.O_WRONLY;

/**
 * Creates a file with the owner of `like`: a command that root runs must not create it for root alone,
 * because the service's user could not open it. A link gets no other owner, nor does its target.
 */
function createFile(path: string, like: string, flags: number): void {
  closeSync(openSync(path, flags, 0o600));
  const { uid, gid } = statSync(like);
  if (process.getuid?.() !== 0 || uid === 0) return;
  try {
    lchownSync(path, uid, gid);
  } catch {
    // An owner that this file system or container does not know: the file stays root's.
  }
}

/**
 * The device of the folder as the kernel's list of locks names it: "fe:00". That of stat differs on Btrfs, which
 * reports one for each subvolume.
 */
function deviceOf(directory: string): string {
  const { O_DIRECTORY, O_RDONLY } = constants;
  const folder = openSync(directory, O_RDONLY | O_DIRECTORY);
  try {
    const facts = readFileSync(`/proc/self/fdinfo/${folder}`, "utf8");
    const mount = /^mnt_id:\s*(\d+)$/m.exec(facts)?.[1];
    const mounts = readFileSync("/proc/self/mountinfo", "utf8");
    const device = new RegExp(`^${mount} \\d+ (\\d+):(\\d+) `, "m").exec(mounts);
    if (device === null) throw new Error(`expected the mount of ${directory}, got none`);
    const hex = (text = ""): string => Number(text).toString(16).padStart(2, "0");
    return `${hex(device[1])}:${hex(device[2])}`;
  } finally {
    closeSync(folder);
  }
}

/**
 * Whether a running service holds the lock of this folder; null: unknown. Reads the kernel's list of
 * locks, because an attempt to take the lock could stop a service that starts at this moment.
 */
export function isInUse(directory: string): boolean | null {
  try {
    const { ino } = statSync(join(directory, lockFileName), { bigint: true });
    return readFileSync("/proc/locks", "utf8").includes(` ${deviceOf(directory)}:${ino} `);
  } catch (error) {
    return codeOf(error) === "ENOENT" && exists(directory) ? false : null;
  }
}

function isOfMkdir(error: unknown): boolean {
  return error instanceof Error && "syscall" in error && error.syscall === "mkdir";
}

/** The problem of the folder, and its repair. */
function problemOf(directory: string, error: unknown): string {
  switch (codeOf(error)) {
    case "EACCES":
    case "EPERM":
      return (
        `${directory}: permission denied for this user (uid ${process.getuid?.()}); expected the owner of the folder: ` +
        `run the command as the user of the service, or as root (${messageOf(error)})`
      );
    case "EROFS":
      return (
        `${directory}: the file system is read-only; expected one that the service can write: mount it ` +
        `read-write, or choose another data.directory (${messageOf(error)})`
      );
    case "ENOTDIR":
    case "EEXIST":
      return `${directory}: not a folder; expected a folder, or a path that does not exist yet (${messageOf(error)})`;
    default:
      return isOfMkdir(error)
        ? `data.directory: cannot create ${directory}: ${messageOf(error)}; choose a folder on a writable file system`
        : `${directory}: ${messageOf(error)}`;
  }
}

/**
 * Whether the folder has a database. Throws ShredwayError "store_failed" if this user may not look into it.
 */
export function hasDatabase(directory: string): boolean {
  try {
    return exists(join(directory, databaseFileName));
  } catch (cause) {
    throw new ShredwayError("store_failed", problemOf(directory, cause), { cause });
  }
}

/**
 * Creates missing folders and files. `mustExist`: rejects a folder without a database. Throws
 * ShredwayError "store_failed".
 */
export function prepareDataFolder(directory: string, mustExist = false): DataFolder {
  const databasePath = join(directory, databaseFileName);
  try {
    if (!exists(databasePath)) {
      if (mustExist) throw new Error(`expected a folder with ${databaseFileName}, got none`);
      createFolders(directory, 0o700);
      forgetCommits(databasePath);
      forgetJournal(databasePath);
      createFile(databasePath, directory, createFlags);
    }
    const lockPath = join(directory, lockFileName);
    if (!exists(lockPath)) createFile(lockPath, databasePath, createFlags | constants.O_NOFOLLOW);
    return { databasePath, lockPath, warnings: warningsOf(directory, databasePath) };
  } catch (cause) {
    throw new ShredwayError("store_failed", problemOf(directory, cause), { cause });
  }
}
