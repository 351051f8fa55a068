// Types of the client's own: what it takes, and the responses that it gives other names.
//
// The other responses are in responses.ts, in the form in which the service writes them.

import type {
  EndState,
  NextAltValidator,
  SubmissionState,
  TipFloorEntry,
  TipPercentiles,
} from "./responses.ts";

export type {
  Destination,
  EndState,
  NonceInfo,
  Region,
  Registration,
  RegistrationReceipt,
  StatusEvent,
  StatusUpdate,
  SubmissionState,
  TierEvent,
  TierView,
  TransactionStatus,
} from "./responses.ts";

/** Signed and serialised: bytes, or their base64 (or base58) text. */
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

/** What landed tips of the last 15 minutes paid, in lamports. */
export interface TipSnapshot extends TipPercentiles {
  readonly windowStart: TipFloorEntry["window_start"];
  readonly stale: TipFloorEntry["stale"];
}

export interface TipRegistration {
  readonly transaction: TransactionInput;
  /** That triggered the transaction. */
  readonly slot: bigint | number;
}

export interface AltLeader {
  readonly pubkey: NextAltValidator["pubkey"];
  readonly leaderSlot: NextAltValidator["leader_slot"];
  readonly contextSlot: NextAltValidator["context_slot"];
}
