// Key files of the sandbox: created at the first start and stored next to the database.
//
// Called by open-sandbox.ts before the chain begins. The key that pays for nonce accounts must not
// change, because the accounts' addresses derive from it. The other keys are the identity for
// leaders, the relay's key at the block engine, and the key of its subscriber.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { messageOf, ShredwayError } from "../core/errors.ts";
import { createFolders } from "../core/files.ts";
import { makeKeyFile, readKeyPair } from "../platform/solana/key-file.ts";

const fileNames = {
  funding: "nonce-funding.json",
  identity: "identity.json",
  shredstream: "shredstream.json",
  subscriber: "subscriber.json",
} as const;

export interface SandboxKeyFile {
  readonly path: string;
  /** Public key in base58. */
  readonly address: string;
}

/**
 * Throws ShredwayError "config_invalid" if the file belongs to another user or cannot be created.
 */
export function ensureKeyFile(folder: string, name: keyof typeof fileNames): SandboxKeyFile {
  const path = join(folder, fileNames[name]);
  if (existsSync(path)) return { path, address: readKeyPair(path).address };
  try {
    createFolders(folder, 0o700);
    return { path, address: makeKeyFile(path).address };
  } catch (cause) {
    throw new ShredwayError(
      "config_invalid",
      `data folder ${folder}: ${messageOf(cause)}; expected a folder that this user can write: choose one with ` +
        "--data DIRECTORY",
      { cause },
    );
  }
}
