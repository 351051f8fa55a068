// The submission pipeline's words: what is submitted, where it can go, what is known of it.
//
// Only types. The gateway makes requests, routes take parcels, the store keeps records; the rules of
// this folder stand between them and know nothing of sockets, files or clocks of their own. Wall times
// are nanoseconds since 1970.

import type { TransactionFacts } from "../../core/transactions/facts.ts";

// ---- what is submitted ----

export type { LeaderContext } from "../../relay/leaders/leader-context.ts";

export type SubmitMethod = "sendTransaction" | "sendBundle" | "sendBatch" | "sendIdeal" | "sendAlt";

export interface SubmitOptions {
  /** Only through SWQoS partners. */
  readonly swqosOnly: boolean;
  /** Only routes that are safe from front-running; held back while a denied leader is near. */
  readonly mevProtect: boolean;
  /** Drop it when it would fail instead of landing it as failed. */
  readonly revertProtection: boolean;
  /** Times that the service may send it again; null: until its end. */
  readonly resendsMax: number | null;
  /** sendAlt: through sendTransaction's routes when no partner leads or none took it. Default false. */
  readonly enableFallback?: boolean;
}

/** One or more transactions with one fate: a bundle lands whole or not at all. */
export interface SubmitRequest {
  readonly accountId: string;
  readonly method: SubmitMethod;
  /** 1, or 1 to 4 of a bundle, in order. Sanitised, tips and signatures checked. */
  readonly transactions: readonly TransactionFacts[];
  /** Atomic, in order, next to each other. Its id: SHA-256 in hex of the signatures joined by ",". */
  readonly isBundle: boolean;
  readonly options: SubmitOptions;
  /** When the request came. */
  readonly receivedNs: bigint;
}

// ---- where it can go ----

export const routeKinds = ["swqos", "block-builder", "scheduler", "alt-partner", "tpu"] as const;
export type RouteKind = (typeof routeKinds)[number];

export type SendMode = "transaction" | "bundle";

/** What the plan asks of a route; never changes while the route lives. */
export interface RouteCapabilities {
  readonly name: string;
  readonly kind: RouteKind;
  readonly modes: readonly SendMode[];
  /** Of one transaction; a v1 transaction has up to 4,096. */
  readonly transactionBytesMax: number;
  readonly mevSafe: boolean;
  /** Of the whole parcel. */
  readonly minimumTipLamports: bigint;
  /** Identities (base58) whose slots this route reaches; null: every leader's. */
  readonly leaders: ReadonlySet<string> | null;
}

/** What leaves by one route: once for each attempt. */
export interface OutboundTransaction {
  readonly mode: SendMode;
  readonly transactions: readonly TransactionFacts[];
  readonly revertProtection: boolean;
  /** From 1. */
  readonly attempt: number;
  /** Base58; whom it is for, where the route has a way to each leader. */
  readonly leader: string | null;
  /** Wall time after which it is of no use any more. */
  readonly deadlineNs: bigint;
  /** Told once "sent" (or "dropped"), then at most once how the other side answered. */
  report(event: RouteEvent): void;
}

export type RouteEvent =
  /** The last byte is with the kernel. */
  | { readonly kind: "sent"; readonly atNs: bigint; readonly bytes: number }
  | { readonly kind: "acknowledged"; readonly atNs: bigint }
  /** The other side said no. `isFinal`: it will always say so to these bytes. */
  | {
      readonly kind: "refused";
      readonly atNs: bigint;
      readonly reason: string;
      readonly isFinal: boolean;
    }
  /** No answer: connection, time-out, an answer that is none. It may have arrived. */
  | { readonly kind: "failed"; readonly atNs: bigint; readonly reason: string }
  /** Never left: its deadline passed in the queue, or the route closed. */
  | { readonly kind: "dropped"; readonly atNs: bigint; readonly reason: string };

export interface RouteCounts {
  readonly offered: bigint;
  /** Refused because the queue was full or the route down. */
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
  readonly health: "up" | "down";
  /** Why it is down, or its last failure; empty when there was none. */
  readonly lastFailure: string;
  readonly queued: number;
  readonly inFlight: number;
  /** From `offer` to the last byte with the kernel, of the last minutes; null: nothing sent. */
  readonly sendP50Us: number | null;
  readonly sendP99Us: number | null;
}

export interface Route {
  readonly capabilities: RouteCapabilities;
  /** False while it fails; then it tries again by itself from time to time. */
  readonly isUp: boolean;
  /** Takes the parcel into its queue; false: full, down or closed, and `report` is never called. */
  offer(parcel: OutboundTransaction): boolean;
  snapshot(): RouteSnapshot;
  /** What is queued is reported as dropped. Settles when requests under way ended or were cut. */
  close(): Promise<void>;
}

// ---- what is known of it ----

export const endStates = ["landed", "landed_failed", "expired", "superseded", "rejected"] as const;
export type EndState = (typeof endStates)[number];

/** One line of a transaction's timeline. */
export type TimelineEvent =
  | { readonly kind: "received"; readonly atNs: bigint; readonly method: SubmitMethod }
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
  /** In the relay's own shreds: in a block, outcome not known yet. */
  | { readonly kind: "seen"; readonly atNs: bigint; readonly slot: bigint }
  | {
      readonly kind: EndState;
      readonly atNs: bigint;
      readonly reason: string;
      readonly slot: bigint | null;
      /** Of the chain, for landed_failed; JSON as the node wrote it. */
      readonly err: unknown;
      /** Superseded by this transaction, where it is known. */
      readonly sibling?: string;
    };

export interface TransactionStatus {
  readonly signature: string;
  readonly state: "open" | EndState;
  readonly method: SubmitMethod;
  readonly bundleId: string | null;
  readonly receivedNs: bigint;
  /** Where it landed, or was seen last. */
  readonly slot: bigint | null;
  /** Stable word of the end; null while it is open. */
  readonly reason: string | null;
  readonly err: unknown;
  /** Oldest first, at most 64: of many attempts the first and the last are kept. */
  readonly events: readonly TimelineEvent[];
}

export interface BundleStatus {
  readonly bundleId: string;
  readonly transactions: readonly TransactionStatus[];
}

export const commitments = ["processed", "confirmed", "finalized"] as const;
/** As nodes say it, the least settled first. */
export type Commitment = (typeof commitments)[number];

export interface BundleCommitment {
  /** Where its first transaction landed. */
  readonly slot: bigint;
  readonly commitment: Commitment;
}

/** How settled bundles are; bundle-commitments.ts is the real one. */
export interface BundleCommitments {
  /** null: the bundle is not in a block, or one of its transactions failed. Never rejects. */
  of(bundle: BundleStatus): Promise<BundleCommitment | null>;
}

/** The pipeline as the gateway sees it. */
export interface Submissions {
  /**
   * Settles when the request is in the queue of at least one route (or held for protection) and kept,
   * so that killing the process loses nothing. Throws ShredwayError: "no_route" when no route can or
   * will take it, "overloaded" when too many are open, "tip_too_low" when the tip is below the minimum
   * of every route that could take it, "store_failed" when it could not be kept.
   */
  submit(request: SubmitRequest): Promise<void>;
  /**
   * Two requests of one account, one transaction each, with the same durable nonce and value: of the two
   * only one can land. Settles when at least one of them is in a queue and both are kept; the other is
   * tried again like a resend. All or nothing otherwise. Throws as `submit`, and "nonce_in_use" while
   * another pair of that nonce and value is open, whoever's it is.
   */
  submitPair(first: SubmitRequest, second: SubmitRequest): Promise<void>;
  /** Of the account's own submissions; null: none of its own in the time that is kept. */
  statuses(accountId: string, signatures: readonly string[]): Promise<(TransactionStatus | null)[]>;
  bundles(accountId: string, bundleIds: readonly string[]): Promise<(BundleStatus | null)[]>;
  /** Every new event of the account's transactions, from now on. */
  subscribe(
    accountId: string,
    listener: (signature: string, event: TimelineEvent) => void,
  ): () => void;
}

// ---- what is kept ----

/** One transaction of one account: what a restart needs, and what a status query shows. */
export interface SubmissionRecord {
  readonly signature: string;
  readonly accountId: string;
  readonly method: SubmitMethod;
  readonly bundleId: string | null;
  /** Place in its bundle, from 0. */
  readonly bundleIndex: number;
  readonly options: SubmitOptions;
  readonly receivedNs: bigint;
  readonly state: "open" | EndState;
  readonly endedNs: bigint | null;
  readonly slot: bigint | null;
  readonly reason: string | null;
  readonly err: unknown;
  readonly events: readonly TimelineEvent[];
  /** Dropped at the end: only open submissions keep their bytes. */
  readonly wire: Uint8Array | null;
}

/**
 * Kept by the store, which several nodes may share: a record belongs to the node that kept it first, or
 * took it from one that is gone. Every promise settles when the change survives a kill of the process.
 */
export interface SubmissionStore {
  /**
   * Adds records or replaces those with the same (account, signature), but never an end by anything
   * else ("rejected" may begin anew, on any node), and never another node's. All or nothing for one
   * call; calls that come while one is under way share the next commit.
   */
  put(records: readonly SubmissionRecord[]): Promise<void>;
  /** Adds them, all or nothing; false: one of them (account, signature) was kept before. */
  add(records: readonly SubmissionRecord[]): Promise<boolean>;
  /** This node's, and those that were kept before nodes had names. */
  open(): Promise<SubmissionRecord[]>;
  /** Other nodes that have open ones; "": kept before nodes had names. */
  openNodes(): Promise<string[]>;
  /**
   * The open ones of a node that is gone belong to this node from now on; of several nodes that try at
   * once each record comes to one. Returns what came to this one.
   */
  adopt(node: string): Promise<SubmissionRecord[]>;
  /** Every node's, as these two find them. */
  find(accountId: string, signatures: readonly string[]): Promise<SubmissionRecord[]>;
  findBundles(accountId: string, bundleIds: readonly string[]): Promise<SubmissionRecord[]>;
  /** Removes what ended before. Returns how many. */
  forgetEndedBefore(ns: bigint): Promise<number>;
}

/** For people who look at what an account has submitted; the store is the real one. */
export interface SubmissionLister {
  /**
   * The account's newest, newest first, at most `limit`: of those that are open and of the service's
   * thousands that ended last. Whatever an account has submitted, it takes no longer than that.
   */
  newest(accountId: string, limit: number): Promise<SubmissionRecord[]>;
}

// ---- what the chain says ----

/** First sights in the relay's own shreds; service/landing-watch.ts is the real one. */
export interface Sights {
  /** Throws ShredwayError "watch_refused" when the list is full. */
  watch(
    signature: Uint8Array,
    listener: (sight: { readonly slot: bigint; readonly seenNs: bigint }) => void,
  ): () => void;
}

export interface SignatureOutcome {
  readonly slot: bigint;
  /** null: it succeeded. JSON as the node wrote it. */
  readonly err: unknown;
  readonly commitment: Commitment;
}

export interface StatusSearch {
  /** Also what the node's cache of some minutes forgot, if the node has a history. Default false. */
  readonly searchHistory?: boolean;
}

/** A node's answers; solana/rpc-client.ts is the real one. All may reject with "rpc_failed". */
export interface Outcomes {
  /** At most 256 signatures. */
  signatureStatuses(
    signatures: readonly string[],
    search?: StatusSearch,
  ): Promise<(SignatureOutcome | null)[]>;
  /** At commitment "confirmed". */
  isBlockhashValid(blockhash: string): Promise<boolean>;
  /** Present value of a durable nonce (base58) at "confirmed"; null: no such account. */
  nonceValue(account: string): Promise<string | null>;
}

// ---- who is told of landed tips ----

/** Tips of landed transactions; tips/tip-statistics.ts is the real one. */
export interface LandedTips {
  /** In a block: of the relay's own shreds or a node; its outcome is not known. Told once or more. */
  seen(signature: string, lamports: bigint, atNs: bigint): void;
  /** It ended as landed, without error. */
  landed(signature: string, lamports: bigint, atNs: bigint): void;
  /** The block that held it is gone, or it ended otherwise after it was seen. */
  gone(signature: string): void;
}

// ---- who is told of spent nonces ----

/** nonces/nonce-book.ts is the real one. */
export interface NonceListener {
  /** A transaction of this nonce account and value (32 bytes each) was seen in a block, or landed. */
  advanced(account: Uint8Array, value: Uint8Array): void;
}
