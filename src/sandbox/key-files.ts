// Key pairs of the sandbox in files: made at the first start, kept beside the database.
//
// Called by open-sandbox.ts before the chain begins. The one that pays for nonce accounts must stay: the
// accounts' addresses follow from it. The other one is the identity that leaders see.

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { makeKeyFile, readKeyPair } from "../platform/solana/key-file.ts";

const fileNames = { funding: "nonce-funding.json", identity: "identity.json" } as const;

export interface SandboxKeyFile {
  readonly path: string;
  /** Base58. */
  readonly address: string;
}

/** Throws ShredwayError "config_invalid" when the file is another's, or cannot be made. */
export function ensureKeyFile(folder: string, name: keyof typeof fileNames): SandboxKeyFile {
  const path = join(folder, fileNames[name]);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { address } = existsSync(path) ? readKeyPair(path) : makeKeyFile(path);
  return { path, address };
}
