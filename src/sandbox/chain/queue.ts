// The leader's queue: transactions that wait for execution, highest fee first.
//
// Called by chain.ts (add) and the producer (remove). Bounded in transactions: a full queue
// rejects, so that no caller gets a signature of a dropped transaction. A bundle stays together.
// With equal fees, the tip reported by a partner's port decides, then the order of arrival. The
// cluster has one queue: a waiting transaction reaches the next leader.

import { ShredwayError } from "../../core/errors.ts";
import type { Candidate } from "./executor.ts";

export interface QueueItem {
  /** One transaction, or those of a bundle in order. */
  readonly candidates: readonly Candidate[];
  readonly isBundle: boolean;
  /** Earliest execution time on the chain's clock. */
  readonly notBeforeNs: bigint;
  /** Tip of a transaction from an alternative partner's port; otherwise absent. */
  readonly tipLamports?: bigint;
}

interface Waiting extends QueueItem {
  readonly price: bigint;
  readonly order: number;
}

/** Priority fee per compute unit, over all transactions of the item. */
function priceOf(candidates: readonly Candidate[]): bigint {
  let units = 0n;
  let paid = 0n;
  for (const { fee } of candidates) {
    units += fee.computeUnitLimit;
    paid += fee.computeUnitLimit * fee.price;
  }
  return units === 0n ? 0n : paid / units;
}

/** A total order: fee per compute unit, tip, order of arrival. */
function compare(a: Waiting, b: Waiting): number {
  if (a.price !== b.price) return a.price > b.price ? -1 : 1;
  const [tipA, tipB] = [a.tipLamports ?? 0n, b.tipLamports ?? 0n];
  if (tipA !== tipB) return tipA > tipB ? -1 : 1;
  return a.order - b.order;
}

export class LeaderQueue {
  readonly #countMax: number;
  #waiting: Waiting[] = [];
  readonly #signatures = new Set<string>();
  #nextOrder = 0;

  constructor(countMax: number) {
    this.#countMax = countMax;
  }

  /** Number of waiting transactions. */
  get count(): number {
    return this.#signatures.size;
  }

  hasCapacityFor(count: number): boolean {
    return this.count + count <= this.#countMax;
  }

  has(signature: string): boolean {
    return this.#signatures.has(signature);
  }

  /** Throws ShredwayError "queue_full". The signatures must not be in the queue. */
  add(item: QueueItem): void {
    if (!this.hasCapacityFor(item.candidates.length)) {
      throw new ShredwayError(
        "queue_full",
        `leader's queue: expected capacity for ${item.candidates.length} transactions, got ${this.count} waiting of at most ${this.#countMax}`,
      );
    }
    for (const { signature } of item.candidates) this.#signatures.add(signature);
    this.#waiting.push({ ...item, price: priceOf(item.candidates), order: this.#nextOrder++ });
  }

  /**
   * Removes and returns the items that may run at `timeNs`, highest fee first, with at most
   * `countMax` transactions.
   */
  take(timeNs: bigint, countMax: number): readonly QueueItem[] {
    if (this.#waiting.length === 0) return [];
    this.#waiting.sort(compare);
    const removed: Waiting[] = [];
    let count = 0;
    this.#waiting = this.#waiting.filter((item) => {
      const isSelected = item.notBeforeNs <= timeNs && count + item.candidates.length <= countMax;
      if (!isSelected) return true;
      count += item.candidates.length;
      removed.push(item);
      this.#forget(item);
      return false;
    });
    return removed;
  }

  /**
   * Removes items with a transaction for which `isExpired` is true, and returns these transactions.
   */
  purge(isExpired: (candidate: Candidate) => boolean): readonly Candidate[] {
    const expired: Candidate[] = [];
    this.#waiting = this.#waiting.filter((item) => {
      const found = item.candidates.filter(isExpired);
      if (found.length === 0) return true;
      expired.push(...found);
      this.#forget(item);
      return false;
    });
    return expired;
  }

  #forget({ candidates }: QueueItem): void {
    for (const { signature } of candidates) this.#signatures.delete(signature);
  }
}
