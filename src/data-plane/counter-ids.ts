// Counter ids: which of the data plane's counters belong to which source or destination.
//
// A name keeps its number, so its counts go on when tables change. A number that was given up is
// given out again as late as possible, and whoever gets it starts from zero (the counts that it had
// are the baseline).

export class CounterIds {
  readonly #max: number;
  readonly #idByName = new Map<string, number>();
  readonly #free: number[] = [];
  #next = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** How many numbers were ever given out: the rows that a snapshot needs. */
  get rows(): number {
    return this.#next;
  }

  /**
   * Numbers for exactly these names (distinct), in their order. `reused` are those that belonged to
   * somebody else before. Undefined, and nothing changed, when there are more names than numbers.
   */
  assign(names: readonly string[]): { ids: number[]; reused: number[] } | undefined {
    if (names.length > this.#max) return undefined;
    const wanted = new Set(names);
    for (const [name, id] of this.#idByName) {
      if (wanted.has(name)) continue;
      this.#idByName.delete(name);
      this.#free.push(id);
    }
    const reused: number[] = [];
    const ids = names.map((name) => {
      const known = this.#idByName.get(name);
      if (known !== undefined) return known;
      const fresh = this.#next < this.#max;
      const id = fresh ? this.#next++ : (this.#free.shift() ?? 0);
      if (!fresh) reused.push(id);
      this.#idByName.set(name, id);
      return id;
    });
    return { ids, reused };
  }
}
