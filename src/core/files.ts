// Files: opens regular files only, reads small text files up to a limit, and creates folders.
//
// Used for the configuration, leader schedules, captures and the data folder. Reading is synchronous, so files that
// could block are refused: a pipe without a writer would stop signals and reloads.

import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  type Stats,
  statSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import { messageOf, type PlainReason, ShredwayError } from "./errors.ts";

function kindOf(stats: Stats): string {
  if (stats.isDirectory()) return "a folder";
  if (stats.isFIFO()) return "a pipe";
  if (stats.isSocket()) return "a socket";
  return "a device";
}

/** A start reads its modules in parallel, which takes about 200 files. */
export const openFilesLeast = 256;

/** Files and sockets that this process may have open; null: unknown. */
export function openFilesLimit(): number | null {
  try {
    const found = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return found === undefined ? null : Number(found);
  } catch {
    return null;
  }
}

/** Changes whenever the file is written or replaced; empty if it is missing. Follows links. */
export function fileFingerprint(path: string): string {
  try {
    const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [ino, size, mtimeNs, ctimeNs].join();
  } catch {
    return "";
  }
}

/** Opens `path` for reading. Throws the system's error, or an error if it is not a regular file. */
export function openRegularFile(path: string): number {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new Error(`expected a regular file, got ${kindOf(stats)}`);
    return file;
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

/**
 * The UTF-8 text of `path`. Throws ShredwayError `reason` if it cannot be read, has more than `bytesMax`
 * bytes, or is not UTF-8.
 */
export function readTextFile(path: string, bytesMax: number, reason: PlainReason): string {
  const buffer = Buffer.allocUnsafe(bytesMax + 1);
  let length = 0;
  try {
    const file = openRegularFile(path);
    try {
      // stat reports size 0 in /proc, and the size may change: read until the end or the limit.
      while (length < buffer.length) {
        const got = readSync(file, buffer, length, buffer.length - length, null);
        if (got === 0) break;
        length += got;
      }
    } finally {
      closeSync(file);
    }
  } catch (cause) {
    throw new ShredwayError(reason, `${path}: cannot be read: ${messageOf(cause)}`, { cause });
  }
  if (length > bytesMax) {
    throw new ShredwayError(reason, `${path}: expected at most ${bytesMax} bytes, got more`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(buffer.subarray(0, length));
  } catch (cause) {
    throw new ShredwayError(reason, `${path}: expected UTF-8 text, got other bytes`, { cause });
  }
}

/**
 * Creates the folder `path` and its missing parents. Throws the system's error. Node's recursive mkdir
 * never returns if the system reports a missing parent below an existing folder, as /proc does.
 */
export function createFolders(path: string, mode: number): void {
  const folders = [resolve(path)];
  for (let at = dirname(resolve(path)); !existsSync(at); at = dirname(at)) folders.push(at);
  for (const folder of folders.toReversed()) {
    try {
      mkdirSync(folder, { mode });
    } catch (error) {
      const isThere = statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false;
      if (!isThere) throw error;
    }
  }
}
