// RunningTotals: sums over counters whose owners appear and disappear. The sums never fall.
//
// For counts whose owners are too many or too short-lived for a series each, such as destinations of accounts
// above the limit and leaders of a TPU route. A plain sum over the present owners would fall when one is
// removed, and Prometheus would read that as a restart.

export class RunningTotals {
  readonly #totals = new Map<string, bigint>();
  #last = new Map<string, bigint>();
  #now = new Map<string, bigint>();

  /** Within one scrape: the present count of `owner` under `name`. */
  note(owner: string, name: string, count: bigint): void {
    const key = `${name} ${owner}`;
    const before = this.#last.get(key) ?? 0n;
    // A smaller count means that the owner restarted from 0.
    const more = count >= before ? count - before : count;
    this.#now.set(key, count);
    this.#totals.set(name, (this.#totals.get(name) ?? 0n) + more);
  }

  /** Ends the scrape. An owner without a count in it is forgotten and starts from 0 if it returns. */
  finish(): void {
    this.#last = this.#now;
    this.#now = new Map();
  }

  get totals(): ReadonlyMap<string, bigint> {
    return this.#totals;
  }
}
