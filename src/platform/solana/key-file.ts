// Key pairs in files of Solana's tools, and the derived keys of nonce accounts.
//
// A file is a JSON array of 64 numbers: the 32 bytes of the Ed25519 private key (the seed), then the
// public key. It is read at startup, and the sandbox creates one. The file controls money, so it must be
// private to its owner. None of its bytes may reach an error, a log or any object except the signer.

import { createHmac, randomBytes } from "node:crypto";
import type { ShredwayError } from "../../core/errors.ts";
import { KeyPair } from "../../core/key-pair.ts";
import type { NonceKeys, Signer } from "../../gateway/nonces/types.ts";
import { createPrivateFile, privateFileRefused, readPrivateFile } from "./private-file.ts";

const seedBytes = 32;
const pairBytes = 64;
/** 64 numbers of three digits, with much white space. */
const fileBytesMax = 4096;
const what = "key file";

function refused(path: string, expected: string, got: string): ShredwayError {
  return privateFileRefused({ path, what }, expected, got);
}

function parseNumbers(path: string, text: string): Buffer {
  const expected = `a JSON array of ${pairBytes} numbers from 0 to 255`;
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw refused(path, expected, "no JSON"); // the parser's own message quotes the text
  }
  if (!Array.isArray(json)) throw refused(path, expected, "JSON of another kind");
  if (json.length !== pairBytes) throw refused(path, expected, `${json.length} elements`);
  const isByte = (one: unknown): one is number =>
    typeof one === "number" && Number.isInteger(one) && one >= 0 && one <= 255;
  const numbers: readonly unknown[] = json;
  if (!numbers.every(isByte)) throw refused(path, expected, "an invalid element");
  return Buffer.from(numbers);
}

/**
 * The seed in the file, 32 bytes, for callers that sign themselves; they must clear it afterwards.
 * Throws ShredwayError "config_invalid", which names the file and quotes none of it.
 */
export function readSeed(path: string): Uint8Array {
  const bytes = readPrivateFile({ path, what }, fileBytesMax);
  const pair = parseNumbers(path, bytes.toString("utf8"));
  bytes.fill(0);
  const seed = Uint8Array.from(pair.subarray(0, seedBytes));
  const isPair = pair.subarray(seedBytes).equals(new KeyPair(seed).publicKey);
  pair.fill(0);
  if (isPair) return seed;
  seed.fill(0);
  throw refused(path, "the public key of the private key before it", "another one");
}

/** Throws like readSeed. */
export function readKeyPair(path: string): KeyPair {
  const seed = readSeed(path);
  const pair = new KeyPair(seed);
  seed.fill(0);
  return pair;
}

/**
 * A new key pair in a new file with mode 0600, on disk when the call returns. The file appears with its
 * complete content or not at all. Throws ShredwayError "config_invalid" if the file exists or cannot be
 * created.
 */
export function makeKeyFile(path: string): KeyPair {
  const seed = randomBytes(seedBytes);
  const pair = new KeyPair(seed);
  try {
    createPrivateFile({ path, what }, JSON.stringify([...seed, ...pair.publicKey]));
  } finally {
    seed.fill(0);
  }
  return pair;
}

// The derivation must never change, because existing accounts are found by it.
const accountLabel = "shredway nonce account 1";
const authorityLabel = "shredway nonce authority 1";
/** A derivation takes about 0.1 ms, and keys in use are needed repeatedly. */
const derivedMax = 4096;

/**
 * HMAC-SHA-512 of label, zero and u64 index under the master secret; the first half is the seed.
 */
class DerivedKeys implements NonceKeys {
  readonly funding: Signer;
  readonly #master: KeyedHash;
  readonly #authorities = new Map<number, Signer>();

  constructor(funding: Signer, master: KeyedHash) {
    this.funding = funding;
    this.#master = master;
  }

  account(index: number): Signer {
    return this.#derive(accountLabel, index);
  }

  authority(index: number): Signer {
    const known = this.#authorities.get(index);
    if (known) return known;
    if (this.#authorities.size >= derivedMax) this.#authorities.clear();
    const authority = this.#derive(authorityLabel, index);
    this.#authorities.set(index, authority);
    return authority;
  }

  #derive(label: string, index: number): Signer {
    const message = Buffer.concat([Buffer.from(`${label}\0`), Buffer.alloc(8)]);
    message.writeBigUInt64LE(BigInt(index), message.length - 8);
    const hash = this.#master(message);
    const pair = new KeyPair(hash.subarray(0, seedBytes));
    hash.fill(0);
    return pair;
  }
}

type KeyedHash = (message: Uint8Array) => Buffer;

/**
 * The funding key and the derived keys of these files. Without the second file, the first one is also
 * the master secret. Throws like readSeed.
 */
export function openNonceKeys(fundingKeyFile: string, authorityKeyFile = fundingKeyFile) {
  const funding = readKeyPair(fundingKeyFile);
  const seed = readSeed(authorityKeyFile);
  return nonceKeysOf(funding, seed);
}

/** `master`: 32 bytes; never changed afterwards. */
export function nonceKeysOf(funding: Signer, master: Uint8Array): NonceKeys {
  return new DerivedKeys(funding, (message) =>
    createHmac("sha512", master).update(message).digest(),
  );
}
