// Grace period queue: which account's grace ends next?
//
// Used by tier-engine.ts alone. All graces last equally long and begin in the order of time, so they
// end in the order in which they began: a list does what a heap would. Each place knows its
// neighbours, so that entering, leaving from the middle and looking at the first cost the same however
// long the queue is, and nothing of a cancelled grace stays behind.

/** Held by a member of the queue. */
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

  /** `sinceMs`: at or after that of the last one. */
  enter(member: T, sinceMs: number): GracePlace<T> {
    const last = this.#last;
    if (last && last.sinceMs > sinceMs) {
      throw new RangeError(`expected a grace since ${last.sinceMs} ms or later, got ${sinceMs}`);
    }
    const place: GracePlace<T> = { member, sinceMs, before: last, behind: null };
    if (last) last.behind = place;
    else this.#first = place;
    this.#last = place;
    return place;
  }

  /** Once for each place. */
  leave({ before, behind }: GracePlace<T>): void {
    if (before) before.behind = behind;
    else this.#first = behind;
    if (behind) behind.before = before;
    else this.#last = before;
  }
}
