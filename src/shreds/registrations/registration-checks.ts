// Checks of one entry: which transaction is it, what does it tip, how old is it?
//
// Called by registrar.ts for each entry, before signatures. Pure; every refusal says what was expected
// and what came, and never quotes a transaction.

import { ShredwayError } from "../../core/errors.ts";
import { defaultSlotNs } from "../../core/solana-constants.ts";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import {
  readTransactionText,
  type TransactionReader,
} from "../../core/transactions/transaction-text.ts";
import type {
  RegistrationEntry,
  RegistrationReason,
  RegistrationResult,
} from "./registration-types.ts";

export type Refused = Extract<RegistrationResult, { readonly accepted: false }>;

/** Clocks and nodes differ by so much. */
const slotsAhead = 32n;
export const tipWindowMs = 24 * 3_600_000;
/** More was never issued; sums of what is larger would not fit where sums are kept. */
const lamportsMax = 2n ** 53n - 1n;

export function refusal(
  reason: RegistrationReason,
  message: string,
  signature: string | null = null,
): Refused {
  return { accepted: false, reason, message, signature };
}

export function readEntry(
  { transaction }: RegistrationEntry,
  reader: TransactionReader,
): TransactionFacts | Refused {
  try {
    return readTransactionText("transaction", transaction, null, reader);
  } catch (thrown) {
    if (!(thrown instanceof ShredwayError)) throw thrown;
    const isVersion = thrown.reason === "transaction_version";
    return refusal(isVersion ? "transaction_version" : "transaction_invalid", thrown.message);
  }
}

export function checkTip(
  { tipLamports, signature }: TransactionFacts,
  addresses: ReadonlySet<string>,
): Refused | null {
  if (tipLamports > lamportsMax) {
    const message = `tip: expected at most ${lamportsMax} lamports, got ${tipLamports}`;
    return refusal("transaction_invalid", message, signature);
  }
  if (tipLamports > 0n) return null;
  const message = `tip: expected a transfer to one of ${[...addresses].join(", ")}, got 0 lamports`;
  return refusal("tip_missing", message, signature);
}

export interface PresentSlot {
  /** null: unknown, and nothing is checked. */
  readonly slot: bigint | null;
  /** Measured; null: unknown. */
  readonly slotNs: bigint | null;
}

export function checkSlot(slot: bigint, present: PresentSlot, signature: string): Refused | null {
  if (present.slot === null) return null;
  const latest = present.slot + slotsAhead;
  if (slot > latest) {
    return refusal("slot_ahead", `slot: expected at most ${latest}, got ${slot}`, signature);
  }
  const slotNs = present.slotNs !== null && present.slotNs > 0n ? present.slotNs : defaultSlotNs;
  const oldest = present.slot - (BigInt(tipWindowMs) * 1_000_000n) / slotNs;
  if (slot >= oldest) return null;
  const expected = `slot: expected one of the last 24 hours, ${oldest} or later`;
  return refusal("slot_too_old", `${expected}, got ${slot}`, signature);
}
