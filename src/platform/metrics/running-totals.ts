// RunningTotals: many counters that come and go as a few that never fall.
//
// For counts whose owners are too many, or too short-lived, for a series of their own (customers'
// destinations beyond the limit, leaders of the direct route). A sum over those who are there at the
// moment would fall when one goes, and Prometheus would take that for a restart.

export class RunningTotals {
  readonly #totals = new Map<string, bigint>();
  #last = new Map<string, bigint>();
  #now = new Map<string, bigint>();

  /** Of one look: `owner` has counted so much under `name` so far. */
  note(owner: string, name: string, count: bigint): void {
    const key = `${name} ${owner}`;
    const before = this.#last.get(key) ?? 0n;
    // Less than before: it began anew.
    const more = count >= before ? count - before : count;
    this.#now.set(key, count);
    this.#totals.set(name, (this.#totals.get(name) ?? 0n) + more);
  }

  /** Ends the look: whoever was not noted is gone, and begins at nothing if he comes again. */
  finish(): void {
    this.#last = this.#now;
    this.#now = new Map();
  }

  get totals(): ReadonlyMap<string, bigint> {
    return this.#totals;
  }
}
