// Limits of the filters of one stream, and of all streams together.

import { GrpcError } from "../../core/grpc/status.ts";
import { accountsIn, type NamedFilter } from "./named-filter.ts";
import type { StreamHub } from "./stream-hub.ts";

export interface FilterLimits {
  readonly filtersPerSubscription: number;
  readonly accountsPerSubscription: number;
}

interface FilterContext {
  /** The filters that the new ones replace. */
  readonly present: readonly NamedFilter[];
  /** Filters of another kind in the same request. */
  readonly others: number;
  readonly hub: Pick<StreamHub, "room">;
  readonly limits: FilterLimits;
}

/** Throws GrpcError "INVALID_ARGUMENT" or "RESOURCE_EXHAUSTED". */
export function checkFilters(
  filters: readonly NamedFilter[],
  { present, others, hub, limits }: FilterContext,
): void {
  const accounts = accountsIn(filters);
  atMost("filters", limits.filtersPerSubscription, filters.length + others);
  atMost("accounts in all filters", limits.accountsPerSubscription, accounts);
  const room = hub.room();
  const filtersMax = room.filters + present.length;
  const accountsMax = room.accounts + accountsIn(present);
  if (filters.length <= filtersMax && accounts <= accountsMax) return;
  throw new GrpcError(
    "RESOURCE_EXHAUSTED",
    `filters of all subscribers: expected at most ${filtersMax} more filters and ` +
      `${accountsMax} more accounts, got ${filters.length} and ${accounts}; retry later`,
  );
}

function atMost(what: string, max: number, got: number): void {
  if (got <= max) return;
  throw new GrpcError("INVALID_ARGUMENT", `${what}: expected at most ${max}, got ${got}`);
}
