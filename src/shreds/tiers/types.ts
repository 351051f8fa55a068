// Tiers: what an account's registered tips of the last 24 hours buy.
//
// Only types. The rules are in tier-engine.ts; leader-tiers.ts brings events to them and
// platform/store/tables/tier-store.ts persists what comes of it. Of several nodes on one database one
// leads, the others follow (tier-leadership.ts). Times are wall milliseconds since 1970 of the leader's
// clock, which never goes back. Tiers are named as relay.tiers names them; null: no access.

import type { CountedTip } from "../registrations/registration-types.ts";

export type { CountedTip } from "../registrations/registration-types.ts";

interface TierRule {
  readonly name: string;
  /** Of the window's sum; reached at equality. */
  readonly thresholdLamports: bigint;
}

export interface TierRules {
  /** Narrowest coverage first, thresholds strictly ascending. */
  readonly tiers: readonly TierRule[];
  /** A tip is in the sum before registered + window, not at it. */
  readonly windowMs: number;
  /** From the sum's fall below the threshold of the present tier; the tier falls at its end. */
  readonly graceMs: number;
}

export const tierEventKinds = [
  "upgraded",
  "downgraded",
  "grace_started",
  "grace_cancelled",
] as const;
export type TierEventKind = (typeof tierEventKinds)[number];

/** One line of the audit trail. */
export interface TierEvent {
  readonly accountId: string;
  /** 1, 2, 3, … of each account. */
  readonly number: bigint;
  readonly atMs: number;
  readonly kind: TierEventKind;
  /** The tier before and after; the same where only the grace clock moved. */
  readonly from: string | null;
  readonly to: string | null;
  /** The window's sum at that moment. */
  readonly sumLamports: bigint;
}

/** All that the engine knows of an account. */
export interface TierState {
  readonly accountId: string;
  readonly tier: string | null;
  /** When the sum fell below the threshold of `tier`; null: it has not. */
  readonly graceSinceMs: number | null;
  readonly sumLamports: bigint;
  /** Number of its last event; 0: none. */
  readonly eventCount: bigint;
}

/** What the engine had taken in, and what came of it, at one moment. */
export interface TierCheckpoint {
  /** Every leaving and every end of grace up to here is done. */
  readonly evaluatedMs: number;
  /** Every counted tip up to this order is in; none behind it. */
  readonly countedOrder: bigint;
  /** Those that changed since the last checkpoint. */
  readonly states: readonly TierState[];
  /** Since the last checkpoint, in order. */
  readonly events: readonly TierEvent[];
}

/** What a checkpoint notifies other nodes of: an account whose tier it changed. */
export interface TierNews {
  readonly accountId: string;
  readonly tier: string | null;
  /** TierState.eventCount: the larger one is the later one. */
  readonly eventCount: bigint;
}

/**
 * Checkpoints of other nodes, or a take-over; none of the accounts: it changed no tier, or so many that
 * they have to be read. null: some may have been missed.
 */
export type TierNewsListener = (news: readonly TierNews[] | null) => void;

/** Of one moment, or states newer than that. */
export interface TierChanges {
  readonly epoch: bigint;
  /** Number of the last checkpoint; one follows another, and none goes back while an epoch lasts. */
  readonly checkpoint: bigint;
  readonly states: readonly TierState[];
}

/** Every promise may reject with ShredwayError "store_failed". */
export interface TierStore {
  /**
   * Begins a term: nothing that carries an earlier epoch is accepted from now on. Returns the new epoch,
   * which no other node has; durable when it settles.
   */
  takeOver(): Promise<bigint>;
  /** Of the present term; 0: there was none. */
  epoch(): Promise<bigint>;
  /** All states of the last checkpoint; null: there was none. */
  load(): Promise<{
    readonly evaluatedMs: number;
    readonly countedOrder: bigint;
    readonly states: readonly TierState[];
  } | null>;
  /** All or nothing; durable when it settles. False: `epoch` is over, and nothing was changed. */
  checkpoint(checkpoint: TierCheckpoint, epoch: bigint): Promise<boolean>;
  /** What checkpoints with a larger number changed; null: all there is. */
  statesChangedAfter(checkpoint: bigint | null): Promise<TierChanges>;
  /** Returns how to end that. */
  onNews(listener: TierNewsListener): () => void;
  /** Counted tips with a larger order, ascending by it, at most `limit`. */
  countedAfter(order: bigint, limit: number): Promise<CountedTip[]>;
  /**
   * Counted tips behind (registeredMs, order), ascending by both, with registeredMs of at most
   * `untilMs`; at most `limit`. The order of leaving.
   */
  leavingAfter(
    behind: { readonly registeredMs: number; readonly order: bigint },
    untilMs: number,
    limit: number,
  ): Promise<CountedTip[]>;
  /** The account's newest events before number `before` (null: the newest of all), newest first. */
  events(accountId: string, before: bigint | null, limit: number): Promise<TierEvent[]>;
}

/** What an account's tier is, and why. */
export interface TierView {
  readonly tier: string | null;
  readonly sumLamports: bigint;
  readonly graceSinceMs: number | null;
  /** When the tier falls unless the sum recovers. */
  readonly graceEndsMs: number | null;
}

/** Notified at once, in the turn in which it happened. */
export type TierListener = (accountId: string, tier: string | null) => void;

/** Tiers as other modules see them; account-tiers.ts is the real one. */
export interface Tiers {
  view(accountId: string): TierView;
  tierOf(accountId: string): string | null;
  /** Returns how to end that. */
  onChange(listener: TierListener): () => void;
  history(accountId: string, before: bigint | null, limit: number): Promise<TierEvent[]>;
  /** Wall time that never goes back; the leader's over restarts, too. */
  nowMs(): number;
}

/** Where tiers are known: with the leader or a follower. */
export type TierSource = Pick<Tiers, "view" | "tierOf"> & {
  /** Every account that has one, with its tier. */
  tiers(): Iterable<readonly [accountId: string, tier: string]>;
};

export interface HeldTierLock {
  release(): Promise<void>;
}

/** A lock that one node in the world holds at a time. It keeps no node from writing: the epoch does. */
export interface Locks {
  /** null: another one has it. `onLost`: once, not after `release`. May reject with "store_failed". */
  tryLock(name: string, onLost: () => void): Promise<HeldTierLock | null>;
}
