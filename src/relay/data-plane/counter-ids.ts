// Counter ids: the assignment of the data plane's counters to sources and destinations.
//
// A name keeps its number, so its counts continue when tables change. A released number is reused as
// late as possible, and its new owner starts from zero (the previous counts are the baseline).

const noNumber = -1;

export class CounterIds {
  readonly #max: number;
  #idByName: ReadonlyMap<string, number> = new Map();
  #free: readonly number[] = [];
  #next = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Number of assigned ids so far: the rows that a snapshot needs. */
  get rows(): number {
    return this.#next;
  }

  /**
   * Numbers for exactly these names, in order (one for equal names). `reused` are those with a previous
   * owner. Nothing changes before `commit`, so a rejected table does not affect the counters. Returns
   * undefined if there are more names than numbers.
   */
  assign(
    names: readonly string[],
  ): { ids: number[]; reused: number[]; commit: () => void } | undefined {
    if (names.length > this.#max) return undefined;
    const given = new Map<string, number>();
    for (const name of names) given.set(name, this.#idByName.get(name) ?? noNumber);
    const free = [...this.#free];
    let next = this.#next;
    for (const [name, id] of this.#idByName) if (!given.has(name)) free.push(id);
    const reused: number[] = [];
    const ids = names.map((name) => {
      const known = given.get(name) ?? noNumber;
      if (known !== noNumber) return known;
      const fresh = next < this.#max;
      const id = fresh ? next++ : (free.shift() ?? 0);
      if (!fresh) reused.push(id);
      given.set(name, id);
      return id;
    });
    const commit = () => {
      this.#idByName = given;
      this.#free = free;
      this.#next = next;
    };
    return { ids, reused, commit };
  }
}
