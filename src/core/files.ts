// Files: reading a whole small text file, with a bound and a clear error.
//
// Configuration and leader schedules come through here. Never for captures or anything that is read
// while traffic runs.

import { closeSync, openSync, readSync } from "node:fs";
import { messageOf, type Reason, ShredwayError } from "./errors.ts";

/**
 * The UTF-8 text of `path`. Throws ShredwayError `reason` when it cannot be read, holds more than
 * `bytesMax` bytes, or is not UTF-8.
 */
export function readTextFile(path: string, bytesMax: number, reason: Reason): string {
  const buffer = Buffer.allocUnsafe(bytesMax + 1);
  let length = 0;
  try {
    const file = openSync(path, "r");
    try {
      // The size that stat tells is 0 for pipes and /proc, so read until the end or the bound.
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
