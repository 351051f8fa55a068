// Keys of the sandbox: seeded key pairs, signing, and verification of submitted signatures.
//
// Called by genesis, validators, the faucet, background traffic (signing) and by the chain for
// every submission (verification). Ed25519 of node:crypto. The seed reveals the seeded keys: never
// use them for anything of value.

import { createHash, type KeyObject, verify } from "node:crypto";
import { ShredwayError } from "../../core/errors.ts";
import { KeyPair, publicKeyOf } from "../../core/key-pair.ts";
import { encodeBase58 } from "../../relay/data-plane/base58.ts";
import type { WireTransaction } from "./wire.ts";

export function sha256(...parts: readonly (string | Uint8Array)[]): Uint8Array {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

export class SandboxKeyPair extends KeyPair {
  /** 32 bytes: the Ed25519 private key. */
  readonly seed: Uint8Array;

  constructor(seed: Uint8Array) {
    super(seed);
    this.seed = seed;
  }

  /** The key pair of `seed` and `name`. */
  static named(seed: number, name: string): SandboxKeyPair {
    return new SandboxKeyPair(sha256(`shredway sandbox ${seed} ${name}`));
  }
}

/** Importing a key costs a third of a verification, and the same wallets recur. */
const importedKeysMax = 1024;
const importedKeys = new Map<string, KeyObject>();

function importKey(key: Uint8Array): KeyObject {
  const name = Buffer.from(key).toString("latin1");
  let imported = importedKeys.get(name);
  if (!imported) {
    imported = publicKeyOf(key);
    const [oldest] = importedKeys.keys();
    if (importedKeys.size >= importedKeysMax && oldest !== undefined) importedKeys.delete(oldest);
    importedKeys.set(name, imported);
  }
  return imported;
}

/** Throws ShredwayError "signature_invalid" with the first invalid signature. */
export function verifySignatures({ signatures, keys, message }: WireTransaction): void {
  for (const [index, signature] of signatures.entries()) {
    const key = keys[index];
    if (!key || !verify(null, message, importKey(key), signature)) {
      throw new ShredwayError(
        "signature_invalid",
        `signature ${index}: expected a signature of ${key ? encodeBase58(key) : "a known key"} over the message, got another`,
        { details: { index } },
      );
    }
  }
}
