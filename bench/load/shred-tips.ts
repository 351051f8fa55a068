// Signed tips for shreds, and bodies of POST /shred-pay: the requests of the bench's customer.
//
// Legacy transactions with one transfer, encoded by hand: a library would use most of the bench's
// CPU time.

import { KeyPair } from "../../src/core/key-pair.ts";

const transferInstruction = 2;

export class Payer {
  readonly #keyPair: KeyPair;
  #made = 0;

  /** `seed`: 32 bytes. */
  constructor(seed: Uint8Array) {
    this.#keyPair = new KeyPair(seed);
  }

  /** Transactions in base64; all of them differ. */
  tip(to: Uint8Array, lamports: bigint): string {
    const data = Buffer.alloc(12);
    data.writeUInt32LE(transferInstruction, 0);
    data.writeBigUInt64LE(lamports, 4);
    const lifetime = Buffer.alloc(32, 9);
    lifetime.writeUInt32LE(++this.#made, 0);
    const message = Buffer.concat([
      // One signer; one read-only account, the System program.
      Buffer.from([1, 0, 1, 3]),
      this.#keyPair.publicKey,
      to,
      Buffer.alloc(32),
      lifetime,
      Buffer.from([1, 2, 2, 0, 1, data.length]),
      data,
    ]);
    const signature = this.#keyPair.sign(message);
    return Buffer.concat([Buffer.from([1]), signature, message]).toString("base64");
  }
}

export function registrationBody(transactions: readonly string[]): string {
  return JSON.stringify(transactions.map((transaction) => ({ transaction, slot: 1 })));
}
