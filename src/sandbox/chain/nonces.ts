// Durable nonces: the conditions for using one instead of a recent blockhash.
//
// Called by the executor. The rules of the runtime: the first instruction advances the nonce
// account, which is writable and among the static keys; the stored value is the transaction's
// blockhash; the authority signs that instruction; and the value differs from the one that an
// advance would write now. Account data: u32 version, u32 state, 32 authority, 32 value, u64
// lamports per signature.

import { systemProgram } from "../../core/transactions/build-legacy.ts";
import { sameKey } from "./addresses.ts";
import { sha256 } from "./keys.ts";
import type { VmAccount } from "./svm.ts";
import { isStaticWritable, type WireTransaction } from "./wire.ts";

export const nonceAccountBytes = 80;
const advanceInstruction = 4;
const currentVersion = 1;
const initialized = 1;
const lamportsPerSignature = 5000n;

/** The value that an advance writes in a block whose parent's blockhash is `blockhash`. */
function nonceValueOf(blockhash: Uint8Array): Uint8Array {
  return sha256("DURABLE_NONCE", blockhash);
}

/**
 * The nonce account that the first instruction advances; null: that instruction does not advance
 * one.
 */
export function advancedNonceKey(transaction: WireTransaction): Uint8Array | null {
  const [first] = transaction.instructions;
  if (!first || !sameKey(transaction.keys[first.program], systemProgram)) return null;
  const { data } = first;
  const isAdvance = data[0] === advanceInstruction && !data[1] && !data[2] && !data[3];
  if (data.length < 4 || !isAdvance) return null;
  const index = first.accounts[0] ?? transaction.keys.length;
  const key = transaction.keys[index];
  return key && isStaticWritable(transaction, index) ? key : null;
}

/** Whether `account` makes this transaction valid although its blockhash is not recent. */
export function allowsNonce(
  transaction: WireTransaction,
  account: VmAccount | null,
  lastBlockhash: Uint8Array,
): boolean {
  if (account?.data.length !== nonceAccountBytes || !sameKey(account.owner, systemProgram)) {
    return false;
  }
  const view = new DataView(account.data.buffer, account.data.byteOffset);
  if (view.getUint32(0, true) !== currentVersion || view.getUint32(4, true) !== initialized) {
    return false;
  }
  const value = account.data.subarray(40, 72);
  if (!sameKey(transaction.blockhash, value)) return false;
  if (sameKey(value, nonceValueOf(lastBlockhash))) return false;
  const authority = account.data.subarray(8, 40);
  const signers = transaction.instructions[0]?.accounts ?? new Uint8Array(0);
  return signers.some(
    (index) =>
      index < transaction.requiredSignatures && sameKey(transaction.keys[index], authority),
  );
}

/** `account` after an advance. */
export function advanced(account: VmAccount, lastBlockhash: Uint8Array): VmAccount {
  const data = Uint8Array.from(account.data);
  data.set(nonceValueOf(lastBlockhash), 40);
  new DataView(data.buffer).setBigUint64(72, lamportsPerSignature, true);
  return { ...account, data };
}
