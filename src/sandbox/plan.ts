// What the sandbox consists of: tiers, sources with their habits, receivers, the chain's pace.
//
// Read by main, which builds it, and by the screen. Addresses are loopback's; nothing leaves the
// machine.

import type { DeliveryProfile } from "./delivery.ts";

export const sandboxTiers = ["tier-1", "tier-2"] as const;

interface SandboxSource {
  readonly name: string;
  readonly address: string;
  readonly tier: (typeof sandboxTiers)[number];
  readonly profile: DeliveryProfile;
}

export const sandboxSources: readonly SandboxSource[] = [
  {
    name: "fra-a",
    address: "127.0.0.2",
    tier: "tier-1",
    profile: { delayNs: 700_000, jitterNs: 300_000, loss: 0.005, forged: 0 },
  },
  {
    name: "fra-b",
    address: "127.0.0.3",
    tier: "tier-1",
    profile: { delayNs: 900_000, jitterNs: 900_000, loss: 0.02, forged: 0.01 },
  },
  {
    name: "nyc-a",
    address: "127.0.0.4",
    tier: "tier-2",
    profile: { delayNs: 300_000, jitterNs: 500_000, loss: 0.01, forged: 0 },
  },
];

export const sandboxReceivers = [
  { name: "alpha", tier: "tier-1" },
  { name: "bravo", tier: "tier-1" },
  { name: "carol", tier: "tier-2" },
  { name: "delta", tier: "tier-2" },
] as const;

export const sandboxPace = {
  seed: 1,
  slotsPerEpoch: 8192,
  firstSlot: 51_048n * 8192n, // the first slot of an epoch, about where mainnet-beta is
  shredVersion: 7531, // of no public cluster
  tipAddresses: 4,
  shredTipAddresses: 2,
  resendMs: 1000,
  noncePollMs: 200,
  // A machine that is too slow for a while gets slower slots. Making up for all of them at once would
  // take longer than they did, then longer still, and meanwhile nobody would be answered.
  catchUpSlotsMax: 2,
} as const;

/** Shreds of a batch leave their leader so far apart. */
export const shredGapNs = 60_000;
/** The chain and its sources are looked after so often. */
export const tickMs = 5;
