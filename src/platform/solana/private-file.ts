// Files with private keys: read only if they are private to their owner, created with mode 0600.
//
// Used for key pairs of Solana's tools, the certificate of the QUIC ingress and the signing key. No error
// quotes their content.

import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  lchownSync,
  linkSync,
  openSync,
  readSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { createFolders, openRegularFile } from "../../core/files.ts";

/** All permission bits except read and write of the owner. */
const forbiddenMode = 0o177;

interface PrivateFile {
  readonly path: string;
  /** Its name in errors: "key file". */
  readonly what: string;
}

export function privateFileRefused(
  { path, what }: PrivateFile,
  expected: string,
  got: string,
): ShredwayError {
  return new ShredwayError("config_invalid", `${what} ${path}: expected ${expected}, got ${got}`);
}

/**
 * Opens the file first, so that the checked file is the one that is read. Throws "config_invalid".
 */
export function readPrivateFile(named: PrivateFile, bytesMax: number): Buffer {
  const { path, what } = named;
  const refused = (expected: string, got: string) => privateFileRefused(named, expected, got);
  const bytes = Buffer.alloc(bytesMax + 1);
  let file: number | undefined;
  try {
    file = openRegularFile(path);
    const { uid, mode } = fstatSync(file);
    const ownUid = process.geteuid?.() ?? uid;
    // Another user could change a file of theirs. A file of root is as safe as one of the own user.
    if (uid !== ownUid && uid !== 0) {
      throw refused(`a file of user ${ownUid}`, `one of user ${uid}`);
    }
    if ((mode & forbiddenMode) !== 0) {
      const got = `0${(mode & 0o777).toString(8)}`;
      throw refused("mode 0600 or stricter", `${got}; run: chmod 600 ${path}`);
    }
    let length = 0;
    while (length < bytes.length) {
      const got = readSync(file, bytes, length, bytes.length - length, null);
      if (got === 0) break;
      length += got;
    }
    if (length > bytesMax) throw refused(`at most ${bytesMax} bytes`, "more");
    return bytes.subarray(0, length);
  } catch (cause) {
    if (cause instanceof ShredwayError) throw cause;
    const message = `${what} ${path}: cannot be read: ${messageOf(cause)}`;
    throw new ShredwayError("config_invalid", message, { cause });
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/**
 * Writes a new file with mode 0600, which is on disk when the call returns. The file appears with its
 * complete content or not at all. Throws ShredwayError "config_invalid" if the file exists or cannot be
 * created.
 */
export function createPrivateFile(file: PrivateFile, text: string): void {
  // Unlike a rename, a link never replaces a file.
  writePrivateFile(file, text, (draft) => {
    try {
      linkSync(draft, file.path);
    } finally {
      unlinkSync(draft);
    }
  });
}

/** Creates the file and its folder, unless it exists. `text`: the content. Throws like createPrivateFile. */
export function ensurePrivateFile(file: PrivateFile, text: () => string): void {
  if (existsSync(file.path)) return;
  createFolders(dirname(file.path), 0o700);
  createPrivateFile(file, text());
}

/**
 * Like createPrivateFile, but replaces a file of that name at once. The new file has the owner of
 * the previous one: a service can read it if root replaced it.
 */
export function replacePrivateFile(file: PrivateFile, text: string): void {
  writePrivateFile(file, text, (draft) => {
    try {
      const before = statSync(file.path, { throwIfNoEntry: false });
      // Not through a link that the owner of the folder could put there.
      if (before && before.uid !== process.geteuid?.()) lchownSync(draft, before.uid, before.gid);
      renameSync(draft, file.path);
    } catch (error) {
      unlinkSync(draft);
      throw error;
    }
  });
}

function writePrivateFile(
  { path, what }: PrivateFile,
  text: string,
  place: (draft: string) => void,
): void {
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  const { O_CREAT, O_EXCL, O_WRONLY } = constants;
  try {
    const file = openSync(draft, O_CREAT | O_EXCL | O_WRONLY, 0o600);
    try {
      writeSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    place(draft);
    const folder = openSync(dirname(path), "r");
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  } catch (cause) {
    const message = `${what} ${path}: cannot be made: ${messageOf(cause)}`;
    throw new ShredwayError("config_invalid", message, { cause });
  }
}
