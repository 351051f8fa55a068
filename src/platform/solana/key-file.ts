// Key pairs in files as Solana's tools write them, and the nonce accounts' keys that come of one.
//
// A JSON array of 64 numbers: the 32 bytes of the private key as Ed25519 defines it (the seed), then the
// public key. Read by the composition at the start, made by the sandbox. Who holds such a file spends its
// money: it must be for its owner only, and none of its bytes may reach an error, a log or anything
// beside the object that signs.

import { createHmac, randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { openRegularFile } from "../../core/files.ts";
import { KeyPair } from "../../core/key-pair.ts";
import type { NonceKeys, Signer } from "../../gateway/nonces/types.ts";

const seedBytes = 32;
const pairBytes = 64;
/** 64 numbers of three digits, with much white space between them. */
const fileBytesMax = 4096;
/** Everything but reading and writing by the owner. */
const forbiddenMode = 0o177;

function refused(path: string, expected: string, got: string): ShredwayError {
  return new ShredwayError("config_invalid", `key file ${path}: expected ${expected}, got ${got}`);
}

/** Opening, so that what is looked at is what is read. Throws "config_invalid". */
function readPrivately(path: string): Buffer {
  const bytes = Buffer.alloc(fileBytesMax + 1);
  let file: number | undefined;
  try {
    file = openRegularFile(path);
    const { uid, mode } = fstatSync(file);
    const ownUid = process.geteuid?.() ?? uid;
    // Another user's file is another user's to change: root's alone is as good as one's own.
    if (uid !== ownUid && uid !== 0) {
      throw refused(path, `a file of user ${ownUid}`, `one of user ${uid}`);
    }
    if ((mode & forbiddenMode) !== 0) {
      const got = `0${(mode & 0o777).toString(8)}`;
      throw refused(path, "mode 0600 or stricter", `${got}; run: chmod 600 ${path}`);
    }
    let length = 0;
    while (length < bytes.length) {
      const got = readSync(file, bytes, length, bytes.length - length, null);
      if (got === 0) break;
      length += got;
    }
    if (length > fileBytesMax) throw refused(path, `at most ${fileBytesMax} bytes`, "more");
    return bytes.subarray(0, length);
  } catch (cause) {
    if (cause instanceof ShredwayError) throw cause;
    const message = `key file ${path}: cannot be read: ${messageOf(cause)}`;
    throw new ShredwayError("config_invalid", message, { cause });
  } finally {
    if (file !== undefined) closeSync(file);
  }
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
  if (!numbers.every(isByte)) throw refused(path, expected, "an element that is none");
  return Buffer.from(numbers);
}

/**
 * The seed in the file, 32 bytes, for what signs by itself: whoever asks clears it afterwards. Throws
 * ShredwayError "config_invalid" that names the file and quotes nothing of it.
 */
export function readSeed(path: string): Uint8Array {
  const bytes = readPrivately(path);
  const pair = parseNumbers(path, bytes.toString("utf8"));
  bytes.fill(0);
  const seed = Uint8Array.from(pair.subarray(0, seedBytes));
  const isPair = pair.subarray(seedBytes).equals(new KeyPair(seed).publicKey);
  pair.fill(0);
  if (isPair) return seed;
  seed.fill(0);
  throw refused(path, "the public key of the private key before it", "another one");
}

/** Throws as readSeed. */
export function readKeyPair(path: string): KeyPair {
  const seed = readSeed(path);
  const pair = new KeyPair(seed);
  seed.fill(0);
  return pair;
}

/**
 * A new key pair in a new file, mode 0600, on the disk when it returns. The name appears with the whole
 * content or not at all. Throws ShredwayError "config_invalid" when there is a file of that name or none
 * can be made.
 */
export function makeKeyFile(path: string): KeyPair {
  const seed = randomBytes(seedBytes);
  const pair = new KeyPair(seed);
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  const { O_CREAT, O_EXCL, O_WRONLY } = constants;
  try {
    const file = openSync(draft, O_CREAT | O_EXCL | O_WRONLY, 0o600);
    try {
      writeSync(file, JSON.stringify([...seed, ...pair.publicKey]));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    try {
      linkSync(draft, path); // unlike a rename, never over another file
    } finally {
      unlinkSync(draft);
    }
    const folder = openSync(dirname(path), "r");
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  } catch (cause) {
    const message = `key file ${path}: cannot be made: ${messageOf(cause)}`;
    throw new ShredwayError("config_invalid", message, { cause });
  } finally {
    seed.fill(0);
  }
  return pair;
}

// What keys are derived by can never change: the accounts that exist are found by it.
const accountLabel = "shredway nonce account 1";
const authorityLabel = "shredway nonce authority 1";
/** Deriving one takes some 0.1 ms, and those in use come again and again. */
const derivedMax = 4096;

/** HMAC-SHA-512 of label, zero and u64 index under the master secret; its first half is the seed. */
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
 * Funding key and derived keys of these files; without the second one the first one is the master secret,
 * too. Throws as readSeed.
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
