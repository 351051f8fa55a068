// Key files of Solana's programs: a JSON array of the 64 bytes of a key pair.

import { writeFileSync } from "node:fs";
import { KeyPair } from "../../../src/core/key-pair.ts";

/** Writes the pair of a seed of 32 equal bytes, readable by its owner only. */
export function writeKeyFile(path: string, seedByte: number): KeyPair {
  const seed = new Uint8Array(32).fill(seedByte);
  const pair = new KeyPair(seed);
  writeFileSync(path, JSON.stringify([...seed, ...pair.publicKey]), { mode: 0o600 });
  return pair;
}
