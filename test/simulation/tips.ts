// Tips of the simulated customers: signed transactions with one transfer, byte by byte.

import { createHash, createPrivateKey, type KeyObject, sign } from "node:crypto";

/** The shred-tip address of the simulated service. */
export const tipAddress = new Uint8Array(createHash("sha256").update("shred tips").digest());

const pkcs8Prefix = Buffer.from("302e020100300506032b657004220420", "hex");
const publicKeyBytes = 32;
const systemProgram = new Uint8Array(32);
const transferInstruction = 2;

interface Transfer {
  /** 32 bytes. */
  readonly to: Uint8Array;
  /** One transfer for each. */
  readonly lamports: readonly number[];
  readonly blockhash: Uint8Array;
}

export class Wallet {
  /** 32 bytes. */
  readonly address: Uint8Array;
  readonly #key: KeyObject;

  /** `name`: seeds the key. */
  constructor(name: string) {
    const seed = createHash("sha256").update(name).digest();
    this.#key = createPrivateKey({
      key: Buffer.concat([pkcs8Prefix, seed]),
      format: "der",
      type: "pkcs8",
    });
    const { x = "" } = this.#key.export({ format: "jwk" });
    this.address = new Uint8Array(Buffer.from(x, "base64url").subarray(0, publicKeyBytes));
  }

  /** A legacy transaction in base64. `number` makes it unique. */
  tip(lamports: number, number: number): string {
    const blockhash = createHash("sha256").update(`blockhash ${number}`).digest();
    return this.transfer({ to: tipAddress, lamports: [lamports], blockhash }).toString("base64");
  }

  /** A legacy transaction with one transfer for each amount. */
  transfer({ to, lamports, blockhash }: Transfer): Buffer {
    const instructions = lamports.map((amount) => {
      const data = Buffer.alloc(12);
      data.writeUInt32LE(transferInstruction);
      data.writeBigUInt64LE(BigInt(amount), 4);
      // An instruction of account 2, with accounts 0 and 1.
      return Buffer.concat([Buffer.from([2, 2, 0, 1, data.length]), data]);
    });
    const message = Buffer.concat([
      // One signer; one read-only account without a signature: the program. Three accounts.
      Buffer.from([1, 0, 1, 3]),
      this.address,
      to,
      systemProgram,
      blockhash,
      Buffer.from([instructions.length]),
      ...instructions,
    ]);
    return Buffer.concat([Buffer.from([1]), this.sign(message), message]);
  }

  /** 64 bytes. */
  sign(message: Uint8Array): Buffer {
    return sign(null, message, this.#key);
  }
}
