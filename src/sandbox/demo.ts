// The default start as one object: leaders, sources, relay and receivers on loopback.
//
// Built by main (which opens the parts); shown by cli/demo.ts. Receivers are relays without
// destinations, so what arrives is verified and duplicates are counted by the same code.

import type { Clock, Timer } from "../core/clock.ts";
import type { Relay } from "../data-plane/relay.ts";
import type { RelaySnapshot } from "../data-plane/snapshot.ts";
import type { DeliveryProfile } from "./delivery.ts";
import type { DemoFeed } from "./demo-feed.ts";
import type { ShredTraffic } from "./shred-traffic.ts";

/** About what mainnet-beta has: 31 sets of 64 shreds in 400 ms are 4,960 shreds a second. */
export const demoTraffic = {
  seed: 1,
  leaders: 4,
  firstSlot: 418_176_000n, // the first slot of an epoch
  shredVersion: 7531, // of no public cluster
  fecSetsPerSlot: 31,
  slotNs: 400_000_000,
} as const;

export const demoTiers = ["tier-1", "tier-2"] as const;

export interface DemoSourcePlan {
  readonly name: string;
  readonly address: string;
  readonly tier: (typeof demoTiers)[number];
  readonly profile: DeliveryProfile;
  /** What is special about it, for the screen. */
  readonly remark: string;
}

export const demoSources: readonly DemoSourcePlan[] = [
  {
    name: "fra-a",
    address: "127.0.0.2",
    tier: "tier-1",
    profile: { delayNs: 700_000, jitterNs: 300_000, loss: 0.005, forged: 0 },
    remark: "steady",
  },
  {
    name: "fra-b",
    address: "127.0.0.3",
    tier: "tier-1",
    profile: { delayNs: 900_000, jitterNs: 900_000, loss: 0.02, forged: 0.01 },
    remark: "jittery, 1 % forged copies",
  },
  {
    name: "nyc-a",
    address: "127.0.0.4",
    tier: "tier-2",
    profile: { delayNs: 300_000, jitterNs: 500_000, loss: 0.01, forged: 0 },
    remark: "quick, 1 % lost",
  },
];

export const demoReceivers = [
  { name: "alpha", tier: "tier-1" },
  { name: "bravo", tier: "tier-1" },
  { name: "carol", tier: "tier-2" },
  { name: "delta", tier: "tier-2" },
] as const;

export interface DemoReceiver {
  readonly name: string;
  readonly tier: string;
  readonly address: string;
  readonly relay: Relay;
}

export interface DemoSnapshot {
  readonly relay: RelaySnapshot;
  readonly receivers: readonly { readonly name: string; readonly seen: RelaySnapshot }[];
}

/** The schedule reaches so far ahead of the traffic, and is published anew in time. */
export const scheduleSlots = 8192;
const scheduleBehind = 1024n;
const tickMs = 5;

export class Demo {
  readonly relay: Relay;
  readonly receivers: readonly DemoReceiver[];
  /** Where a user's own `listen` gets the feed; absent when the relay's port was left to the kernel. */
  readonly openSeat: string | undefined;
  readonly #traffic: ShredTraffic;
  readonly #feed: DemoFeed;
  readonly #ticking: Timer;
  #scheduleEnd = 0n;

  constructor(parts: {
    relay: Relay;
    receivers: readonly DemoReceiver[];
    openSeat: string | undefined;
    traffic: ShredTraffic;
    feed: DemoFeed;
    clock: Clock;
  }) {
    this.relay = parts.relay;
    this.receivers = parts.receivers;
    this.openSeat = parts.openSeat;
    this.#traffic = parts.traffic;
    this.#feed = parts.feed;
    this.#publishSchedule();
    this.#ticking = parts.clock.every(tickMs, () => this.#tick());
  }

  snapshot(): DemoSnapshot {
    return {
      relay: this.relay.snapshot(),
      receivers: this.receivers.map(({ name, relay }) => ({ name, seen: relay.snapshot() })),
    };
  }

  /** Ends the traffic; the relay and its receivers still stand, so that the last shreds arrive. */
  stopTraffic(): void {
    this.#ticking.cancel();
    this.#feed.close();
  }

  close(): void {
    this.stopTraffic();
    this.relay.close();
    for (const { relay } of this.receivers) relay.close();
  }

  #tick(): void {
    this.#feed.tick();
    if (this.#feed.slot + BigInt(scheduleSlots / 4) > this.#scheduleEnd) this.#publishSchedule();
  }

  #publishSchedule(): void {
    const slot = this.#traffic.slot;
    const firstSlot = slot > scheduleBehind ? slot - scheduleBehind : 0n;
    const schedule = this.#traffic.schedule(firstSlot, scheduleSlots);
    this.#scheduleEnd = firstSlot + BigInt(scheduleSlots);
    this.relay.publishLeaders(schedule);
    for (const { relay } of this.receivers) relay.publishLeaders(schedule);
  }
}
