// Types of tiers: the tier that an account's registered tips of the last 24 hours give.
//
// tier-engine.ts contains the rules; leader-tiers.ts passes events to them, and
// platform/store/tables/tier-store.ts persists the results. Of several nodes on one database, one leads
// and the others follow (tier-leadership.ts). Times are wall milliseconds since 1970 of the leader's
// clock, which never goes back. Tiers have the names of relay.tiers; null: no access.

import type { CountedTip } from "../registrations/registration-types.ts";

export type { CountedTip } from "../registrations/registration-types.ts";

export interface TierRule {
  readonly name: string;
  /** Threshold of the sum in the window; reached at equality. */
  readonly thresholdLamports: bigint;
}

export interface TierRules {
  /** Narrowest tier first, thresholds strictly ascending. */
  readonly tiers: readonly TierRule[];
  /** The sum contains a tip until registered + window, exclusive. */
  readonly windowMs: number;
  /**
   * Starts when the sum falls below the threshold of the current tier; at its end the tier falls.
   */
  readonly graceMs: number;
}

export const tierEventKinds = [
  "upgraded",
  "downgraded",
  "grace_started",
  "grace_cancelled",
  /** The payer of a counted tip proved that it belongs to another account. */
  "tip_claimed",
] as const;
export type TierEventKind = (typeof tierEventKinds)[number];

/** One line of the audit trail. */
export interface TierEvent {
  readonly accountId: string;
  /** 1, 2, 3, … for each account. */
  readonly number: bigint;
  readonly atMs: number;
  readonly kind: TierEventKind;
  /** The tier before and after; equal if only the grace period or the sum changed. */
  readonly from: string | null;
  readonly to: string | null;
  /** The sum of the window at that time. */
  readonly sumLamports: bigint;
}

/** The engine's state of an account. */
export interface TierState {
  readonly accountId: string;
  readonly tier: string | null;
  /** Time at which the sum fell below the threshold of `tier`; null: it did not. */
  readonly graceSinceMs: number | null;
  readonly sumLamports: bigint;
  /** Number of its last event; 0: none. */
  readonly eventCount: bigint;
}

/** The engine's input and results at one time. */
export interface TierCheckpoint {
  /** All expiries and ends of grace periods up to here are applied. */
  readonly evaluatedMs: number;
  /** All counted tips up to this order number are included, and no later ones. */
  readonly countedOrder: bigint;
  /** The thresholds that gave these states. */
  readonly tiers: readonly TierRule[];
  /** States that changed since the last checkpoint. */
  readonly states: readonly TierState[];
  /** Events since the last checkpoint, in order. */
  readonly events: readonly TierEvent[];
}

/** A change that a checkpoint reports to other nodes: an account and its new tier. */
export interface TierNews {
  readonly accountId: string;
  readonly tier: string | null;
  /** TierState.eventCount: the larger one is the later one. */
  readonly eventCount: bigint;
}

/**
 * Checkpoints of other nodes, or a takeover; empty: the tier of no account changed, or so many that they
 * must be read. null: some may have been missed.
 */
export type TierNewsListener = (news: readonly TierNews[] | null) => void;

/** The states of one time, or newer ones. */
export interface TierChanges {
  readonly epoch: bigint;
  /** Number of the last checkpoint; numbers increase within an epoch. */
  readonly checkpoint: bigint;
  readonly states: readonly TierState[];
}

/** Every promise may reject with ShredwayError "store_failed". */
export interface TierStore {
  /**
   * Begins a term: nothing with an earlier epoch is accepted from now on. Returns the new epoch, which
   * is unique; durable when it settles.
   */
  takeOver(): Promise<bigint>;
  /** Epoch of the current term; 0: there was none. */
  epoch(): Promise<bigint>;
  /** All states of the last checkpoint; null: there was none. */
  load(): Promise<{
    readonly evaluatedMs: number;
    readonly countedOrder: bigint;
    /** null: an older version stored it without them. */
    readonly tiers: readonly TierRule[] | null;
    readonly states: readonly TierState[];
  } | null>;
  /** Atomic; durable when it settles. False: `epoch` is over, and nothing was changed. */
  checkpoint(checkpoint: TierCheckpoint, epoch: bigint): Promise<boolean>;
  /** Changes of checkpoints with a larger number; null: everything. */
  statesChangedAfter(checkpoint: bigint | null): Promise<TierChanges>;
  /** Returns a function that removes the listener. */
  onNews(listener: TierNewsListener): () => void;
  /** Counted tips with a larger order number, ascending, at most `limit`. */
  countedAfter(order: bigint, limit: number): Promise<CountedTip[]>;
  /**
   * Counted tips after (registeredMs, order), ascending by both, with registeredMs of at most `untilMs`;
   * at most `limit`. This is the order of expiry.
   */
  leavingAfter(
    behind: { readonly registeredMs: number; readonly order: bigint },
    untilMs: number,
    limit: number,
  ): Promise<CountedTip[]>;
  /** The account's newest events before number `before` (null: the newest of all), newest first. */
  events(accountId: string, before: bigint | null, limit: number): Promise<TierEvent[]>;
}

/** The tier of an account, and the reason. */
export interface TierView {
  readonly tier: string | null;
  readonly sumLamports: bigint;
  readonly graceSinceMs: number | null;
  /** Time at which the tier falls unless the sum recovers. */
  readonly graceEndsMs: number | null;
}

/** Called immediately, in the turn of the change. */
export type TierListener = (accountId: string, tier: string | null) => void;

/** Tiers for other modules; account-tiers.ts implements it. */
export interface Tiers {
  view(accountId: string): TierView;
  tierOf(accountId: string): string | null;
  /** Returns a function that removes the listener. */
  onChange(listener: TierListener): () => void;
  history(accountId: string, before: bigint | null, limit: number): Promise<TierEvent[]>;
  /** Wall time that never goes back; on the leader also across restarts. */
  nowMs(): number;
}

/** A source of tiers: the leader or a follower. */
export type TierSource = Pick<Tiers, "view" | "tierOf"> & {
  /** Every account with a tier, and its tier. */
  tiers(): Iterable<readonly [accountId: string, tier: string]>;
};

export interface HeldTierLock {
  release(): Promise<void>;
}

/** A lock that at most one node holds. It does not prevent writes; the epoch does. */
export interface Locks {
  /**
   * null: another node has it. `onLost`: called once, not after `release`. May reject with
   * "store_failed".
   */
  tryLock(name: string, onLost: () => void): Promise<HeldTierLock | null>;
}
