// The tier book as registration sees it: its clock, its term, and the order in which tips are counted.
//
// Only types. tiers/tier-book.ts is one; that folder stands above this one. Of several nodes on one
// database one at a time has a book, for a term, and counts.

export interface BookedTip {
  readonly order: bigint;
  readonly accountId: string;
  readonly lamports: bigint;
  readonly registeredMs: number;
  readonly countedMs: number;
}

export interface TipBook {
  /** Of its term. What is counted carries it, and is refused when a later term has begun. */
  readonly epoch: bigint;
  /** Wall time that never goes back. */
  nowMs(): number;
  /** `settleOrder` must follow, whatever comes of it: later tips wait for it. */
  takeOrder(): bigint;
  /** The tip of that order is kept as counted, or (null) will never be. */
  settleOrder(order: bigint, tip: BookedTip | null): void;
  /**
   * The book is not what the store has: a later term has begun, or nobody knows whether a tip is kept.
   * Orders that are open need not be settled: whoever counts next reads everything anew.
   */
  giveUp(): void;
}

/** What only the node does that keeps the tiers; registration-seat.ts is the real one. */
export interface Counting {
  /** From now on this one does, for the term of `book`. Rejects with "store_failed": then it does not. */
  keep(book: TipBook): Promise<void>;
  /** From now on another one does. Settles when nothing of the term is under way. Idempotent. */
  follow(): Promise<void>;
}
