// Types of this folder: what is submitted, where it can go, and what is known about it.
//
// The gateway creates requests, routes send transactions, the store persists records. The code in this
// folder stands between them and opens no socket or file and reads no clock of its own. Wall-clock times
// are nanoseconds since 1970.

import type { TransactionFacts } from "../../core/transactions/facts.ts";
import type { BlockhashState } from "../../core/transactions/lifetimes.ts";
import type { TakenRequest } from "./taken-request.ts";

// ---- what is submitted ----

export type { LeaderContext } from "../../relay/leaders/leader-context.ts";

export type SubmitMethod = "sendTransaction" | "sendBundle" | "sendBatch" | "sendIdeal" | "sendAlt";

/** How a submission arrived, if not in JSON or by a POST. "websocket": in a binary message. */
export const ingresses = ["quic", "websocket"] as const;
export type Ingress = (typeof ingresses)[number];

export interface SubmitOptions {
  /** Send through SWQoS partners only. */
  readonly swqosOnly: boolean;
  /** Use only routes that are safe from front-running; wait while a leader of the deny list is near. */
  readonly mevProtect: boolean;
  /** Drop a transaction that would fail instead of landing it as failed. */
  readonly revertProtection: boolean;
  /** How often the service may send it again; null: until its end. */
  readonly resendsMax: number | null;
  /** sendAlt: use the routes of sendTransaction if no partner leads or accepts it. Default: false. */
  readonly enableFallback?: boolean;
  /**
   * sendIdeal: signature of the other transaction of the pair. The pipeline sets it, so that the next
   * process knows which one superseded which.
   */
  readonly pairedWith?: string;
}

/** One transaction, or a bundle, which lands as a whole or not at all. */
export interface SubmitRequest {
  readonly accountId: string;
  readonly method: SubmitMethod;
  /** One, or the 1 to 5 of a bundle, in order. Their format, tips and signatures have been checked. */
  readonly transactions: readonly TransactionFacts[];
  /** Atomic, consecutive, in order. The bundle's id is the SHA-256 (hex) of its signatures joined by ",". */
  readonly isBundle: boolean;
  readonly options: SubmitOptions;
  /** When the request arrived. */
  readonly receivedNs: bigint;
  readonly ingress?: Ingress | undefined;
  /** The sends of the fast path, which came before the request was read; only for a single transaction. */
  readonly taken?: TakenRequest | undefined;
}

// ---- where it can go ----

export const routeKinds = ["swqos", "block-builder", "scheduler", "alt-partner", "tpu"] as const;
export type RouteKind = (typeof routeKinds)[number];

export type SendMode = "transaction" | "bundle";

/** Properties of a route that plan.ts reads; constant while the route exists. */
export interface RouteCapabilities {
  readonly name: string;
  readonly kind: RouteKind;
  readonly modes: readonly SendMode[];
  /** Largest transaction; a v1 transaction has up to 4,096 bytes. */
  readonly transactionBytesMax: number;
  readonly mevSafe: boolean;
  /** Smallest sum of the tips of everything that one attempt sends. */
  readonly minimumTipLamports: bigint;
  /** Identities (base58) whose slots this route reaches; null: every leader's. */
  readonly leaders: ReadonlySet<string> | null;
}

/** The transactions that one attempt sends over one route. */
export interface OutboundTransaction {
  readonly mode: SendMode;
  readonly transactions: readonly TransactionFacts[];
  readonly revertProtection: boolean;
  /** From 1. */
  readonly attempt: number;
  /** Identity (base58) of the leader to send to, for routes that reach leaders directly. */
  readonly leader: string | null;
  /** Leaders (base58) that must not get it, because it is protected; empty: none. */
  readonly deniedLeaders: ReadonlySet<string>;
  /** Wall-clock time after which it must not be sent. */
  readonly deadlineNs: bigint;
  /** The route adopts its send, instead of sending the transaction. */
  readonly taken?: TakenRequest | undefined;
  /** Called once with "sent" or "dropped", then at most once with the other side's answer. */
  report(event: RouteEvent): void;
}

export type RouteEvent =
  /** The kernel accepted the last byte. */
  | { readonly kind: "sent"; readonly atNs: bigint; readonly bytes: number }
  | { readonly kind: "acknowledged"; readonly atNs: bigint }
  /** The other side rejected it. `isFinal`: it will always reject these bytes. */
  | {
      readonly kind: "refused";
      readonly atNs: bigint;
      readonly reason: string;
      readonly isFinal: boolean;
    }
  /**
   * No valid answer: connection lost, timeout, or malformed answer. The transaction may have arrived, except
   * if `isUnsent`: then no connection could be made.
   */
  | {
      readonly kind: "failed";
      readonly atNs: bigint;
      readonly reason: string;
      readonly isUnsent?: boolean;
    }
  /** Not sent: its deadline passed in the queue, or the route closed. */
  | { readonly kind: "dropped"; readonly atNs: bigint; readonly reason: string };

export interface RouteCounts {
  readonly offered: bigint;
  /** Not queued: the queue was full or the route was down. */
  readonly turnedAway: bigint;
  readonly sent: bigint;
  readonly acknowledged: bigint;
  readonly refused: bigint;
  readonly failed: bigint;
  readonly dropped: bigint;
}

export interface RouteSnapshot extends RouteCounts {
  readonly name: string;
  readonly kind: RouteKind;
  /** "unknown": it was not tried yet; it accepts submissions. */
  readonly health: "up" | "down" | "failing" | "unknown";
  /** Why it is down, or its last failure; empty: none. */
  readonly lastFailure: string;
  /** Wall time of that failure; null: none, or its time is unknown. */
  readonly lastFailureNs: bigint | null;
  readonly queued: number;
  readonly inFlight: number;
  /** From `offer` until the kernel accepted the last byte, over the last minutes; null: nothing sent. */
  readonly sendP50Us: number | null;
  readonly sendP99Us: number | null;
}

export interface Route {
  readonly capabilities: RouteCapabilities;
  /** False while it fails; the route retries by itself. */
  readonly isUp: boolean;
  /**
   * Queues it, or adopts what the fast path sent for it; false: the queue is full or the route down or closed,
   * and `report` is never called.
   */
  offer(outbound: OutboundTransaction): boolean;
  /** Whether the fast path sent it through this route. Absent: no. */
  hasSendOf?(taken: TakenRequest): boolean;
  /**
   * Sends what was offered in this turn of the event loop now instead of at its end, as far as connections
   * are free. Reports may come within the call. Absent: nothing waits for the end of a turn.
   */
  flush?(): void;
  snapshot(): RouteSnapshot;
  /** Reports queued transactions as dropped. Settles when requests in progress have ended or were aborted. */
  close(): Promise<void>;
}

// ---- what is known about it ----

export const endStates = ["landed", "landed_failed", "expired", "superseded", "rejected"] as const;
export type EndState = (typeof endStates)[number];

/**
 * update_parent: the leader began the block again after it (an update-parent marker). block_abandoned: the
 * node does not know it any longer.
 */
export const withdrawalReasons = ["update_parent", "block_abandoned"] as const;
export type WithdrawalReason = (typeof withdrawalReasons)[number];

/** One line of a transaction's timeline. */
export type TimelineEvent =
  | {
      readonly kind: "received";
      readonly atNs: bigint;
      readonly method: SubmitMethod;
      /** As in the transaction's facts; both are absent in records of earlier versions. */
      readonly tipLamports?: bigint;
      readonly priorityFeeLamports?: bigint;
      readonly ingress?: Ingress;
    }
  | { readonly kind: "held"; readonly atNs: bigint; readonly reason: string }
  | {
      readonly kind: "queued";
      readonly atNs: bigint;
      readonly route: string;
      readonly attempt: number;
    }
  | {
      readonly kind: "sent";
      readonly atNs: bigint;
      readonly route: string;
      readonly attempt: number;
      readonly bytes: number;
      readonly slot: bigint | null;
      readonly leader: string | null;
    }
  | {
      readonly kind: "acknowledged";
      readonly atNs: bigint;
      readonly route: string;
      readonly attempt: number;
    }
  | {
      readonly kind: "refused" | "failed" | "dropped";
      readonly atNs: bigint;
      readonly route: string;
      readonly attempt: number;
      readonly reason: string;
    }
  /**
   * sendAlt: the partner's slot passed, and the transaction was not observed in a block. It can still land
   * until its lifetime ends.
   */
  | {
      readonly kind: "auction_lost";
      readonly atNs: bigint;
      /** The slot in which it was offered to the partner. */
      readonly slot: bigint | null;
      readonly leader: string;
    }
  /** Observed in the relay's own shreds: it is in a block, its outcome is not known yet. */
  | { readonly kind: "seen"; readonly atNs: bigint; readonly slot: bigint }
  /** The block of this slot does not contain it after all. */
  | {
      readonly kind: "withdrawn";
      readonly atNs: bigint;
      readonly slot: bigint;
      readonly reason: WithdrawalReason;
    }
  | {
      readonly kind: EndState;
      readonly atNs: bigint;
      readonly reason: string;
      readonly slot: bigint | null;
      /** The chain's error, for landed_failed; JSON as the node returned it. */
      readonly err: unknown;
      /** Signature of the transaction that superseded it, if known. */
      readonly sibling?: string;
    };

export interface TransactionStatus {
  readonly signature: string;
  readonly state: "open" | EndState;
  readonly method: SubmitMethod;
  readonly bundleId: string | null;
  readonly receivedNs: bigint;
  /** Slot in which it landed, or was last observed. */
  readonly slot: bigint | null;
  /** Identifier of why it ended, stable across releases; null while it is open. */
  readonly reason: string | null;
  readonly err: unknown;
  /** Oldest first, at most 64; beyond that, those in the middle are dropped. */
  readonly events: readonly TimelineEvent[];
}

export interface BundleStatus {
  readonly bundleId: string;
  readonly transactions: readonly TransactionStatus[];
}

export const commitments = ["processed", "confirmed", "finalized"] as const;
/** Commitment levels of a Solana node, lowest first. */
export type Commitment = (typeof commitments)[number];

export interface BundleCommitment {
  /** Slot in which its first transaction landed. */
  readonly slot: bigint;
  readonly commitment: Commitment;
}

/** "failed": it can no longer land as a whole, even if one of its transactions is open. */
export type BundleProgress =
  | { readonly kind: "pending" | "failed" }
  | { readonly kind: "landed"; readonly slot: bigint };

/** Commitment of bundles; implemented by bundle-commitments.ts. Nothing rejects. */
export interface BundleCommitments {
  /** null: the bundle is not in a block, or one of its transactions failed. */
  of(bundle: BundleStatus): Promise<BundleCommitment | null>;
  progressOf(bundle: BundleStatus): Promise<BundleProgress>;
}

/** The interface of the gateway's methods to submissions; implemented by pipeline.ts. */
export interface Submissions {
  /**
   * Settles when the request is persisted and in the queue of at least one route (or held for
   * protection), so that a kill of the process loses nothing. Throws ShredwayError: "no_route" if no
   * route can or will take it, "overloaded" if too many transactions are open, "tip_too_low" if the tip
   * is below the minimum of every route that could take it, "store_failed" if it could not be persisted.
   */
  submit(request: SubmitRequest): Promise<void>;
  /**
   * Two requests of one account, one transaction each, with the same durable nonce and value: only one of
   * them can land. Settles when at least one is in a queue and both are persisted; the other is offered
   * again like a resend. Throws as `submit`, and "nonce_in_use" while another pair with that nonce and
   * value is open, of any account.
   */
  submitPair(first: SubmitRequest, second: SubmitRequest): Promise<void>;
  /** Statuses of the account's own submissions; null: the account has none with this signature. */
  statuses(accountId: string, signatures: readonly string[]): Promise<(TransactionStatus | null)[]>;
  bundles(accountId: string, bundleIds: readonly string[]): Promise<(BundleStatus | null)[]>;
  /** Calls `listener` for every new event of the account's transactions. Returns how to unsubscribe. */
  subscribe(
    accountId: string,
    listener: (signature: string, event: TimelineEvent) => void,
  ): () => void;
}

// ---- what is persisted ----

/** One transaction of one account: what a restart needs, and what a status query shows. */
export interface SubmissionRecord {
  readonly signature: string;
  readonly accountId: string;
  readonly method: SubmitMethod;
  readonly bundleId: string | null;
  /** Position in its bundle, from 0. */
  readonly bundleIndex: number;
  readonly options: SubmitOptions;
  readonly receivedNs: bigint;
  readonly state: "open" | EndState;
  readonly endedNs: bigint | null;
  readonly slot: bigint | null;
  readonly reason: string | null;
  readonly err: unknown;
  readonly events: readonly TimelineEvent[];
  /** The bytes, while it is open; null after its end. */
  readonly wire: Uint8Array | null;
  /**
   * Its tip, if it landed with one. The store writes it to the landed tips in the same transaction as the
   * end, and records that are read do not contain it.
   */
  readonly landedTip?: ObservedTip;
}

/** A bundle as an account submitted it. Its transactions may be in newer bundles, too. */
export interface BundleRecord {
  readonly accountId: string;
  readonly bundleId: string;
  /** When the call arrived. */
  readonly acceptedNs: bigint;
  /** In the order of the bundle. */
  readonly signatures: readonly string[];
}

/** The tip of a transaction that was observed in a block. */
export interface ObservedTip {
  readonly lamports: bigint;
  /** Wall time of the first observation. */
  readonly observedNs: bigint;
}

/**
 * Records of submissions. Several nodes may share the database: a record belongs to the node that wrote it
 * first, or that adopted it from a dead node. Every promise settles when the change is durable.
 */
export interface SubmissionStore {
  /**
   * Inserts records, or replaces those with the same (account, signature). Never replaces another node's
   * record, or an ended record (except "rejected", which may start again on any node). Atomic for each
   * call, with its bundles; calls that arrive during a commit share the next one.
   */
  put(records: readonly SubmissionRecord[], bundles?: readonly BundleRecord[]): Promise<void>;
  /**
   * Inserts all or none, with their bundles; false: a record with one of the (account, signature) pairs
   * exists.
   */
  add(records: readonly SubmissionRecord[], bundles?: readonly BundleRecord[]): Promise<boolean>;
  /** Open records of this node, and those that were written before nodes had names. */
  open(): Promise<SubmissionRecord[]>;
  /** Names of other nodes that have open records; "": written before nodes had names. */
  openNodes(): Promise<string[]>;
  /**
   * Assigns the open records of a dead node to this node. If several nodes try at once, each record goes to
   * one of them. Returns the records that this node got.
   */
  adopt(node: string): Promise<SubmissionRecord[]>;
  /** Records of all nodes, as `findBundles`. */
  find(accountId: string, signatures: readonly string[]): Promise<SubmissionRecord[]>;
  /**
   * The signatures of each bundle that is known. They are incomplete if only the records of its transactions are
   * known (an earlier version accepted it, or it is older than the history), and a newer bundle has one of them.
   */
  findBundles(
    accountId: string,
    bundleIds: readonly string[],
  ): Promise<Pick<BundleRecord, "bundleId" | "signatures">[]>;
  /** Deletes the records that ended before, and bundles accepted before; returns the number of records. */
  forgetEndedBefore(ns: bigint): Promise<number>;
}

/** Lists an account's submissions for the portal and the command line; implemented by the store. */
export interface SubmissionLister {
  /**
   * The account's newest submissions, newest first, at most `limit`. It searches the open ones and the few
   * thousand of the whole service that ended last, so its cost does not grow with the history.
   */
  newest(accountId: string, limit: number): Promise<SubmissionRecord[]>;
}

// ---- what the chain says ----

export interface LandingObservation {
  readonly slot: bigint;
  /** Wall time. */
  readonly seenNs: bigint;
  /** It may still be withdrawn. */
  readonly mayRestart: boolean;
}

/** Observations of landed transactions in the relay's own shreds; implemented by LandingWatchList. */
export interface LandingObservations {
  /**
   * Calls `withdrawn` if a slot that was reported does not contain it after all. Throws ShredwayError
   * "watch_refused" when the list is full.
   */
  watch(
    signature: Uint8Array,
    observed: (observation: LandingObservation) => void,
    withdrawn?: (withdrawal: { readonly slot: bigint; readonly seenNs: bigint }) => void,
  ): () => void;
}

export interface SignatureOutcome {
  readonly slot: bigint;
  /** null: it succeeded. JSON as the node returned it. */
  readonly err: unknown;
  readonly commitment: Commitment;
}

export interface StatusSearch {
  /** Search the node's whole history, not only its cache of some minutes. Default: false. */
  readonly searchHistory?: boolean;
}

/** Answers of a Solana node; implemented by the RPC client. Every call may reject with "rpc_failed". */
export interface Outcomes {
  /** At most 256 signatures. */
  signatureStatuses(
    signatures: readonly string[],
    search?: StatusSearch,
  ): Promise<(SignatureOutcome | null)[]>;
  blockhashState(blockhash: string): Promise<BlockhashState>;
  /** Value of a durable nonce account (base58) at "confirmed"; null: the account does not exist. */
  nonceValue(account: string): Promise<string | null>;
}

// ---- who is notified of landed tips ----

/** Receives the tips of landed transactions; implemented by TipStatistics. */
export interface LandedTips {
  /** Observed in a block, outcome not known. May be called several times for one signature. */
  observed(signature: string, lamports: bigint, atNs: bigint): void;
  /** It landed without an error. */
  landed(signature: string, lamports: bigint, atNs: bigint): void;
  /** After `observed`: its block was abandoned, or it ended without landing successfully. */
  retracted(signature: string): void;
}

// ---- who is notified of spent nonces ----

/** Receives the nonces that landed transactions advanced. */
export interface NonceListener {
  /** A transaction with this nonce account and value (32 bytes each) was observed in a block, or landed. */
  advanced(account: Uint8Array, value: Uint8Array): void;
}
