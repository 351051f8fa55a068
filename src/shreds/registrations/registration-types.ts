// Tip registration: who paid which tip for shreds, and whether it counts.
//
// Only types. registrar.ts checks entries, pending-registrations.ts holds those that wait for their
// landing, platform/store/tables/registration-store.ts persists them. Times are wall milliseconds of
// TierAccounting.

/** pending: not known to have landed. counted: in the sum for 24 hours. dropped: will never be. */
export const registrationStates = ["pending", "counted", "dropped"] as const;
type RegistrationState = (typeof registrationStates)[number];

/** Why an entry is not taken, or a registration is dropped. Stable words. */
export const registrationReasons = [
  /** Not an object with the text `transaction` and the integer `slot`. */
  "entry_invalid",
  "transaction_invalid",
  "transaction_version",
  "signature_invalid",
  /** No transfer to a shred-tip address. */
  "tip_missing",
  "slot_ahead",
  /** Older than 24 hours. */
  "slot_too_old",
  /** Its first signature was registered before, by whomever. */
  "registered_before",
  /** It landed and failed. */
  "landed_failed",
  /** It landed and the tip addresses gained nothing by it. */
  "refunded",
  /** It did not land while it could. */
  "expired",
  /** No room for its checks at present; may be sent again. */
  "overloaded",
  /** It could not be kept; may be sent again. */
  "store_failed",
] as const;
export type RegistrationReason = (typeof registrationReasons)[number];

export interface Registration {
  /** Base58 of the first signature. */
  readonly signature: string;
  readonly accountId: string;
  /** Paid to shred-tip addresses by its instructions. */
  readonly lamports: bigint;
  /** As registered: the slot that triggered the transaction. */
  readonly slot: bigint;
  readonly registeredMs: number;
  /** 32 bytes: recent blockhash, or value of the durable nonce. */
  readonly lifetime: Uint8Array;
  /** Account of the durable nonce, 32 bytes; null: none. */
  readonly nonceAccount: Uint8Array | null;
  readonly state: RegistrationState;
  /** When it counted or was dropped. */
  readonly settledMs: number | null;
  /** In the sum: `lamports`, or what the addresses gained when that is less. */
  readonly countedLamports: bigint | null;
  /** CountedTip.order. */
  readonly countedOrder: bigint | null;
  /** Of a dropped one. */
  readonly reason: RegistrationReason | null;
}

export type Settlement = Pick<
  Registration,
  "state" | "settledMs" | "countedLamports" | "countedOrder" | "reason"
>;

/** Signatures that other nodes registered or settled; null: some may have been missed. */
export type RegistrationNewsListener = (signatures: readonly string[] | null) => void;

/** Every promise settles when the change is durable, and may reject with "store_failed". */
export interface RegistrationStore {
  /**
   * A pending one. Other nodes hear of it. False: that signature was registered before, by whomever;
   * nothing changed.
   */
  add(registration: Registration): Promise<boolean>;
  /** One that counts at once, in the term of `epoch`. False: as `add`. null: that term is over. */
  addCounted(registration: Registration, epoch: bigint): Promise<boolean | null>;
  /**
   * In the term of `epoch`. Other nodes hear of it. False: it is not pending (any more). null: that
   * term is over. Nothing changed then.
   */
  settle(signature: string, settlement: Settlement, epoch: bigint): Promise<boolean | null>;
  /** Of these signatures those that are registered, with their owners: for a dry run. */
  owners(signatures: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Pending ones behind the given one (null: from the first), ascending by time, signature bytes. */
  pending(
    behind: Pick<Registration, "registeredMs" | "signature"> | null,
    limit: number,
  ): Promise<Registration[]>;
  /** Of these signatures those that are pending. */
  pendingOf(signatures: readonly string[]): Promise<Registration[]>;
  /** Returns how to end that. */
  onNews(listener: RegistrationNewsListener): () => void;
  /**
   * The account's newest ones registered before `beforeMs` (null: the newest), newest first. At most
   * `limit`, and all of the same millisecond as the last.
   */
  ofAccount(accountId: string, beforeMs: number | null, limit: number): Promise<Registration[]>;
  /** The largest countedOrder there is; 0n: none. */
  lastOrder(): Promise<bigint>;
}

/** What came of one entry. */
export type RegistrationResult =
  | { readonly accepted: true; readonly signature: string; readonly state: RegistrationState }
  | {
      readonly accepted: false;
      readonly reason: RegistrationReason;
      /** What was expected and what came. */
      readonly message: string;
      /** Where it could be read. */
      readonly signature: string | null;
    };

export interface RegistrationEntry {
  /** Base64 (or base58 without a mark of base64) of a signed transaction. */
  readonly transaction: string;
  readonly slot: bigint;
}

/** Registration as the gateway sees it; registrar.ts is the real one. */
export interface Registrar {
  /**
   * One result for each entry (null: the entry has another shape), in order. Accepted ones are durable
   * when it settles. `isDryRun`: checks everything, keeps nothing. Never rejects for what is in an entry.
   */
  register(
    accountId: string,
    entries: readonly (RegistrationEntry | null)[],
    isDryRun: boolean,
  ): Promise<RegistrationResult[]>;
  ofAccount(accountId: string, beforeMs: number | null, limit: number): Promise<Registration[]>;
}

/** What the chain says of a landed transaction, at "confirmed". */
export interface LandedTransaction {
  readonly slot: bigint;
  /** null: it succeeded. */
  readonly err: unknown;
  /** Lamports that these addresses gained by it, all together; negative: they lost. */
  readonly gainLamports: bigint;
}

/** A node's answers; solana/rpc-client.ts is the real one. May reject with "rpc_failed". */
export interface LandedTransactions {
  /** null: not landed as far as the node knows, its history included. `addresses`: base58. */
  landedTransaction(
    signature: string,
    addresses: ReadonlySet<string>,
  ): Promise<LandedTransaction | null>;
}

/** A tip that is in the sum, or was. */
export interface CountedTip {
  /** 1, 2, 3, … in the order of counting; a number may be missing, none comes twice. */
  readonly order: bigint;
  readonly accountId: string;
  readonly lamports: bigint;
  /** It leaves the sum at registeredMs + window. */
  readonly registeredMs: number;
  /** When it was counted. */
  readonly countedMs: number;
}

/**
 * The tiers of one term as registrations see them: clock, epoch, and the order in which tips are counted.
 * tiers/leader-tiers.ts is the real one; that folder stands above this one.
 */
export interface TierAccounting {
  /** What is counted carries it, and is refused when a later term has begun. */
  readonly epoch: bigint;
  /** Wall time that never goes back. */
  nowMs(): number;
  /** `settleOrder` must follow, whatever comes of it: later tips wait for it. */
  takeOrder(): bigint;
  /** The tip of that order is persisted as counted, or (null) will never be. */
  settleOrder(order: bigint, tip: CountedTip | null): void;
  /**
   * Memory and store differ: a later term has begun, or it is unknown whether a tip is persisted. Open
   * orders need not be settled: the next leader reads everything anew.
   */
  giveUp(): void;
}

/** What only the leader does; pending-registrations.ts is the real one. */
export interface TipCounting {
  /** This node counts, for the term of `tiers`. Rejects with "store_failed": then it does not. */
  lead(tiers: TierAccounting): Promise<void>;
  /** Another node counts. Settles when nothing of the term is under way. Idempotent. */
  follow(): Promise<void>;
}
