// Tip expiry queue: which counted tip leaves the sum next, and up to when is that known?
//
// Held by leader-tiers.ts. Memory has the head of the queue only; what follows lies in the store and is
// read before the head runs dry. As long as more lies there, nothing after `knownUntilMs` is told: a
// store that fails holds the time back, and no tip leaves unseen. Tips that were counted just now go
// into memory when their place is inside the head, and are read with the rest otherwise.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type { CountedTip, TierStore } from "./types.ts";

/** 4096 at 58 tips a second (5 million in 24 hours) are more than a minute of a store that fails. */
const headMax = 8192;
/** Of one read: some milliseconds of the event loop. */
const pageMax = 1024;
const retryMs = 1000;
/** Of a 64-bit integer: behind all orders. */
const orderMax = 2n ** 63n - 1n;

type Place = Pick<CountedTip, "registeredMs" | "order">;

interface TipExpiryQueueOptions {
  readonly store: Pick<TierStore, "leavingAfter">;
  readonly windowMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** More is known than before; never called inside a call of the queue. */
  readonly onMore: () => void;
  /** Tips in memory and in one read; tests make them few. */
  readonly headMax?: number;
  readonly pageMax?: number;
}

function isBehind(a: Place, b: Place): boolean {
  return (
    a.registeredMs > b.registeredMs || (a.registeredMs === b.registeredMs && a.order > b.order)
  );
}

export class TipExpiryQueue {
  readonly #options: TipExpiryQueueOptions;
  readonly #headMax: number;
  readonly #pageMax: number;
  /** Ascending; those before `#first` have left. */
  #tips: CountedTip[] = [];
  #first = 0;
  /** Everything up to here is, or was, in memory; what is behind is in the store only. */
  #tail: Place = { registeredMs: 0, order: 0n };
  /** Nothing is behind the tail. */
  #isComplete = false;
  #isReading = false;
  /** Counted during a read, behind the tail: the read may have been too early to see them. */
  #countedMeanwhile: CountedTip[] = [];
  #retry: Timer | null = null;
  #isFailing = false;
  #isClosed = false;

  constructor(options: TipExpiryQueueOptions) {
    this.#options = options;
    this.#headMax = options.headMax ?? headMax;
    this.#pageMax = options.pageMax ?? pageMax;
  }

  /** Nothing is in it, and everything that leaves after `evaluatedMs` has yet to be read. */
  begin(evaluatedMs: number): void {
    this.#tail = { registeredMs: evaluatedMs - this.#options.windowMs, order: orderMax };
  }

  /** Tips in memory. */
  get length(): number {
    return this.#tips.length - this.#first;
  }

  /** Whatever leaves up to here, that millisecond included, is in memory. */
  get knownUntilMs(): number {
    return this.#isComplete
      ? Number.POSITIVE_INFINITY
      : this.#tail.registeredMs + this.#options.windowMs - 1;
  }

  /** When the first one leaves; null: none that is known. */
  get nextMs(): number | null {
    const first = this.#tips[this.#first];
    return first ? first.registeredMs + this.#options.windowMs : null;
  }

  /** The next one, when it leaves at `untilMs` or before and all before it are known. */
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

  /** A tip that is in the sum since now, and persisted as counted. */
  add(tip: CountedTip): void {
    if (this.#isComplete || !isBehind(tip, this.#tail)) this.#insert(tip);
    else if (this.#isReading) this.#countedMeanwhile.push(tip);
  }

  /** Reads on when the head is short; `onMore` follows. A store that fails is asked again and again. */
  fill(): void {
    if (!this.#isShort || this.#isReading || this.#retry || this.#isClosed) return;
    void this.#fill();
  }

  /** Reads what follows the tail, once; one read at a time. Rejects as the store. */
  async read(limit = this.#headMax): Promise<void> {
    const tail = this.#tail;
    this.#isReading = true;
    try {
      const page = await this.#options.store.leavingAfter(tail, Number.MAX_SAFE_INTEGER, limit);
      // The tail moved back meanwhile: there would be a gap. Read again from where it is now.
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
    // All of one millisecond: none of them is known to be the last one of it.
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

  /** At its place, once: a read may have brought it already. */
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
    if (this.#isFailing) this.#options.log.info("tiers: the store tells again which tips leave");
    this.#isFailing = false;
    if (!this.#isClosed) this.#options.onMore();
  }

  #readAgain(error: unknown): void {
    if (this.#isClosed) return;
    if (!this.#isFailing) {
      const until = this.#tail.registeredMs + this.#options.windowMs - 1;
      this.#options.log.warn(
        `tiers: which tips leave is not known from ${until} ms on; the sums stand still there until ` +
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
