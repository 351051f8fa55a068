// Ids of the filters in the relay's table, and the subscribers that they belong to.
//
// Owned by stream-hub.ts. A filter that replaces another one gets an id of its own, and both are in use until the
// relay has applied the new table. A message therefore names the filter that it was matched with, whatever was
// published meanwhile.

import { type FilterName, FilterNames } from "./filter-names.ts";
import type { NamedFilter } from "./named-filter.ts";

interface Assigned<Owner> {
  readonly filter: NamedFilter;
  /** The filter's own name. */
  readonly names: readonly [FilterName];
  readonly owner: Owner;
  /** Messages of earlier generations were matched with another filter of this id. null: not published. */
  since: number | null;
}

export class FilterIds<Owner> {
  readonly #assigned: (Assigned<Owner> | undefined)[];
  readonly #names = new FilterNames();
  #next = 0;

  constructor(count: number) {
    this.#assigned = Array.from({ length: count });
  }

  /** One id must be free. Ids are used in turn, so that a message for a former filter finds its id unused. */
  assign(filter: NamedFilter, owner: Owner): number {
    while (this.#assigned[this.#next]) this.#next = (this.#next + 1) % this.#assigned.length;
    const id = this.#next;
    this.#next = (id + 1) % this.#assigned.length;
    this.#assigned[id] = { filter, names: [this.#names.use(filter.name)], owner, since: null };
    return id;
  }

  release(ids: readonly number[]): void {
    for (const id of ids) {
      const assigned = this.#assigned[id];
      if (!assigned) continue;
      this.#names.release(assigned.filter.name);
      this.#assigned[id] = undefined;
    }
  }

  filterOf(id: number): NamedFilter | undefined {
    return this.#assigned[id]?.filter;
  }

  /** The filter that a message of this generation was matched with; undefined: it is not in use any more. */
  matched(id: number, generation: number): Assigned<Owner> | undefined {
    const assigned = this.#assigned[id];
    if (!assigned || assigned.since === null || generation < assigned.since) return undefined;
    return assigned;
  }

  /** All ids are in the relay's table from this generation on. */
  published(generation: number): void {
    for (const assigned of this.#assigned) if (assigned) assigned.since ??= generation;
  }
}
