// Protocol between the portal's page and its server: JSON bodies and live-feed messages.
//
// Types only, imported by both sides. Times for people are ISO 8601 in UTC; others are milliseconds or
// nanoseconds by their names. Amounts are integer lamports; u64 values are JSON numbers.
//
//   POST   /portal/api/session   {"key": "sw_…"}        200 SessionView and a cookie, 401, 429
//   GET    /portal/api/session                          200 SessionView, 401
//   DELETE /portal/api/session                          204
//   POST   /portal/api/call      {"method", "params"}   200 {"result"}; an error {"error": {"reason", "message"}}
//   GET    /portal/live                                 WebSocket: one LiveMessage per changed topic, first all topics
//
// `call` runs the gateway's account methods (getTier, getTierHistory, getRegistrations,
// getDestinations, addDestination, updateDestination, removeDestination, challengeDestination,
// proveDestination, getTransactionStatus, getRegions, getTipAccounts) with the scopes of the session's key, and the
// portal's own: getKeys -> KeyView[], getUnusableKeys -> UnusableKeyView[], rotateKey {"overlapHours"} -> NewKeyView,
// revokeKey {"id"} -> true.
// src/client/responses.ts declares the results of the gateway's methods; a view with the same facts
// uses the same type.

import type {
  Destination,
  TierView as TierResponse,
  TipPercentiles,
  TipProof,
  TransactionStatus,
} from "../../client/responses.ts";

/** `T` with any state text, so that an older page can show states of a newer service. */
export type AnyState<T> = Omit<T, "state"> & { readonly state: string };

/** Limit on the calls with a key on one node. */
interface RateLimitView {
  readonly requestsPerSecond: number;
  readonly burst: number;
}

export interface SessionView {
  readonly account: string;
  readonly key: {
    readonly id: string;
    readonly hint: string;
    readonly label: string;
    readonly scopes: readonly string[];
  } & RateLimitView;
  /** Whether the key has the scope "operate". */
  readonly isOperator: boolean;
  readonly endsAt: string;
  /** Why the service opens no further live feed for this account; null: it opens one. */
  readonly feedRefusal: string | null;
}

export interface KeyView extends RateLimitView {
  readonly id: string;
  readonly hint: string;
  readonly label: string;
  readonly scopes: readonly string[];
  readonly allowedRanges: readonly string[];
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  /** Time of the last request at this node's gateway since its start; null: none. */
  readonly lastUsedAt: string | null;
  readonly state: "active" | "expiring" | "expired" | "revoked";
  /** Whether this is the key of this session. */
  readonly isOwn: boolean;
}

/** A stored key of the account that this node cannot read. */
export interface UnusableKeyView {
  readonly id: string;
}

export interface NewKeyView {
  readonly key: KeyView;
  /** The key's text, shown once. */
  readonly text: string;
}

/**
 * Message of the live feed. Each topic is sent once at the start, then on change, at most once a
 * second.
 */
export type LiveMessage = {
  [Topic in keyof LiveTopics]: { readonly topic: Topic; readonly value: LiveTopics[Topic] };
}[keyof LiveTopics];

export interface LiveTopics {
  readonly service: ServiceView;
  readonly tier: TierView;
  readonly destinations: readonly DestinationView[];
  readonly coverage: CoverageView;
  readonly tips: TipsView;
  readonly submissions: readonly SubmissionView[];
  readonly connections: ConnectionsView;
  readonly streams: StreamsView;
  /** This and all following topics are for operators only. */
  readonly sources: readonly SourceView[];
  readonly workers: readonly WorkerView[];
  readonly routes: readonly RouteView[];
  readonly verdicts: readonly CountView[];
  readonly fanOut: FanOutView;
  readonly problems: readonly ProblemView[];
  readonly allConnections: ConnectionsView;
  readonly allStreams: StreamsView;
}

interface SubmissionCountsView {
  /** Mean of the last ten seconds. */
  readonly submissionsPerSecond: number;
  readonly accepted: number;
  /** Without those beyond the rate of the key. */
  readonly rejected: number;
  readonly rateLimited: number;
  /** Streams without a transaction. */
  readonly dropped: number;
}

/** The counts of all connections of a key since the start of the service. */
export interface KeyConnectionsView extends SubmissionCountsView {
  /** Public name of the API key. */
  readonly key: string;
  readonly account: string;
  /** Open ones. */
  readonly connections: number;
}

export interface ConnectionView extends SubmissionCountsView {
  /** Unique. */
  readonly name: string;
  readonly key: string;
  readonly transport: "quic" | "websocket";
  /** ALPN protocol of QUIC; "websocket". */
  readonly protocol: string;
  readonly address: string;
  readonly openedAt: string;
}

/** Submissions over QUIC and the WebSocket on /relayb at this node; the 100 rows with the most rejections at the rate limit. */
export interface ConnectionsView {
  readonly keys: readonly KeyConnectionsView[];
  readonly connections: readonly ConnectionView[];
}

interface StreamFactsView {
  /** Unique. */
  readonly name: string;
  /** Public name of the API key. */
  readonly key: string;
  readonly account: string;
  readonly dialect: string;
  readonly tier: string;
  readonly address: string;
  readonly openedAt: string;
  /** Messages from shreds that its filters matched. */
  readonly matched: number;
  /** Messages that were given to the connection. */
  readonly sent: number;
}

export interface StreamView extends StreamFactsView {
  readonly filters: number;
  /** Mean of the last ten seconds. */
  readonly messagesPerSecond: number;
  /** Bytes that the client has not read. */
  readonly waitingBytes: number;
  /** Dropped messages, and those of a push that could not be sent. */
  readonly leftOut: number;
  /** Mean of the last ten seconds, from the last shred to the connection; null: no message. */
  readonly delayNs: number | null;
}

export interface EndedStreamView extends StreamFactsView {
  readonly endedAt: string;
  readonly reason: string;
  /** The text that the client received; empty: none. */
  readonly text: string;
}

/** Decoded streams of this node: 100 open ones, most waiting bytes first, and the last 20 ends. */
export interface StreamsView {
  readonly streams: readonly StreamView[];
  readonly ended: readonly EndedStreamView[];
}

export interface ServiceView {
  readonly version: string;
  readonly time: string;
  readonly startedAt: string;
  readonly region: string | null;
  readonly node: string | null;
  readonly slot: number | null;
  readonly leader: string | null;
  /** Regions in which accounts may receive shreds; empty if the service does not sell shreds. */
  readonly deliveryRegions: readonly string[];
  /** Maximum per account. */
  readonly destinationsMax: number;
  /** Public URL of this region's gateway; null: the address of this page. */
  readonly gatewayUrl: string | null;
  /** Addresses for the tips of submissions. */
  readonly tipAddresses: readonly string[];
  readonly minimumTipLamports: number;
  /** Addresses from which shreds and challenges arrive, for firewalls; empty if unknown. */
  readonly senderAddresses: readonly string[];
  /** Current startup warnings; empty unless the session is an operator's. */
  readonly warnings: readonly string[];
}

/** Fields with values are null if this service does not register tips for shreds. */
export interface TierView extends Omit<TierResponse<number>, "destinations" | "tipProof"> {
  readonly isSold: boolean;
  /** Addresses for tips that pay for shreds. */
  readonly tipAddresses: readonly string[];
  readonly tipProof: TipProof | null;
}

export interface DestinationView extends AnyState<Destination> {
  /**
   * Counters of this relay. Null if it does not send there (other region, no tier, not verified).
   */
  readonly sending: {
    readonly tier: string;
    readonly sent: number;
    readonly sentPerSecond: number;
    readonly failed: number;
    readonly icmp: number;
    /** ICMP errors of the last minute: the receiver is probably not running. */
    readonly icmpLastMinute: number;
  } | null;
}

/** The newest slots of the whole relay, ascending, and the time that shreds stay in the relay. */
export interface CoverageView {
  readonly slots: readonly {
    readonly slot: number;
    /** Number of received data shreds. */
    readonly data: number;
    readonly code: number;
    /** 0 to 1; null while the slot's length is unknown. */
    readonly dataShare: number | null;
    readonly share: number | null;
    readonly firstSeenMs: number;
    readonly spanMs: number;
  }[];
  readonly receiveToSend: HistogramView;
}

export interface HistogramView {
  readonly count: number;
  /** Nanoseconds; null if nothing was counted. */
  readonly p50Ns: number | null;
  readonly p90Ns: number | null;
  readonly p99Ns: number | null;
  readonly maxNs: number | null;
  /**
   * Ascending; counts of the last minute. Each bucket is a quarter to a half larger than the one
   * before.
   */
  readonly buckets: readonly { readonly upToNs: number; readonly count: number }[];
}

export interface TipPoint extends TipPercentiles<number> {
  readonly isStale: boolean;
}

export interface TipsView {
  readonly now: TipPoint;
  /**
   * One point per quarter hour, ascending, of the last 24 hours. Quarter hours without a refresh are
   * missing; a count of 0 means that no tip landed.
   */
  readonly history: readonly TipPoint[];
}

/** The account's newest submissions, newest first, at most 200. */
export type SubmissionView = AnyState<
  Pick<TransactionStatus<number>, "signature" | "method" | "state" | "receivedAt" | "slot">
> & {
  /** Milliseconds from the receipt until it was first seen in a block; null: not landed. */
  readonly landedMs: number | null;
  /** Both are null if an earlier version received it. */
  readonly tipLamports: number | null;
  readonly priorityFeeLamports: number | null;
};

export interface SourceView {
  readonly name: string;
  readonly tier: string;
  /** false: for own use. */
  readonly isForwarded: boolean;
  readonly receivedPerSecond: number;
  readonly received: number;
  /** 0 to 1; share of the last minute's shreds that this source delivered first. */
  readonly firstShare: number;
  readonly duplicateShare: number;
  readonly refused: number;
  readonly leadTime: HistogramView;
  /** State of the subscription at a block engine; null: a source of another kind. */
  readonly state: string | null;
  /** Why the block engine does not send; null: no problem. */
  readonly problem: string | null;
  /** Last one-way delays of trace packets, with the difference of both clocks. */
  readonly traceDelays: readonly TraceDelayView[];
}

export interface TraceDelayView {
  readonly region: string;
  readonly lastNs: number;
}

export interface WorkerView {
  /** 0 to 1. */
  readonly load: number;
  readonly receivedPerSecond: number;
  readonly receiveDrops: number;
  readonly highestSlot: number;
}

export interface RouteView {
  readonly name: string;
  readonly kind: string;
  readonly state: string;
  readonly sent: number;
  readonly taken: number;
  readonly refused: number;
  readonly queued: number;
  readonly sendP50Ns: number | null;
  readonly lastFailure: string | null;
  readonly lastFailureAt: string | null;
}

export interface CountView {
  readonly name: string;
  readonly count: number;
  readonly perSecond: number;
}

/**
 * All destinations of the configuration and of accounts; the 100 with the most failures, in that
 * order.
 */
export interface FanOutView {
  readonly sentPerSecond: number;
  readonly destinations: readonly {
    readonly name: string;
    readonly address: string;
    readonly tier: string;
    readonly sentPerSecond: number;
    readonly failed: number;
    readonly icmp: number;
  }[];
}

/**
 * Counted faults, then at most 100 warnings and errors of the log, newest first.
 */
export interface ProblemView {
  /** Null if it occurred before the first feed was opened. */
  readonly time: string | null;
  readonly level: "warn" | "error" | "fatal";
  readonly text: string;
  /** Number of consecutive occurrences of the same text. */
  readonly count: number;
}
