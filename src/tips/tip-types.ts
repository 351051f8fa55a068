// Tip statistics: what landed transactions paid.
//
// Only types. tip-window.ts holds the rules, store/landed-tip-store.ts keeps what a restart needs.

/** What is told of the last 15 minutes. Lamports; 0 while there never was a landed tip. */
export interface TipSnapshot {
  /** Of the refresh, wall milliseconds. */
  readonly timeMs: number;
  readonly percentiles: {
    readonly p25: bigint;
    readonly p50: bigint;
    readonly p75: bigint;
    readonly p95: bigint;
    readonly p99: bigint;
  };
  /** Moving average of the medians of the refreshes, as block engines tell it. */
  readonly emaP50: bigint;
  /** Landed tips that it is made of. */
  readonly count: number;
  readonly windowStartMs: number;
  /** No tip landed in the window: the numbers are those of an earlier one. */
  readonly isStale: boolean;
}

/** The snapshot as the gateway sees it; tip-statistics.ts is the real one. */
export interface TipFloor {
  readonly snapshot: TipSnapshot;
  /** Told after every refresh, on the quarter hour. Returns how to end that. */
  onRefresh(listener: (snapshot: TipSnapshot) => void): () => void;
}

export interface LandedTip {
  /** Base58. */
  readonly signature: string;
  readonly lamports: bigint;
  readonly landedMs: number;
}

/** Every promise may reject with "store_failed". */
export interface LandedTipStore {
  /** Adds some (a known signature is passed over) and removes others. Survives a kill. */
  write(added: readonly LandedTip[], removed: readonly string[]): Promise<void>;
  /** Landed at `sinceMs` or later, at most `limit`, behind the given one; ascending by time, signature. */
  since(sinceMs: number, behind: LandedTip | null, limit: number): Promise<LandedTip[]>;
  forgetBefore(ms: number): Promise<void>;
  /**
   * The first of a quarter of an hour (its number since 1970) stays, whichever node it is of; one of an
   * earlier quarter never replaces it, unless the kept one is of a time to come.
   */
  keepSnapshot(snapshot: TipSnapshot, quarter: number): Promise<void>;
  lastSnapshot(): Promise<TipSnapshot | null>;
}
