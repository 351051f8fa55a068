// The tier book as registration sees it: its clock, and the order in which tips are counted.
//
// Only types. Tiers of tiers/types.ts is one; that folder stands above this one.

export interface BookedTip {
  readonly order: bigint;
  readonly accountId: string;
  readonly lamports: bigint;
  readonly registeredMs: number;
  readonly countedMs: number;
}

export interface TipBook {
  /** Wall time that never goes back. */
  nowMs(): number;
  /** `settleOrder` must follow, whatever comes of it: later tips wait for it. */
  takeOrder(): bigint;
  /** The tip of that order is kept as counted, or (null) will never be. */
  settleOrder(order: bigint, tip: BookedTip | null): void;
}
