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
    const place = this.#places.get(id);
    if (place !== undefined) {
      if (this.#items[place]?.atMs === atMs) return;
      this.#takeOut(place);
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

  #takeOut(place: number): void {
    const out = this.#items[place];
    const last = this.#items.pop();
    if (!out || !last) return;
    this.#places.delete(out.id);
    if (out === last) return;
    this.#put(last, place);
    this.#rise(place);
    this.#sink(this.#places.get(last.id) ?? place);
  }

  #put(item: Item, place: number): void {
    this.#items[place] = item;
    this.#places.set(item.id, place);
  }

  #rise(from: number): void {
    let place = from;
    const item = this.#items[place];
    if (!item) return;
    for (;;) {
      const above = (place - 1) >> 1;
      const parent = above >= 0 ? this.#items[above] : undefined;
      if (!parent || parent.atMs <= item.atMs) break;
      this.#put(parent, place);
      place = above;
    }
    this.#put(item, place);
  }

  #sink(from: number): void {
    let place = from;
    const item = this.#items[place];
    if (!item) return;
    for (;;) {
      const left = 2 * place + 1;
      const [one, other] = [this.#items[left], this.#items[left + 1]];
      const isOther = one && other && other.atMs < one.atMs;
      const child = isOther ? other : one;
      if (!child || child.atMs >= item.atMs) break;
      this.#put(child, place);
      place = isOther ? left + 1 : left;
    }
    this.#put(item, place);
  }
}
