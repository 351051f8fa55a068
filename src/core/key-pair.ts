// Ed25519 key pairs from seeds of 32 bytes.
//
// Used for everything that signs: nonce authorities, identities towards leaders, the sandbox's wallets, the
// bench's customers. The private key stays inside the object.

import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { pubkeyOf } from "./primitives.ts";

const seedBytes = 32;
// DER prefix of an Ed25519 key, before its 32 bytes (RFC 8410).
const privatePrefix = Buffer.from("302e020100300506032b657004220420", "hex");
const publicPrefix = Buffer.from("302a300506032b6570032100", "hex");

/** `seed`: an Ed25519 private key (32 bytes). Throws a TypeError for another length. */
export function privateKeyOf(seed: Uint8Array): KeyObject {
  if (seed.length !== seedBytes) {
    throw new TypeError(`Ed25519 seed: expected ${seedBytes} bytes, got ${seed.length}`);
  }
  const key = Buffer.concat([privatePrefix, seed]);
  const keyPair = createPrivateKey({ key, format: "der", type: "pkcs8" });
  key.fill(0);
  return keyPair;
}

/** Creates a key for verification from 32 bytes. Throws Node's error for another length. */
export function publicKeyOf(key: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.concat([publicPrefix, key]), format: "der", type: "spki" });
}

// The y coordinates, little-endian, of the points of order 1, 2, 4 and 8 on edwards25519, and the two
// encodings above the field's prime that also mean 0 and 1. For such a key, signatures exist that are
// valid for any message. RFC 8032, 5.1; the values follow from the curve's equation.
const smallOrderKeys: ReadonlySet<string> = new Set([
  "00".repeat(32),
  `01${"00".repeat(31)}`,
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  `ec${"ff".repeat(30)}7f`,
  `ed${"ff".repeat(30)}7f`,
  `ee${"ff".repeat(30)}7f`,
]);

/** Whether a key is a point of small order, for either sign bit of x. No key pair has such a key. */
export function isSmallOrderKey(key: Uint8Array): boolean {
  const y = Buffer.from(key);
  y[31] = (y[31] ?? 0) & 0x7f;
  return smallOrderKeys.has(y.toString("hex"));
}

export class KeyPair {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  /** The same in base58. */
  readonly address: string;
  readonly #private: KeyObject;

  /** `seed`: 32 bytes; no reference to it is stored. Throws a TypeError for another length. */
  constructor(seed: Uint8Array) {
    this.#private = privateKeyOf(seed);
    const spki = createPublicKey(this.#private).export({ format: "der", type: "spki" });
    this.publicKey = Uint8Array.from(spki.subarray(publicPrefix.length));
    this.address = pubkeyOf(this.publicKey);
  }

  /** 64 bytes. */
  sign(message: Uint8Array): Uint8Array {
    return Uint8Array.from(sign(null, message, this.#private));
  }
}
