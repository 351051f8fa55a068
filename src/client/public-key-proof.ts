// The text that an Ed25519 key signs so that an account may register its public key.
//
// The signature goes into `signature` of registerPublicKey. The private key stays with its owner.

import type { PublicKeyStatement } from "./types.ts";

export function publicKeyProofMessage({
  account,
  publicKey,
  purpose,
  expiresAt,
}: PublicKeyStatement): Uint8Array {
  return new TextEncoder().encode(
    `shredway: register public key\naccount: ${account}\npublic key: ${publicKey}\n` +
      `purpose: ${purpose}\nexpires: ${expiresAt}\n`,
  );
}
