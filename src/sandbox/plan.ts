// Plan of the sandbox: tiers, sources with their delays and losses, receivers, the chain's pace.
//
// Read by open-sandbox.ts, which builds it, and by the screen. All addresses are on loopback; no
// packet leaves the machine.

import type { DeliveryProfile } from "./delivery.ts";

export const sandboxTiers = ["tier-1", "tier-2"] as const;

/** One name for the gateway's region and for that of destinations: the default of `delivery.regions`. */
export const sandboxRegion = "frankfurt";

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

/** The source of kind "shredstream"; its block engine sends from the address. */
export const sandboxShredstream: SandboxSource = {
  name: "jito",
  address: "127.0.0.5",
  tier: "tier-1",
  profile: { delayNs: 500_000, jitterNs: 400_000, loss: 0.01, forged: 0 },
};

/** Subscriber of the relay's block engine. */
export const sandboxSubscriber = { name: "proxy", tier: "tier-1" } as const;

export const sandboxReceivers = [
  { name: "alpha", tier: "tier-1" },
  { name: "bravo", tier: "tier-1" },
  { name: "carol", tier: "tier-2" },
  { name: "delta", tier: "tier-2" },
] as const;

export const sandboxPace = {
  seed: 1,
  slotsPerEpoch: 8192,
  firstSlot: 51_048n * 8192n, // the first slot of an epoch, near the current slots of mainnet-beta
  shredVersion: 7531, // not the version of any public cluster
  tipAddresses: 4,
  shredTipAddresses: 2,
  resendMs: 1000,
  noncePollMs: 200,
  // On a machine that is too slow for a while, slots are late. To make up for all of them at once
  // would take longer and longer, without any response meanwhile.
  catchUpSlotsMax: 2,
} as const;

/** Interval between the shreds of a batch at their leader. */
export const shredGapNs = 60_000;
/** Interval of the timer for the chain and its sources. */
export const tickMs = 5;
/** Half a second of traffic; more would require privileges. */
export const sandboxBufferBytes = 4 << 20;
