// A landed transaction with its parsed wire bytes.
//
// Called by the encoders, the filters of subscriptions and getRecentPrioritizationFees. It gives
// the instructions, the writable accounts, the memos, and whether it is a vote.

import type { ExecutedTransaction } from "../chain/types.ts";
import { isStaticWritable, parseTransaction, type WireTransaction } from "../chain/wire.ts";
import { memoProgramIds, voteProgramId } from "./programs.ts";

const parsed = new WeakMap<ExecutedTransaction, WireTransaction>();

export function wireOf(transaction: ExecutedTransaction): WireTransaction {
  let wire = parsed.get(transaction);
  if (!wire) {
    wire = parseTransaction(transaction.wire);
    parsed.set(transaction, wire);
  }
  return wire;
}

/** Whether the message makes the account at `index` of all keys writable. */
export function isWritable(wire: WireTransaction, index: number): boolean {
  const staticKeys = wire.keys.length;
  if (index < staticKeys) return isStaticWritable(wire, index);
  const writable = wire.lookups.reduce((count, lookup) => count + lookup.writable.length, 0);
  return index < staticKeys + writable;
}

export function writableKeys(transaction: ExecutedTransaction): string[] {
  const wire = wireOf(transaction);
  return transaction.accountKeys.filter((_, index) => isWritable(wire, index));
}

/** A transaction that contains only a vote; it is omitted from logs and fee statistics. */
export function isVote(transaction: ExecutedTransaction): boolean {
  const { instructions } = wireOf(transaction);
  const [only] = instructions;
  if (instructions.length !== 1 || !only) return false;
  return transaction.accountKeys[only.program] === voteProgramId;
}

/** "[bytes] text; …" of the top-level memo instructions; null: none. */
export function memoOf(transaction: ExecutedTransaction): string | null {
  const memos = wireOf(transaction)
    .instructions.filter(({ program }) =>
      memoProgramIds.has(transaction.accountKeys[program] ?? ""),
    )
    .map(({ data }) => `[${data.length}] ${Buffer.from(data).toString()}`);
  return memos.length === 0 ? null : memos.join("; ");
}
