// Timer wheel: finds the due items among very many.
//
// Open submissions and pending registrations have their resends, queries and deadlines in wheels,
// each turned by one timer. Adding, moving and removing take constant time. A turn visits the due
// items, and once per round each item that is due later than a round.

const buckets = 512;

export class TimerWheel<T extends object> {
  readonly #tickMs: number;
  /** Maps an item to the tick in which it is due. */
  readonly #buckets: Map<T, number>[] = Array.from({ length: buckets }, () => new Map());
  readonly #bucketOf = new Map<T, Map<T, number>>();
  #tick: number;

  constructor(tickMs: number, nowMs: number) {
    this.#tickMs = tickMs;
    this.#tick = Math.floor(nowMs / tickMs);
  }

  get size(): number {
    return this.#bucketOf.size;
  }

  has(item: T): boolean {
    return this.#bucketOf.has(item);
  }

  /** Schedules `item` for the first turn at or after `atMs`, instead of its earlier time if it had one. */
  set(item: T, atMs: number): void {
    this.delete(item);
    const tick = Math.max(this.#tick + 1, Math.ceil(atMs / this.#tickMs));
    const bucket = this.#buckets[tick % buckets];
    if (!bucket) throw new RangeError(`timer wheel: expected a time of 0 or more, got ${atMs}`);
    bucket.set(item, tick);
    this.#bucketOf.set(item, bucket);
  }

  delete(item: T): boolean {
    this.#bucketOf.get(item)?.delete(item);
    return this.#bucketOf.delete(item);
  }

  /** Removes and returns the items that are due. */
  turn(nowMs: number): T[] {
    const due: T[] = [];
    const now = Math.floor(nowMs / this.#tickMs);
    // After a long pause every bucket is visited once.
    const first = Math.max(this.#tick + 1, now - buckets + 1);
    for (let tick = first; tick <= now; tick++) {
      for (const [item, dueTick] of this.#buckets[tick % buckets] ?? []) {
        if (dueTick > now) continue;
        due.push(item);
        this.delete(item);
      }
    }
    this.#tick = Math.max(this.#tick, now);
    return due;
  }
}
