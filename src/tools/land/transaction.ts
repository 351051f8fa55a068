// The transactions of a landing benchmark: a tip, and a mark that differs. Pure.
//
// With the mark "amount", the payer transfers a different amount to itself, which costs nothing. With "memo",
// a memo has the run, the round and the sender.

import type { KeyPair } from "../../core/key-pair.ts";
import { parsePubkey, pubkeyBytes } from "../../core/primitives.ts";
import {
  type BuildInstruction,
  buildTransaction,
  systemProgram,
  transferInstruction,
  u32Bytes,
  u64Bytes,
} from "../../core/transactions/build-legacy.ts";
import { type LandPlan, priceOf, type SenderPlan } from "./plan.ts";

const computeBudgetProgram = pubkeyBytes(
  parsePubkey("ComputeBudget111111111111111111111111111111"),
);
const memoProgram = pubkeyBytes(parsePubkey("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr"));
const recentBlockhashes = pubkeyBytes(parsePubkey("SysvarRecentB1ockHashes11111111111111111111"));
const advanceNonce = 4;
const amountsPerRun = 1_000_000;

/** The largest amount of a mark. The payer must own it, and keeps it. */
export const markLamportsMax = 2n * BigInt(amountsPerRun);

/** Compute units that the transactions of a mark need, with a reserve. */
export const computeUnitsOf = { amount: 1000, memo: 60_000 } as const;

interface Mark {
  /** Eight hex digits, different for each run. */
  readonly run: string;
  /** From 1. */
  readonly round: number;
  /** Number of the sender in the plan. */
  readonly sender: number;
}

interface TransactionOptions {
  readonly plan: LandPlan;
  readonly sender: SenderPlan;
  readonly payer: KeyPair;
  /** Base58; null: the transaction has no tip. */
  readonly tipTo: string | null;
  readonly mark: Mark;
  /** Recent blockhash, or the nonce's value: base58. */
  readonly lifetime: string;
}

function accounts(...uses: readonly (readonly [Uint8Array, "w" | "r" | "sw" | "s"])[]) {
  return uses.map(([key, use]) => ({
    key,
    isSigner: use.startsWith("s"),
    isWritable: use.endsWith("w"),
  }));
}

function markInstruction({ plan, payer, mark }: TransactionOptions): BuildInstruction {
  if (plan.mark === "memo") {
    const text = `shredway land ${mark.run} ${mark.round} ${plan.senders[mark.sender]?.name}`;
    return { program: memoProgram, accounts: [], data: Buffer.from(text) };
  }
  // Another run on the same blockhash begins elsewhere; an equal amount would only be the same transaction.
  const first = Number.parseInt(mark.run, 16) % amountsPerRun;
  const amount = first + mark.round * plan.senders.length + mark.sender;
  return transferInstruction(payer.publicKey, payer.publicKey, BigInt(amount));
}

const signatureBytes = 64;

/** The only signature: the payer's. */
export function signatureOfWire(wire: Uint8Array): Uint8Array {
  return wire.subarray(1, 1 + signatureBytes);
}

/** The signed part. */
export function messageOfWire(wire: Uint8Array): Uint8Array {
  return wire.subarray(1 + signatureBytes);
}

/** Signed wire bytes. Throws ShredwayError "value_invalid" for invalid base58. */
export function landTransaction(options: TransactionOptions): Uint8Array {
  const { plan, sender, payer, tipTo, lifetime } = options;
  const instructions: BuildInstruction[] = [];
  if (plan.nonceAccount !== null) {
    const nonce = pubkeyBytes(parsePubkey(plan.nonceAccount));
    instructions.push({
      program: systemProgram,
      accounts: accounts([nonce, "w"], [recentBlockhashes, "r"], [payer.publicKey, "s"]),
      data: u32Bytes(advanceNonce),
    });
  }
  const budget = (...parts: readonly Uint8Array[]) =>
    instructions.push({
      program: computeBudgetProgram,
      accounts: [],
      data: Buffer.concat(parts),
    });
  budget(Uint8Array.of(2), u32Bytes(plan.computeUnits));
  const price = priceOf(plan, sender);
  if (price > 0n) budget(Uint8Array.of(3), u64Bytes(price));
  instructions.push(markInstruction(options));
  if (sender.tipLamports > 0n && tipTo !== null) {
    const to = pubkeyBytes(parsePubkey(tipTo));
    instructions.push(transferInstruction(payer.publicKey, to, sender.tipLamports));
  }
  return buildTransaction([payer], instructions, pubkeyBytes(parsePubkey(lifetime)));
}
