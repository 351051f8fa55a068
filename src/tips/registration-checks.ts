// Checks of one entry: which transaction is it, what does it tip, how old is it?
//
// Called by registrar.ts for each entry, before signatures. Pure; every refusal says what was expected
// and what came, and never quotes a transaction.

import { ShredwayError } from "../core/errors.ts";
import type { TransactionFacts } from "../transactions/facts.ts";
import type {
  RegistrationEntry,
  RegistrationReason,
  RegistrationResult,
} from "./registration-types.ts";

export type Refused = Extract<RegistrationResult, { readonly accepted: false }>;

export interface EntryReader {
  /** Throws ShredwayError "transaction_invalid" or "transaction_version". */
  inspect(wire: Uint8Array): TransactionFacts;
  /** Base58; nothing when it is none. */
  decode(text: string): Uint8Array | null | undefined;
}

/** Clocks and nodes differ by so much. */
const slotsAhead = 32n;
export const tipWindowMs = 24 * 3_600_000;
/** So long a slot is while nobody has measured it. */
const usualSlotNs = 400_000_000n;
/** Of 4,096 bytes, the largest transaction. */
const base64CharactersMax = 5464;
/** Of 1,232 bytes, as nodes bound it: base58 costs the square of the length. */
const base58CharactersMax = 1683;
const base58Only = /^[1-9A-HJ-NP-Za-km-z]+$/;
/** More was never issued; sums of what is larger would not fit where sums are kept. */
const lamportsMax = 2n ** 53n - 1n;

export function refusal(
  reason: RegistrationReason,
  message: string,
  signature: string | null = null,
): Refused {
  return { accepted: false, reason, message, signature };
}

function fromBase64(text: string): Uint8Array | string {
  if (text.length > base64CharactersMax) {
    return `expected at most ${base64CharactersMax} characters of base64, got ${text.length}`;
  }
  const bytes = Buffer.from(text, "base64");
  if (text !== "" && bytes.toString("base64") === text) return bytes;
  return `expected a transaction in base64, got ${text.length} other characters`;
}

function fromBase58(text: string, reader: EntryReader): Uint8Array | string {
  if (text.length > base58CharactersMax) {
    return `expected at most ${base58CharactersMax} characters of base58 (larger ones: base64), got ${text.length}`;
  }
  return (
    reader.decode(text) ?? `expected a transaction in base58, got ${text.length} other characters`
  );
}

function inspected(bytes: Uint8Array | string, reader: EntryReader): TransactionFacts | Refused {
  if (typeof bytes === "string") return refusal("transaction_invalid", `transaction: ${bytes}`);
  try {
    return reader.inspect(bytes);
  } catch (thrown) {
    if (!(thrown instanceof ShredwayError)) throw thrown;
    const isVersion = thrown.reason === "transaction_version";
    return refusal(isVersion ? "transaction_version" : "transaction_invalid", thrown.message);
  }
}

export const noEntry = refusal(
  "entry_invalid",
  "entry: expected an object with the text `transaction` and the integer `slot` from 0 to 2^64 - 1, got something else",
);

/** What is of base58's letters alone may be base64 all the same: then whichever is a transaction. */
export function readEntry(
  { transaction: text }: RegistrationEntry,
  reader: EntryReader,
): TransactionFacts | Refused {
  const inBase64 = (): TransactionFacts | Refused => inspected(fromBase64(text), reader);
  if (!base58Only.test(text)) return inBase64();
  const inBase58 = inspected(fromBase58(text, reader), reader);
  if (!("accepted" in inBase58)) return inBase58;
  const other = text.length % 4 === 0 ? inBase64() : inBase58;
  return "accepted" in other ? inBase58 : other;
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
  const slotNs = present.slotNs !== null && present.slotNs > 0n ? present.slotNs : usualSlotNs;
  const oldest = present.slot - (BigInt(tipWindowMs) * 1_000_000n) / slotNs;
  if (slot >= oldest) return null;
  const expected = `slot: expected one of the last 24 hours, ${oldest} or later`;
  return refusal("slot_too_old", `${expected}, got ${slot}`, signature);
}
