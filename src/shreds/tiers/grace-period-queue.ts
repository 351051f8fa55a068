// Grace period queue: the account whose grace period ends next.
//
// Used only by tier-engine.ts. All grace periods have the same duration and begin in time order, so they
// also end in that order, and a list is sufficient. Entries are linked to their neighbours, so adding,
// removing and reading take constant time, and a cancelled grace period leaves nothing behind.

/** Reference to an entry of the queue. */
export interface GraceEntry<T> {
  readonly member: T;
  readonly sinceMs: number;
  before: GraceEntry<T> | null;
  behind: GraceEntry<T> | null;
}

export class GracePeriodQueue<T> {
  #first: GraceEntry<T> | null = null;
  #last: GraceEntry<T> | null = null;

  get first(): GraceEntry<T> | null {
    return this.#first;
  }

  /** `sinceMs`: not before that of the last entry. */
  enter(member: T, sinceMs: number): GraceEntry<T> {
    const last = this.#last;
    if (last && last.sinceMs > sinceMs) {
      throw new RangeError(
        `expected a grace period since ${last.sinceMs} ms or later, got ${sinceMs}`,
      );
    }
    const place: GraceEntry<T> = { member, sinceMs, before: last, behind: null };
    if (last) last.behind = place;
    else this.#first = place;
    this.#last = place;
    return place;
  }

  /** Call it once per entry. */
  leave({ before, behind }: GraceEntry<T>): void {
    if (before) before.behind = behind;
    else this.#first = behind;
    if (behind) behind.before = before;
    else this.#last = before;
  }
}
