// Configuration of tiers and of the accounts' destinations: keys, ranges, units, defaults, meanings.
//
// A part of schema.ts.

import { z } from "zod";
import { parseAddressRange } from "../addresses/addresses.ts";
import { integer, key, lamports, name, parsed, parseEndpointOrPortZero } from "./schema-keys.ts";

const defaultThresholds: Readonly<Record<string, number>> = {
  "tier-1": 200_000_000,
  "tier-2": 500_000_000,
};

/** Tiers that can be bought, narrowest first, with their thresholds in lamports. */
export function thresholdsOf(
  names: readonly string[],
  given: Readonly<Record<string, number>> = defaultThresholds,
): (readonly [tier: string, lamports: number])[] {
  return names.flatMap((tier) => {
    const threshold = Object.hasOwn(given, tier) ? given[tier] : undefined;
    return threshold === undefined ? [] : [[tier, threshold] as const];
  });
}

export const tiers = z.strictObject({
  thresholdLamports: key(z.record(name(), lamports()).exactOptional(), {
    expects:
      "a mapping from tiers of relay.tiers to integers 1 to 2^53 - 1, larger for wider tiers",
    entryExpects: "an integer 1 to 2^53 - 1, in lamports",
    unit: "lamports",
    meaning:
      "Sum of registered tips of the last 24 hours that gives an account the tier; an " +
      "equal sum is enough. A tier without a threshold cannot be bought.",
    absent: "0.2 SOL for `tier-1` and 0.5 SOL for `tier-2`, if relay.tiers contains them",
  }),
});

const proof = z.strictObject({
  listen: key(parsed(parseEndpointOrPortZero).default("0.0.0.0:0"), {
    expects: "an address and port such as 192.0.2.1:20001; with port 0 the kernel chooses a port",
    meaning:
      "Local address that sends ownership challenges to IPv4 destinations and receives " +
      "their responses.",
  }),
  listenIpv6: key(parsed(parseEndpointOrPortZero).default("[::]:0"), {
    expects:
      "an address and port such as [2001:db8::1]:20001; with port 0 the kernel chooses a port",
    meaning: "The same for IPv6 destinations.",
  }),
  hours: key(integer(1, 8760).default(24), {
    expects: "an integer 1 to 8760",
    unit: "hours",
    meaning:
      "Validity of an ownership proof. Renewal challenges are sent after a half, three " +
      "quarters and nine tenths of this time.",
  }),
});

export const delivery = z.strictObject({
  regions: key(z.array(name()).min(1).max(64).default(["frankfurt", "new-york"]), {
    expects: "a list of 1 to 64 region names",
    meaning:
      "Regions from which accounts may receive shreds. Each name must be unique. Without " +
      "`data.postgres`, no other node exists, so only `delivery.region` is offered. With " +
      "`regions`, their names are the default.",
  }),
  region: key(name().exactOptional(), {
    expects: "a name of delivery.regions",
    meaning: "Region of this relay. It sends only to the accounts' destinations in this region.",
    absent:
      "`region`, if it is one of `delivery.regions`; otherwise their first, with a warning at startup",
  }),
  destinationsPerAccount: key(integer(1, 64).default(2), {
    expects: "an integer 1 to 64",
    unit: "destinations",
    meaning:
      "Maximum number of addresses per account: its destinations in all regions, and the " +
      "addresses of its ShredStream proxies at this node.",
  }),
  denied: key(z.array(parsed(parseAddressRange)).max(1024).default([]), {
    expects: "a list of at most 1024 addresses and CIDR ranges",
    meaning:
      "Addresses that accounts may not use as destinations, in addition to those that " +
      "`relay.allowPrivateDestinations` refuses. Existing destinations at these addresses " +
      "receive nothing.",
  }),
  proof: key(proof.prefault({}), {
    expects: "a mapping",
    meaning: "Proof that an account owns a destination's address.",
  }),
});
