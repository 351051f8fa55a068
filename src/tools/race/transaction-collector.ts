// Transaction collector: the first observation of each transaction in each feed, by slot until it is settled.
//
// Used by a race with streams. A transaction is identified by slot and signature; forks are different slots.
// Transactions are bounded for any input.

import { type FeedCounts, OpenSlots } from "./open-slots.ts";

export interface TransactionArrival {
  readonly feed: number;
  readonly slot: number;
  /** In base58. */
  readonly signature: string;
  /** Since the start of the race. */
  readonly timeNs: number;
}

const openTransactionsMax = 1_000_000;

export class TransactionArrivals {
  readonly slot: number;
  readonly feeds: number;
  /** Times by feed; Infinity if the transaction never arrived. */
  readonly times = new Map<string, Float64Array>();
  firstNs = Number.POSITIVE_INFINITY;
  lastNewNs = Number.NEGATIVE_INFINITY;

  constructor(slot: number, feeds: number) {
    this.slot = slot;
    this.feeds = feeds;
  }

  /** Transactions that at least one feed delivered. */
  get distinct(): number {
    return this.times.size;
  }

  /** Returns false if the feed had delivered the transaction already. */
  note({ feed, signature, timeNs }: TransactionArrival): boolean {
    this.firstNs = Math.min(this.firstNs, timeNs);
    let times = this.times.get(signature);
    if (!times) {
      times = new Float64Array(this.feeds).fill(Number.POSITIVE_INFINITY);
      this.times.set(signature, times);
      this.lastNewNs = Math.max(this.lastNewNs, timeNs);
    }
    if (times[feed] !== Number.POSITIVE_INFINITY) return false;
    times[feed] = timeNs;
    return true;
  }
}

interface TransactionCollectorOptions {
  readonly feeds: number;
  readonly settleNs: number;
  readonly onSettled: (slot: TransactionArrivals) => void;
}

export class TransactionCollector {
  readonly #slots: OpenSlots<TransactionArrivals>;
  #transactions = 0;

  constructor({ feeds, settleNs, onSettled }: TransactionCollectorOptions) {
    this.#slots = new OpenSlots({
      feeds,
      settleNs,
      create: (slot) => new TransactionArrivals(slot, feeds),
      onSettled: (slot) => {
        this.#transactions -= slot.distinct;
        onSettled(slot);
      },
    });
  }

  get counts(): readonly FeedCounts[] {
    return this.#slots.counts;
  }

  /** Slots in progress, in order of their first arrivals. */
  get open(): readonly TransactionArrivals[] {
    return this.#slots.all;
  }

  note(arrival: TransactionArrival): void {
    const slot = this.#slots.slotOf(arrival);
    const counts = this.counts[arrival.feed];
    if (!slot || !counts) return;
    if (this.#transactions === openTransactionsMax && !slot.times.has(arrival.signature)) {
      counts.beyond++;
      return;
    }
    const before = slot.distinct;
    if (!slot.note(arrival)) counts.repeats++;
    this.#transactions += slot.distinct - before;
  }

  settle(nowNs: number): void {
    this.#slots.settle(nowNs);
  }
}
