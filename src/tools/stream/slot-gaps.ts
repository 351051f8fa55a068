// Counts slots that a stream missed as a whole. Pure.
//
// A slot is absent if another one names it as its parent, or follows it, and nothing of it came. Slots before
// the first one do not count.

/** Older slots are forgotten. */
const slotsMax = 1024;

export class SlotGaps {
  #first: bigint | null = null;
  #newest = 0n;
  readonly #seen = new Set<bigint>();
  readonly #absent = new Set<bigint>();
  #forgotten = 0;

  /** null: no slot yet. */
  get newest(): bigint | null {
    return this.#first === null ? null : this.#newest;
  }

  get first(): bigint | null {
    return this.#first;
  }

  get absent(): number {
    return this.#absent.size + this.#forgotten;
  }

  /** Something of `slot` came. `parent`: the slot before it on its fork; 0: unknown. */
  note(slot: bigint, parent: bigint): void {
    if (this.#seen.has(slot)) return;
    this.#first ??= slot;
    this.#seen.add(slot);
    this.#absent.delete(slot);
    // From the parent back to the newest slot that came.
    const last = this.#newest > this.#first ? this.#newest : this.#first;
    const floor = parent - BigInt(slotsMax);
    for (let one = parent; one > last && one > floor; one--) this.#absent.add(one);
    if (slot > this.#newest) this.#newest = slot;
    this.#forget();
  }

  #forget(): void {
    const floor = this.#newest - BigInt(slotsMax);
    for (const slot of this.#seen) {
      if (slot >= floor) break;
      this.#seen.delete(slot);
    }
    for (const slot of this.#absent) {
      if (slot >= floor) continue;
      this.#absent.delete(slot);
      this.#forgotten++;
    }
  }
}
