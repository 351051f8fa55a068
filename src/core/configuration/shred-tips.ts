// Addresses for tips that buy shreds, and whether a service sells shreds.
//
// Used by the rules of the configuration, by the gateway's settings and by the audit. Pure.

import type { Config } from "./schema.ts";

type TipConfig = Pick<Config, "tips" | "regions">;

/** Distinct shred-tip addresses of all regions, in base58. */
export function shredTipAddressesOf({ tips, regions }: TipConfig): ReadonlySet<string> {
  const all = regions.flatMap(({ shredTipAddresses }) => shredTipAddresses);
  return new Set([...all, ...tips.shredAddresses]);
}

/** Without it, accounts have no tiers and no destinations, and the sockets for these are not opened. */
export function sellsShreds(config: TipConfig): boolean {
  return shredTipAddressesOf(config).size > 0;
}
