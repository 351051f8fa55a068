// Signed transactions of many kinds with a tip, without a chain.

import {
  AddressLookupTableAccount,
  type Keypair,
  PublicKey,
  SystemProgram,
  Transaction,
  TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from "@solana/web3.js";
import { tipWallet } from "../gateway/gateway.ts";
import { alice, bob, transferOf } from "./chain.ts";

export const blockhash = new PublicKey(new Uint8Array(32).fill(7)).toBase58();

export interface TippingChoices {
  readonly tip?: bigint;
  /** Makes transactions differ. */
  readonly amount?: bigint;
  readonly from?: Keypair;
  /** Each signs too (legacy transactions only). */
  readonly coSigners?: readonly Keypair[];
  /** An account that no instruction uses. */
  readonly mention?: PublicKey;
}

function instructionsOf({ tip = 10_000n, amount = 1n, from = alice, mention }: TippingChoices) {
  const instructions: TransactionInstruction[] = [transferOf(from, bob, amount)];
  if (tip > 0n) instructions.push(transferOf(from, tipWallet, tip));
  if (mention) {
    instructions.push(
      new TransactionInstruction({
        programId: SystemProgram.programId,
        keys: [{ pubkey: mention, isSigner: false, isWritable: false }],
        data: Buffer.from([]),
      }),
    );
  }
  return instructions;
}

export function tipping(choices: TippingChoices = {}): Uint8Array {
  const from = choices.from ?? alice;
  const transaction = new Transaction({
    feePayer: from.publicKey,
    blockhash,
    lastValidBlockHeight: 0, // only for clients that wait
  });
  const { coSigners = [] } = choices;
  transaction.add(...instructionsOf(choices));
  for (const signer of coSigners) transaction.add(transferOf(signer, bob, 1n));
  transaction.sign(from, ...coSigners);
  return Uint8Array.from(transaction.serialize());
}

function tableOf(addresses: readonly PublicKey[]): AddressLookupTableAccount {
  const deactivationSlot = 2n ** 64n - 1n;
  const state = { deactivationSlot, lastExtendedSlot: 0, lastExtendedSlotStartIndex: 0 };
  return new AddressLookupTableAccount({
    key: new PublicKey(new Uint8Array(32).fill(9)),
    state: { ...state, addresses: [...addresses] },
  });
}

/** `tabled`: the addresses of a lookup table. */
export function tippingV0(
  choices: TippingChoices = {},
  tabled: readonly PublicKey[] = [],
): Uint8Array {
  const from = choices.from ?? alice;
  const message = new TransactionMessage({
    payerKey: from.publicKey,
    recentBlockhash: blockhash,
    instructions: instructionsOf(choices),
  }).compileToV0Message(tabled.length === 0 ? [] : [tableOf(tabled)]);
  const transaction = new VersionedTransaction(message);
  transaction.sign([from]);
  return transaction.serialize();
}

export function base64(wire: Uint8Array): string {
  return Buffer.from(wire).toString("base64");
}

/** The same with an invalid signature. */
export function forged(wire: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(wire);
  copy[5] = (copy[5] ?? 0) ^ 1;
  return copy;
}
