// A subscriber's filter, as its request names it.

import type { StreamFilter } from "../data-plane/relay-streams.ts";

/** A filter without what the hub assigns. */
export type NamedFilter = Omit<StreamFilter, "id" | "tier"> & { readonly name: string };

export function accountsIn(filters: readonly NamedFilter[]): number {
  return filters.reduce(
    (sum, { include, exclude, required }) =>
      sum + include.length + exclude.length + required.length,
    0,
  );
}
