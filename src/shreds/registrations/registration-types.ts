// Types of tip registration: which account paid which tip for shreds, and whether the tip counts.
//
// registrar.ts checks entries, pending-registrations.ts holds the registrations whose landing is not yet
// confirmed, and platform/store/tables/registration-store.ts persists them. Times are wall-clock
// milliseconds of TierAccounting.

/** pending: landing not confirmed. counted: in the sum for 24 hours. dropped: never counts. */
export const registrationStates = ["pending", "counted", "dropped"] as const;
type RegistrationState = (typeof registrationStates)[number];

/** How the payer assigned the tip to the account: see payer-proof.ts. */
export const proofKinds = ["memo", "reference", "signature"] as const;
export type ProofKind = (typeof proofKinds)[number];

/** Why an entry is rejected or a registration is dropped. Identifiers are stable across releases. */
export const registrationReasons = [
  /** Not an object with the text `transaction` and the integer `slot`. */
  "entry_invalid",
  "transaction_invalid",
  "transaction_version",
  "signature_invalid",
  /** The proof is not the fee payer's signature for this account, or the memo names another account. */
  "proof_invalid",
  /** No transfer to a shred-tip address. */
  "tip_missing",
  "slot_ahead",
  /** The slot is older than 24 hours. */
  "slot_too_old",
  /** Its first signature is already registered, by this or another account. */
  "registered_before",
  /** It landed and failed. */
  "landed_failed",
  /** It landed, but the balance of the tip addresses did not increase. */
  "refunded",
  /** It did not land before its blockhash or nonce expired, or before the age limit. */
  "expired",
  /** The payer proved that the tip belongs to another account. */
  "claimed",
  /** The limit of concurrent checks or pending registrations is reached; the client may retry. */
  "overloaded",
  /** It could not be persisted; the client may retry. */
  "store_failed",
] as const;
export type RegistrationReason = (typeof registrationReasons)[number];

export interface Registration {
  /** The first signature, base58. */
  readonly signature: string;
  readonly accountId: string;
  /** Sum that its instructions transfer to shred-tip addresses. */
  readonly lamports: bigint;
  /** Slot that triggered the transaction, as the client registered it. */
  readonly slot: bigint;
  /** Time of the first registration, by any account: a claim does not extend the 24 hours. */
  readonly registeredMs: number;
  /** Recent blockhash or value of the durable nonce, 32 bytes. */
  readonly lifetime: Uint8Array;
  /** Durable nonce account, 32 bytes; null: the transaction uses none. */
  readonly nonceAccount: Uint8Array | null;
  /** null: the payer proved nothing, so a registration with a proof replaces this one. */
  readonly proof: ProofKind | null;
  readonly state: RegistrationState;
  /** When it was counted or dropped. */
  readonly settledMs: number | null;
  /**
   * Amount in the sum: the smaller of `lamports` and the increase of the tip addresses' balance. In a
   * pending registration: that of the account from which this one claimed the tip.
   */
  readonly countedLamports: bigint | null;
  /** See CountedTip.order. */
  readonly countedOrder: bigint | null;
  /** Why it was dropped; null: it was not. */
  readonly reason: RegistrationReason | null;
  /** While it is pending: the counted tip that it replaces. Absent: none. */
  readonly claimedFrom?: ClaimedTip;
}

/** A tip that was counted for an account before the payer assigned it to another one. */
export interface ClaimedTip {
  readonly accountId: string;
  readonly order: bigint;
}

/** A registration whose landing is known. */
export type SettledTip = Pick<
  Registration,
  "signature" | "accountId" | "registeredMs" | "claimedFrom"
>;

/**
 * added: first registration of the signature. claimed: it replaced one without a proof, of another
 * account. proved: the account had registered it without a proof. refused: nothing changed.
 */
export type ClaimResult = "added" | "claimed" | "proved" | "refused";

export type Settlement = Pick<
  Registration,
  "state" | "settledMs" | "countedLamports" | "countedOrder" | "reason"
>;

/** Signatures that other nodes registered or settled; null: some may have been missed. */
export type RegistrationNewsListener = (signatures: readonly string[] | null) => void;

/** Every promise settles when the change is durable, and may reject with "store_failed". */
export interface RegistrationStore {
  /**
   * Inserts a pending registration and notifies the other nodes. False: the signature is already
   * registered, by this or another account; nothing changed.
   */
  add(registration: Registration): Promise<boolean>;
  /** Inserts a counted registration in the term of `epoch`. False: as `add`. null: that term is over. */
  addCounted(registration: Registration, epoch: bigint): Promise<boolean | null>;
  /**
   * As `add`, for a registration with a proof: it replaces one without a proof if that was dropped, or
   * was registered after `sinceMs`. A replaced tip counts for its account until `settle` of this one.
   */
  claim(registration: Registration, sinceMs: number): Promise<ClaimResult>;
  /** Returns the result that `claim` would have. */
  claimable(
    registration: Pick<Registration, "signature" | "accountId">,
    sinceMs: number,
  ): Promise<ClaimResult>;
  /**
   * Settles a pending registration in the term of `epoch` and notifies the other nodes. False: it is not
   * pending for this account. null: that term is over. In both cases nothing changed.
   */
  settle(tip: SettledTip, settlement: Settlement, epoch: bigint): Promise<boolean | null>;
  /** Whether a tip is or was counted with that order. */
  hasOrder(order: bigint): Promise<boolean>;
  /** Maps each registered signature among these to its account; used by dry runs. */
  owners(signatures: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Pending registrations after `behind` (null: from the first), by time, then signature bytes. */
  pending(
    behind: Pick<Registration, "registeredMs" | "signature"> | null,
    limit: number,
  ): Promise<Registration[]>;
  /** Returns the pending registrations among these signatures. */
  pendingOf(signatures: readonly string[]): Promise<Registration[]>;
  /** Returns how to unsubscribe. */
  onNews(listener: RegistrationNewsListener): () => void;
  /**
   * The account's registrations, also those that another account claimed, before `beforeMs` (null: the newest), newest first. At most `limit`,
   * plus all others of the last one's millisecond.
   */
  ofAccount(accountId: string, beforeMs: number | null, limit: number): Promise<Registration[]>;
  /** The largest countedOrder in the store; 0n: none. */
  lastOrder(): Promise<bigint>;
}

/** own: registrations that were dropped. claimed: those that another account claimed before they counted. */
export const droppedLists = ["own", "claimed"] as const;
export type DroppedList = (typeof droppedLists)[number];

export interface DroppedAccount {
  readonly accountId: string;
  /** When the newest registration above the limit was dropped; null: the limit holds. */
  readonly overMs: number | null;
}

/** Never deletes a pending or counted registration. Every promise may reject with "store_failed". */
export interface DroppedRegistrationStore {
  /**
   * The first account after `behind` (by id) with dropped registrations. `keptMax`: the limit of their
   * number. null: no account is left.
   */
  nextAccount(list: DroppedList, behind: string, keptMax: number): Promise<DroppedAccount | null>;
  /** Deletes some of those that were dropped at `untilMs` or before. False: none of them is left. */
  deleteSome(list: DroppedList, accountId: string, untilMs: number): Promise<boolean>;
}

/** Result of one entry. */
export type RegistrationResult =
  | {
      readonly accepted: true;
      readonly signature: string;
      /** proved: the account had registered it, and this entry adds the proof. */
      readonly state: RegistrationState | "proved";
    }
  | {
      readonly accepted: false;
      readonly reason: RegistrationReason;
      /** The error, with the expected and the received value. */
      readonly message: string;
      /** First signature; null: it could not be read. */
      readonly signature: string | null;
    };

export interface InvalidEntry {
  /** The invalid member, its value and what was expected. */
  readonly problem: string;
}

export interface RegistrationEntry {
  /** A signed transaction in base64, or in base58 if the text is not recognizable as base64. */
  readonly transaction: string;
  readonly slot: bigint;
  /** The fee payer's signature over proofMessageOf, in base58 or base64. Absent: none. */
  readonly proof?: string;
}

/** The interface for the gateway; implemented by registrar.ts. */
export interface Registrar {
  /**
   * Returns one result for each entry, in order. Accepted entries are
   * durable when it settles. `isDryRun`: checks everything, persists nothing. An invalid entry never
   * makes it reject.
   */
  register(
    accountId: string,
    entries: readonly (RegistrationEntry | InvalidEntry)[],
    isDryRun: boolean,
  ): Promise<RegistrationResult[]>;
  ofAccount(accountId: string, beforeMs: number | null, limit: number): Promise<Registration[]>;
}

/** A landed transaction at commitment "confirmed". */
export interface LandedTransaction {
  readonly slot: bigint;
  /** null: it succeeded. */
  readonly err: unknown;
  /** Change of these addresses' total balance, in lamports; may be negative. */
  readonly gainLamports: bigint;
}

/** processed: in a block that is not confirmed yet. landed: at commitment "confirmed" or "finalized". */
export type LandingState = "absent" | "processed" | "landed";

export interface LandingStates {
  /** The newest slot of the node that answered, at "processed". */
  readonly slot: bigint;
  /** One for each signature, in the same order. */
  readonly states: readonly LandingState[];
}

/** Answers of a Solana node; implemented by solana/rpc-client.ts. May reject with "rpc_failed". */
export interface LandedTransactions {
  /**
   * At most 256 signatures. Searches the node's recent blocks, or also its history; rejects if the node has
   * none.
   */
  landingStates(signatures: readonly string[], searchHistory: boolean): Promise<LandingStates>;
  /** null: neither the node's cache nor its history has it. `addresses`: base58. */
  landedTransaction(
    signature: string,
    addresses: ReadonlySet<string>,
  ): Promise<LandedTransaction | null>;
}

/** A tip that is or was in the sum. */
export interface CountedTip {
  /** 1, 2, 3, … in the order of counting; numbers may be missing but never repeat. */
  readonly order: bigint;
  readonly accountId: string;
  readonly lamports: bigint;
  /** It leaves the sum at registeredMs + window. */
  readonly registeredMs: number;
  /** When it was counted. */
  readonly countedMs: number;
  /** The tip that it replaces: same lamports, same registeredMs. Absent: none. */
  readonly claimedFrom?: ClaimedTip;
  /** Order of the tip that replaces it, as stored. Absent: none. */
  readonly claimedOrder?: bigint;
}

/**
 * The tiers of one term, as used by registrations: the clock, the epoch, and the order in which tips are
 * counted. Implemented by tiers/leader-tiers.ts, a folder that depends on this one.
 */
export interface TierAccounting {
  /** Every counted tip carries it; the store rejects the tip after a later term has begun. */
  readonly epoch: bigint;
  /** Wall-clock time that never decreases. */
  nowMs(): number;
  /** The caller must call `settleOrder` afterwards, because later tips wait for it. */
  takeOrder(): bigint;
  /** The tip with that order is persisted as counted; null: it never will be. */
  settleOrder(order: bigint, tip: CountedTip | null): void;
  /**
   * Ends the term because memory and store may differ: a later term has begun, or it is unknown whether a
   * tip is persisted. Open orders need not be settled, because the next leader reads everything again.
   */
  giveUp(): void;
}

/** Counting of tips, which only the leader does; implemented by pending-registrations.ts. */
export interface TipCounting {
  /** Starts counting for the term of `tiers`. If it rejects with "store_failed", it does not count. */
  lead(tiers: TierAccounting): Promise<void>;
  /** Stops counting. Settles when no operation of the term is in progress. Idempotent. */
  follow(): Promise<void>;
}
