// Generated destinations for the store's tests.

import type { Account } from "../../../src/gateway/accounts/types.ts";
import type { AccountDestination } from "../../../src/shreds/destinations/destination-types.ts";

let created = 0;

/** Unique for each call. */
export function destinationFor(
  account: Account,
  changes: Partial<AccountDestination> = {},
): AccountDestination {
  created++;
  return {
    id: `d_${String(created).padStart(12, "0")}`,
    accountId: account.id,
    accountName: account.name,
    region: "frankfurt",
    address: `192.0.2.1:${9000 + created}`,
    createdMs: created,
    state: "unproved",
    provedMs: null,
    provedBy: null,
    proofEndsMs: null,
    pausedMs: null,
    pauseReason: null,
    recovered: false,
    ...changes,
  };
}
