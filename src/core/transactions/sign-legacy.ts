// Builds and signs legacy transactions of one program, as wire bytes.
//
// Pure. Used for managed nonce accounts and by the warm-up.

import { parsePubkey, pubkeyBytes } from "../primitives.ts";

interface MessageSigner {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  sign(message: Uint8Array): Uint8Array;
}

interface Instruction {
  /** Indexes of the message's keys. */
  readonly accounts: readonly number[];
  readonly data: Uint8Array;
}

interface Message {
  /** Signers in the order of their keys; the first one pays. */
  readonly signers: readonly MessageSigner[];
  readonly readonlySigned: number;
  /** Keys behind the signers; the program of all instructions is last. */
  readonly others: readonly Uint8Array[];
  readonly readonlyUnsigned: number;
  readonly blockhash: string;
  readonly instructions: readonly Instruction[];
}

export interface SignedTransaction {
  readonly wire: Uint8Array;
  /** First signature, 64 bytes. */
  readonly signature: Uint8Array;
}

/**
 * Signs a message. Every length must be below 128: one byte of compact-u16. Throws ShredwayError
 * "value_invalid" for an invalid blockhash.
 */
export function signLegacy(message: Message): SignedTransaction {
  const { signers, others, instructions } = message;
  const keys = [...signers.map(({ publicKey }) => publicKey), ...others];
  const bytes = Buffer.concat([
    Uint8Array.of(signers.length, message.readonlySigned, message.readonlyUnsigned, keys.length),
    ...keys,
    pubkeyBytes(parsePubkey(message.blockhash)),
    Uint8Array.of(instructions.length),
    ...instructions.flatMap(({ accounts, data }) => [
      Uint8Array.of(keys.length - 1, accounts.length, ...accounts, data.length),
      data,
    ]),
  ]);
  const signatures = signers.map((signer) => signer.sign(bytes));
  const [signature = new Uint8Array(64)] = signatures;
  return { wire: Buffer.concat([Uint8Array.of(signers.length), ...signatures, bytes]), signature };
}
