// FairCache: a bounded map whose entries belong to owners, so that no owner can push out the others'.
//
// Used for values that callers of different accounts bring into memory. A full cache drops the least recently
// used entry of the owner with the most entries. An owner with few entries keeps them, however many another
// one brings.

export class FairCache<V> {
  readonly #max: number;
  readonly #owners = new Map<string, string>();
  /** Entries by owner and key, the least recently used first. Owners without entries are absent. */
  readonly #entries = new Map<string, Map<string, V>>();

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#owners.size;
  }

  get(key: string): V | undefined {
    const owner = this.#owners.get(key);
    return owner === undefined ? undefined : this.#entries.get(owner)?.get(key);
  }

  /** Sets it as the most recently used entry of its owner; it replaces an entry of another owner. */
  set(key: string, value: V, owner: string): void {
    this.delete(key);
    while (this.#owners.size >= this.#max && this.#evictFor(owner));
    const own = this.#entries.get(owner) ?? new Map<string, V>();
    this.#entries.set(owner, own.set(key, value));
    this.#owners.set(key, owner);
  }

  /**
   * Marks the entry as the most recently used. It goes to `owner` if that one has fewer entries than the
   * present owner: nobody loses an entry because somebody else uses it, too.
   */
  use(key: string, owner: string): void {
    const value = this.get(key);
    const present = this.#owners.get(key);
    if (value === undefined || present === undefined) return;
    const isMoved = this.#countOf(owner) < this.#countOf(present);
    this.set(key, value, isMoved ? owner : present);
  }

  delete(key: string): boolean {
    const owner = this.#owners.get(key);
    if (owner === undefined) return false;
    const own = this.#entries.get(owner);
    own?.delete(key);
    if (own?.size === 0) this.#entries.delete(owner);
    return this.#owners.delete(key);
  }

  clear(): void {
    this.#owners.clear();
    this.#entries.clear();
  }

  *values(): Generator<V> {
    for (const own of this.#entries.values()) yield* own.values();
  }

  #countOf(owner: string): number {
    return this.#entries.get(owner)?.size ?? 0;
  }

  /** Among owners with equally many entries, the one that brings the new entry loses one. */
  #evictFor(newcomer: string): boolean {
    let largest = this.#entries.get(newcomer);
    for (const own of this.#entries.values()) if (own.size > (largest?.size ?? 0)) largest = own;
    const [oldest] = largest?.keys() ?? [];
    return oldest !== undefined && this.delete(oldest);
  }
}
