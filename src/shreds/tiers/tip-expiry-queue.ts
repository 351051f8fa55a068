// Tip expiry queue: the counted tip that leaves the sum next, and the time up to which all expiries are
// known.
//
// Owned by leader-tiers.ts. Memory contains only the head of the queue; the rest is in the store and is
// read before the head is empty. While the store contains more, nothing after `knownUntilMs` is
// returned, so a failing store delays time and no expiry is missed. A newly counted tip is added to the
// head if its place is inside, and read with the rest otherwise.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type { CountedTip, TierStore } from "./types.ts";

/**
 * 4096 tips at 58 per second (5 million in 24 hours) bridge more than a minute of a failing store.
 */
const headMax = 8192;
/** Tips in one read; blocks the event loop for a few milliseconds. */
const pageMax = 1024;
const retryMs = 1000;
/** The largest 64-bit integer, after all order numbers. */
const orderMax = 2n ** 63n - 1n;

type TipPosition = Pick<CountedTip, "registeredMs" | "order">;

interface TipExpiryQueueOptions {
  readonly store: Pick<TierStore, "leavingAfter">;
  readonly windowMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when more expiries are known; never inside a call of the queue. */
  readonly onMore: () => void;
  /** Tips in memory and in one read; tests use small numbers. */
  readonly headMax?: number;
  readonly pageMax?: number;
}

function isBehind(a: TipPosition, b: TipPosition): boolean {
  return (
    a.registeredMs > b.registeredMs || (a.registeredMs === b.registeredMs && a.order > b.order)
  );
}

export class TipExpiryQueue {
  readonly #options: TipExpiryQueueOptions;
  readonly #headMax: number;
  readonly #pageMax: number;
  /** Ascending; those before `#first` have expired. */
  #tips: CountedTip[] = [];
  #first = 0;
  /** All expiries up to here are or were in memory; later ones are only in the store. */
  #tail: TipPosition = { registeredMs: 0, order: 0n };
  /** The store contains nothing after the tail. */
  #isComplete = false;
  #isReading = false;
  /** Tips counted during a read after the tail, which may not contain them. */
  #countedMeanwhile: CountedTip[] = [];
  #retry: Timer | null = null;
  #isFailing = false;
  #isClosed = false;

  constructor(options: TipExpiryQueueOptions) {
    this.#options = options;
    this.#headMax = options.headMax ?? headMax;
    this.#pageMax = options.pageMax ?? pageMax;
  }

  /** Empty, and all expiries after `evaluatedMs` must still be read. */
  begin(evaluatedMs: number): void {
    this.#tail = { registeredMs: evaluatedMs - this.#options.windowMs, order: orderMax };
  }

  /** Tips in memory. */
  get length(): number {
    return this.#tips.length - this.#first;
  }

  /** All expiries up to this millisecond, inclusive, are in memory. */
  get knownUntilMs(): number {
    return this.#isComplete
      ? Number.POSITIVE_INFINITY
      : this.#tail.registeredMs + this.#options.windowMs - 1;
  }

  /** Time of the first expiry; null: none is known. */
  get nextMs(): number | null {
    const first = this.#tips[this.#first];
    return first ? first.registeredMs + this.#options.windowMs : null;
  }

  /** The next expiry if it is due at `untilMs` or before and all earlier ones are known. */
  take(untilMs: number): CountedTip | null {
    const tip = this.#tips[this.#first];
    if (!tip) return null;
    const leavesMs = tip.registeredMs + this.#options.windowMs;
    if (leavesMs > untilMs || leavesMs > this.knownUntilMs) return null;
    this.#first++;
    if (this.#first >= this.#pageMax && this.#first * 2 >= this.#tips.length) {
      this.#tips = this.#tips.slice(this.#first);
      this.#first = 0;
    }
    return tip;
  }

  /** A tip that is now in the sum, and persisted as counted. */
  add(tip: CountedTip): void {
    if (this.#isComplete || !isBehind(tip, this.#tail)) this.#insert(tip);
    else if (this.#isReading) this.#countedMeanwhile.push(tip);
  }

  /** Reads more if the head is short; `onMore` follows. Reads are retried while the store fails. */
  fill(): void {
    if (!this.#isShort || this.#isReading || this.#retry || this.#isClosed) return;
    void this.#fill();
  }

  /** Reads the tips after the tail, once; one read at a time. Rejects like the store. */
  async read(limit = this.#headMax): Promise<void> {
    const tail = this.#tail;
    this.#isReading = true;
    try {
      const page = await this.#options.store.leavingAfter(tail, Number.MAX_SAFE_INTEGER, limit);
      // The tail moved back meanwhile, which would leave a gap. Reads again from its present place.
      if (tail === this.#tail) this.#append(page, limit);
    } finally {
      this.#isReading = false;
      this.#countedMeanwhile = [];
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#retry?.cancel();
    this.#retry = null;
  }

  get #isShort(): boolean {
    if (this.#isComplete) return false;
    if (this.length * 2 < this.#headMax) return true;
    // Removes all of one millisecond, because none of them is known to be its last.
    return this.#tips[this.#first]?.registeredMs === this.#tail.registeredMs;
  }

  #append(page: readonly CountedTip[], limit: number): void {
    for (const tip of page) this.#tips.push(tip);
    this.#tail = page.at(-1) ?? this.#tail;
    this.#isComplete = page.length < limit;
    for (const tip of this.#countedMeanwhile) {
      if (this.#isComplete || !isBehind(tip, this.#tail)) this.#insert(tip);
    }
  }

  /** Inserts it once, because a read may have added it already. */
  #insert(tip: CountedTip): void {
    let low = this.#first;
    let high = this.#tips.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#tips[middle];
      if (other && isBehind(tip, other)) low = middle + 1;
      else high = middle;
    }
    if (this.#tips[low]?.order === tip.order) return;
    this.#tips.splice(low, 0, tip);
    this.#trim();
  }

  #trim(): void {
    if (this.length <= this.#headMax) return;
    this.#tips.length = this.#first + this.#headMax;
    this.#tail = this.#tips.at(-1) ?? this.#tail;
    this.#isComplete = false;
  }

  async #fill(): Promise<void> {
    try {
      await this.read(this.#pageMax);
    } catch (error) {
      this.#readAgain(error);
      return;
    }
    if (this.#isFailing) this.#options.log.info("tiers: tip history is readable again");
    this.#isFailing = false;
    if (!this.#isClosed) this.#options.onMore();
  }

  #readAgain(error: unknown): void {
    if (this.#isClosed) return;
    if (!this.#isFailing) {
      const until = this.#tail.registeredMs + this.#options.windowMs - 1;
      this.#options.log.warn(
        `tiers: tip history from ${until} ms on could not be read; totals are frozen there until ` +
          `the store answers: ${messageOf(error)}`,
      );
    }
    this.#isFailing = true;
    this.#retry = this.#options.clock.after(retryMs, () => {
      this.#retry = null;
      this.fill();
    });
  }
}
