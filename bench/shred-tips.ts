// Signed tips for shreds, and bodies of POST /shred-pay: what the bench's customer sends.
//
// Legacy transactions with one transfer, written by hand: a library would take most of the bench.

import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";

const pkcs8Ed25519 = Buffer.from("302e020100300506032b657004220420", "hex");
const transferInstruction = 2;

export class Payer {
  readonly #privateKey: KeyObject;
  readonly #publicKey: Buffer;
  #made = 0;

  /** `seed`: 32 bytes. */
  constructor(seed: Uint8Array) {
    this.#privateKey = createPrivateKey({
      key: Buffer.concat([pkcs8Ed25519, seed]),
      format: "der",
      type: "pkcs8",
    });
    const spki = createPublicKey(this.#privateKey).export({ format: "der", type: "spki" });
    this.#publicKey = spki.subarray(-32);
  }

  /** In base64; every one is another transaction. */
  tip(to: Uint8Array, lamports: bigint): string {
    const data = Buffer.alloc(12);
    data.writeUInt32LE(transferInstruction, 0);
    data.writeBigUInt64LE(lamports, 4);
    const lifetime = Buffer.alloc(32, 9);
    lifetime.writeUInt32LE(++this.#made, 0);
    const message = Buffer.concat([
      // One signer; one account that is only read, the System program.
      Buffer.from([1, 0, 1, 3]),
      this.#publicKey,
      to,
      Buffer.alloc(32),
      lifetime,
      Buffer.from([1, 2, 2, 0, 1, data.length]),
      data,
    ]);
    const signature = sign(null, message, this.#privateKey);
    return Buffer.concat([Buffer.from([1]), signature, message]).toString("base64");
  }
}

export function registrationBody(transactions: readonly string[]): string {
  return JSON.stringify(transactions.map((transaction) => ({ transaction, slot: 1 })));
}
