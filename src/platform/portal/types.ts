// What the portal's page and its server tell each other: JSON bodies and messages of the live feed.
//
// Only types, imported by both sides. Times are ISO 8601 in UTC where people read them and milliseconds
// or nanoseconds where the name says so; amounts are integer lamports; u64 are JSON numbers.
//
//   POST   /portal/api/session   {"key": "sw_…"}        200 SessionView and a cookie, 401, 429
//   GET    /portal/api/session                          200 SessionView, 401
//   DELETE /portal/api/session                          204
//   POST   /portal/api/call      {"method", "params"}   200 {"result"}; an error {"error": {"reason", "message"}}
//   GET    /portal/live                                 WebSocket: LiveMessage each, first one of each topic
//
// `call` takes the gateway's methods of an account (getTier, getTierHistory, getRegistrations,
// getDestinations, addDestination, removeDestination, challengeDestination, proveDestination,
// getTransactionStatus, getRegions, getTipAccounts) with the scopes of the session's key, and the
// portal's own: getKeys -> KeyView[], rotateKey {"overlapHours"} -> NewKeyView, revokeKey {"id"} -> true.
// What the gateway's methods answer is declared in src/client/responses.ts; a view that shows the same
// facts is made of the same type.

import type {
  Destination,
  TierView as TierResponse,
  TipPercentiles,
  TransactionStatus,
} from "../../client/responses.ts";

/** `T` as the page reads it: an older page shows the states of a newer service by their words. */
export type AnyState<T> = Omit<T, "state"> & { readonly state: string };

export interface SessionView {
  readonly account: string;
  readonly key: {
    readonly id: string;
    readonly hint: string;
    readonly label: string;
    readonly scopes: readonly string[];
  };
  /** The key has the scope "operate". */
  readonly isOperator: boolean;
  readonly endsAt: string;
}

export interface KeyView {
  readonly id: string;
  readonly hint: string;
  readonly label: string;
  readonly scopes: readonly string[];
  readonly allowedRanges: readonly string[];
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly revokedAt: string | null;
  readonly state: "active" | "expiring" | "expired" | "revoked";
  /** It is the one that this session was opened with. */
  readonly isOwn: boolean;
}

export interface NewKeyView {
  readonly key: KeyView;
  /** Shown once. */
  readonly text: string;
}

/** Every message of the live feed. Each topic comes once at the beginning, then when it changed, at most once a second. */
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
  /** The rest only for operators. */
  readonly sources: readonly SourceView[];
  readonly workers: readonly WorkerView[];
  readonly routes: readonly RouteView[];
  readonly verdicts: readonly CountView[];
  readonly fanOut: FanOutView;
  readonly problems: readonly ProblemView[];
}

export interface ServiceView {
  readonly version: string;
  readonly time: string;
  readonly startedAt: string;
  readonly region: string | null;
  readonly node: string | null;
  readonly slot: number | null;
  readonly leader: string | null;
  /** Where accounts may have shreds delivered from; empty: none are sold here. */
  readonly deliveryRegions: readonly string[];
  /** Of one account. */
  readonly destinationsMax: number;
  /** Warnings of the start that still hold; only for operators, else empty. */
  readonly warnings: readonly string[];
}

/** null value fields: no tips for shreds are registered at this service. */
export interface TierView extends Omit<TierResponse<number>, "destinations"> {
  readonly isSold: boolean;
  /** Where tips for shreds are paid to. */
  readonly tipAddresses: readonly string[];
}

export interface DestinationView extends AnyState<Destination> {
  /** Of this relay; null: nothing is sent there from here (another region, no tier, not proved). */
  readonly sending: {
    readonly tier: string;
    readonly sent: number;
    readonly sentPerSecond: number;
    readonly failed: number;
    readonly icmp: number;
  } | null;
}

/** Of the relay as a whole: the newest slots, ascending, and how long shreds stay in it. */
export interface CoverageView {
  readonly slots: readonly {
    readonly slot: number;
    /** Data and code shreds seen. */
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
  /** Nanoseconds; null: nothing was counted. */
  readonly p50Ns: number | null;
  readonly p90Ns: number | null;
  readonly p99Ns: number | null;
  readonly maxNs: number | null;
  /** Ascending; counts of the last minute in buckets that grow by about a quarter to a half. */
  readonly buckets: readonly { readonly upToNs: number; readonly count: number }[];
}

export interface TipPoint extends TipPercentiles<number> {
  readonly isStale: boolean;
}

export interface TipsView {
  readonly now: TipPoint;
  /** One a quarter of an hour, ascending, 24 hours at most, from what is kept. */
  readonly history: readonly TipPoint[];
}

/** The account's newest submissions, newest first, 50 at most. */
export type SubmissionView = AnyState<
  Pick<TransactionStatus<number>, "signature" | "method" | "state" | "receivedAt" | "slot">
>;

export interface SourceView {
  readonly name: string;
  readonly tier: string;
  readonly receivedPerSecond: number;
  readonly received: number;
  /** 0 to 1, of what this source and all others brought first in the last minute. */
  readonly firstShare: number;
  readonly duplicateShare: number;
  readonly refused: number;
  readonly leadTime: HistogramView;
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
}

export interface CountView {
  readonly name: string;
  readonly count: number;
  readonly perSecond: number;
}

/** To every destination, of the configuration and of accounts: 100 with the most failures first. */
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

/** Warnings and errors of the log, newest first, 100 at most. */
export interface ProblemView {
  readonly time: string;
  readonly level: "warn" | "error" | "fatal";
  readonly text: string;
  /** How often the same text came in a row. */
  readonly count: number;
}
