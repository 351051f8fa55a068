// Whether a service sells shreds: it has an address for the tips that buy tiers.
//
// Used by the rules of the configuration and by the gateway's settings. Pure.

import type { Config } from "./schema.ts";

/** Without it, accounts have no tiers and no destinations, and the sockets for these are not opened. */
export function sellsShreds({ tips, regions }: Pick<Config, "tips" | "regions">): boolean {
  return (
    tips.shredAddresses.length > 0 ||
    regions.some(({ shredTipAddresses }) => shredTipAddresses.length > 0)
  );
}
