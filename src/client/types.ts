// The client's own types and lists of states: parameters, and responses with other field names.
//
// All other responses are in responses.ts, as the service sends them.

import type {
  EndState,
  NextAltValidator,
  RegisteredKey,
  SubmissionState,
  TipFloorEntry,
  TipHistoryView,
  TipPercentiles,
} from "./responses.ts";

export type {
  Destination,
  EndState,
  KeySet,
  NonceInfo,
  PublishedKey,
  RateLimitNotice,
  Receipt,
  ReceiptEnd,
  ReceiptTransaction,
  Region,
  RegisteredKey,
  RegisteredKeys,
  Registration,
  RegistrationReceipt,
  StatusEvent,
  StatusUpdate,
  SubmissionState,
  TierEvent,
  TierView,
  TransactionPush,
  TransactionPushes,
  TransactionPushFilter,
  TransactionStatus,
} from "./responses.ts";

/** A signed, serialised transaction: bytes, or their base64 (or base58) text. */
export type TransactionInput = Uint8Array | string;

export const endStates = [
  "landed",
  "landed_failed",
  "expired",
  "superseded",
  "rejected",
] as const satisfies readonly EndState[];
export const submissionStates = [
  "open",
  ...endStates,
] as const satisfies readonly SubmissionState[];

export interface BundleReceipt {
  readonly signatures: readonly string[];
  /** null: a proxy removed the header. */
  readonly bundleId: string | null;
}

/** Landed tips of the last 15 minutes, in lamports. */
export interface TipSnapshot extends TipPercentiles {
  readonly windowStart: TipFloorEntry["window_start"];
  readonly stale: TipFloorEntry["stale"];
}

/** Landed tips by quarter hour, ascending. */
export interface TipHistory {
  readonly period: TipHistoryView["period"];
  readonly resolutionSeconds: bigint;
  /** Time of the newest entry with landed tips; null: none in the period. */
  readonly newest: string | null;
  /** True if no tip landed in the last quarter hour, or the last refresh is missing. */
  readonly stale: boolean;
  readonly entries: readonly TipQuarter[];
}

/** The 15 minutes before `time`, in lamports. */
export interface TipQuarter {
  readonly time: string;
  readonly count: bigint;
  /** Null: no tip landed. */
  readonly percentiles: Omit<TipPercentiles, "time" | "count"> | null;
}

export interface TipRegistration {
  readonly transaction: TransactionInput;
  /** Slot whose shreds made you send the transaction; the current slot if none did. */
  readonly slot: bigint | number;
  /** The fee payer's signature over tipProofMessage: 64 bytes, or their base58 or base64. */
  readonly proof?: string | Uint8Array;
}

/** The statement that a key signs as publicKeyProofMessage. */
export interface PublicKeyStatement {
  /** `account` of getPublicKeys. */
  readonly account: string;
  /** Base58. */
  readonly publicKey: string;
  readonly purpose: RegisteredKey["purpose"];
  /** At most an hour ahead, in ISO 8601 and UTC. */
  readonly expiresAt: string;
}

export interface PublicKeyRegistration extends Omit<PublicKeyStatement, "account"> {
  /** The key's signature over publicKeyProofMessage: 64 bytes, or their base58 or base64. */
  readonly signature: string | Uint8Array;
}

export interface AltLeader {
  readonly pubkey: NextAltValidator["pubkey"];
  readonly leaderSlot: NextAltValidator["leader_slot"];
  readonly contextSlot: NextAltValidator["context_slot"];
}
