// Grace period queue: the account whose grace period ends next.
//
// Used only by tier-engine.ts. All grace periods have the same duration and begin in time order, so they
// also end in that order, and a list is sufficient. Entries are linked to their neighbours, so adding,
// removing and reading take constant time, and a cancelled grace period leaves nothing behind.

/** Reference to an entry of the queue. */
export interface GracePlace<T> {
  readonly member: T;
  readonly sinceMs: number;
  before: GracePlace<T> | null;
  behind: GracePlace<T> | null;
}

export class GracePeriodQueue<T> {
  #first: GracePlace<T> | null = null;
  #last: GracePlace<T> | null = null;

  get first(): GracePlace<T> | null {
    return this.#first;
  }

  /** `sinceMs`: not before that of the last entry. */
  enter(member: T, sinceMs: number): GracePlace<T> {
    const last = this.#last;
    if (last && last.sinceMs > sinceMs) {
      throw new RangeError(
        `expected a grace period since ${last.sinceMs} ms or later, got ${sinceMs}`,
      );
    }
    const place: GracePlace<T> = { member, sinceMs, before: last, behind: null };
    if (last) last.behind = place;
    else this.#first = place;
    this.#last = place;
    return place;
  }

  /** Call it once per entry. */
  leave({ before, behind }: GracePlace<T>): void {
    if (before) before.behind = behind;
    else this.#first = behind;
    if (behind) behind.before = before;
    else this.#last = before;
  }
}
