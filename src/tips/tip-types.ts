// Types of tip statistics: the tips of landed transactions.
//
// tip-window.ts contains the rules, landed-tip-store.ts stores what a restart needs.

/** Statistics of the last 15 minutes. Lamports; 0 before the first landed tip. */
export interface TipSnapshot {
  /** Time of the refresh, wall milliseconds. */
  readonly timeMs: number;
  readonly percentiles: {
    readonly p25: bigint;
    readonly p50: bigint;
    readonly p75: bigint;
    readonly p95: bigint;
    readonly p99: bigint;
  };
  /** Moving average of the medians of the refreshes, as published by block engines. */
  readonly emaP50: bigint;
  /** Number of landed tips in it. */
  readonly count: number;
  readonly windowStartMs: number;
  /** No tip landed in the window: the numbers are those of an earlier one. */
  readonly isStale: boolean;
}

/** The snapshot for the gateway; tip-statistics.ts implements it. */
export interface TipFloor {
  readonly snapshot: TipSnapshot;
  /**
   * Calls the listener after every refresh, on the quarter hour, and after the early first one. Returns a function that removes it.
   */
  onRefresh(listener: (snapshot: TipSnapshot) => void): () => void;
}

/** The landed tips of one quarter hour, as in the snapshot at its refresh. */
export interface TipQuarter {
  /** Number of the quarter hour since 1970 that the refresh began. */
  readonly quarter: number;
  /** Time of the refresh, wall milliseconds; the window is the 15 minutes before it. */
  readonly timeMs: number;
  readonly count: number;
  /** Null: no tip landed, `count` is 0. */
  readonly percentiles: TipSnapshot["percentiles"] | null;
}

/** Quarter hours of the last seven days; tip-history.ts implements it. */
export interface TipHistoryReader {
  /** Grows with every change. */
  readonly generation: number;
  /**
   * Quarter hours of the last `hours`, ascending. One without a refresh is missing.
   */
  last(hours: number): readonly TipQuarter[];
}

export interface LandedTip {
  /** Base58. */
  readonly signature: string;
  readonly lamports: bigint;
  readonly landedMs: number;
}

/** Every promise may reject with "store_failed". */
export interface LandedTipStore {
  /** Adds some (ignores known signatures) and removes others. Survives a kill of the process. */
  write(added: readonly LandedTip[], removed: readonly string[]): Promise<void>;
  /**
   * Tips that landed at `sinceMs` or later, at most `limit`, after the given one; ascending by time,
   * then signature.
   */
  since(sinceMs: number, behind: LandedTip | null, limit: number): Promise<LandedTip[]>;
  forgetBefore(ms: number): Promise<void>;
  /**
   * The first snapshot of a quarter hour (its number since 1970) stays, from any node. One of an earlier
   * quarter hour never replaces it, unless the stored one is in the future.
   */
  keepSnapshot(snapshot: TipSnapshot, quarter: number): Promise<void>;
  lastSnapshot(): Promise<TipSnapshot | null>;
  /**
   * The first entry of a quarter hour stays, from any node. Deletes those of other weeks when there are too
   * many.
   */
  keepQuarter(tips: TipQuarter): Promise<void>;
  /** Quarter hours from `from` to `to`, both inclusive, ascending. */
  quarters(from: number, to: number): Promise<TipQuarter[]>;
}
