// Counter ids: which of the data plane's counters belong to which source or destination.
//
// A name keeps its number, so its counts go on when tables change. A number that was given up is
// given out again as late as possible, and whoever gets it starts from zero (the counts that it had
// are the baseline).

const noNumber = -1;

export class CounterIds {
  readonly #max: number;
  #idByName: ReadonlyMap<string, number> = new Map();
  #free: readonly number[] = [];
  #next = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** How many numbers were ever given out: the rows that a snapshot needs. */
  get rows(): number {
    return this.#next;
  }

  /**
   * Numbers for exactly these names, in their order (one for all of the same name). `reused` are those
   * that belonged to somebody else before. Nothing has changed until `commit` is called: a table that is
   * refused takes nobody's counters. Undefined when there are more names than numbers.
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
