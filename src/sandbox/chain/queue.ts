// The leader's queue: what waits to be executed, best paid first.
//
// Called by chain.ts (put in) and the producer (take out). Bounded in transactions: a full queue
// refuses, so that nobody gets a signature for something that was thrown away. A bundle stays
// together. Between equal fees the tip decides that a partner's port vouches for, then who came first.
// One queue for the cluster: a transaction that waits reaches whoever leads next.

import { ShredwayError } from "../../core/errors.ts";
import type { Candidate } from "./executor.ts";

export interface QueueItem {
  /** One, or those of a bundle in their order. */
  readonly candidates: readonly Candidate[];
  readonly isBundle: boolean;
  /** Not to be executed before this moment of the chain's clock. */
  readonly notBeforeNs: bigint;
  /** Of what came by an alternative partner's port; everything else is without. */
  readonly tipLamports?: bigint;
}

interface Waiting extends QueueItem {
  readonly price: bigint;
  readonly order: number;
}

/** Priority fees per compute unit, over all transactions of the item. */
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

  /** Transactions that wait. */
  get count(): number {
    return this.#signatures.size;
  }

  hasRoomFor(count: number): boolean {
    return this.count + count <= this.#countMax;
  }

  has(signature: string): boolean {
    return this.#signatures.has(signature);
  }

  /** Throws ShredwayError "queue_full". The signatures must not be in the queue. */
  add(item: QueueItem): void {
    if (!this.hasRoomFor(item.candidates.length)) {
      throw new ShredwayError(
        "queue_full",
        `leader's queue: expected room for ${item.candidates.length} transactions, got ${this.count} waiting of at most ${this.#countMax}`,
      );
    }
    for (const { signature } of item.candidates) this.#signatures.add(signature);
    this.#waiting.push({ ...item, price: priceOf(item.candidates), order: this.#nextOrder++ });
  }

  /** Takes out what may run at `timeNs`, best paid first, as long as `countMax` are not passed. */
  take(timeNs: bigint, countMax: number): readonly QueueItem[] {
    if (this.#waiting.length === 0) return [];
    this.#waiting.sort(compare);
    const taken: Waiting[] = [];
    let count = 0;
    this.#waiting = this.#waiting.filter((item) => {
      const isTaken = item.notBeforeNs <= timeNs && count + item.candidates.length <= countMax;
      if (!isTaken) return true;
      count += item.candidates.length;
      taken.push(item);
      this.#forget(item);
      return false;
    });
    return taken;
  }

  /** Throws out items with a transaction that `isExpired`, and returns these transactions. */
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
