// Due heap: the item that is due first, and its time.
//
// Used by destinations.ts, which has one timer for all destinations. Setting, moving and removing take
// logarithmic time.

interface Item {
  readonly id: string;
  readonly atMs: number;
}

export class DueHeap {
  /** A binary heap: no item is due before the one at (place - 1) >> 1. */
  readonly #items: Item[] = [];
  readonly #places = new Map<string, number>();

  get size(): number {
    return this.#items.length;
  }

  /** Time of the first item; null: empty. */
  get nextMs(): number | null {
    return this.#items[0]?.atMs ?? null;
  }

  /** Replaces an earlier time; null: never due. */
  set(id: string, atMs: number | null): void {
    const index = this.#places.get(id);
    if (index !== undefined) {
      if (this.#items[index]?.atMs === atMs) return;
      this.#takeOut(index);
    }
    if (atMs === null) return;
    this.#items.push({ id, atMs });
    this.#rise(this.#items.length - 1);
  }

  /** Removes the due items, the first one first. */
  takeDue(nowMs: number): string[] {
    const due: string[] = [];
    for (let first = this.#items[0]; first && first.atMs <= nowMs; first = this.#items[0]) {
      due.push(first.id);
      this.#takeOut(0);
    }
    return due;
  }

  #takeOut(index: number): void {
    const out = this.#items[index];
    const last = this.#items.pop();
    if (!out || !last) return;
    this.#places.delete(out.id);
    if (out === last) return;
    this.#put(last, index);
    this.#rise(index);
    this.#sink(this.#places.get(last.id) ?? index);
  }

  #put(item: Item, index: number): void {
    this.#items[index] = item;
    this.#places.set(item.id, index);
  }

  #rise(from: number): void {
    let index = from;
    const item = this.#items[index];
    if (!item) return;
    for (;;) {
      const above = (index - 1) >> 1;
      const parent = above >= 0 ? this.#items[above] : undefined;
      if (!parent || parent.atMs <= item.atMs) break;
      this.#put(parent, index);
      index = above;
    }
    this.#put(item, index);
  }

  #sink(from: number): void {
    let index = from;
    const item = this.#items[index];
    if (!item) return;
    for (;;) {
      const left = 2 * index + 1;
      const [one, other] = [this.#items[left], this.#items[left + 1]];
      const isOther = one && other && other.atMs < one.atMs;
      const child = isOther ? other : one;
      if (!child || child.atMs >= item.atMs) break;
      this.#put(child, index);
      index = isOther ? left + 1 : left;
    }
    this.#put(item, index);
  }
}
