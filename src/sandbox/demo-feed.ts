// Drives made-up traffic in real time: shreds are made a slot ahead and handed to one paced sender
// per source, slot by slot.
//
// Made by main for the default start. `tick` is called every few milliseconds; it never blocks for
// longer than one batch of shreds takes to make. Every list is timed against the clock anew, so the
// sources do not drift apart.

import type { Clock } from "../core/clock.ts";
import type { PacedSenderCounts } from "../data-plane/paced-sender.ts";
import { Delivery, type DeliveryProfile, type PacedList } from "./delivery.ts";
import type { ShredTraffic, SlotShreds } from "./shred-traffic.ts";

/** What plays packets: PacedSender, or a stand-in of tests. */
export interface Player {
  enqueue(packets: readonly Uint8Array[], timesNs: BigUint64Array): void;
  counts(): PacedSenderCounts;
  close(): void;
}

export interface DemoSource {
  readonly name: string;
  readonly profile: DeliveryProfile;
  readonly player: Player;
}

interface Lane {
  readonly delivery: Delivery;
  readonly player: Player;
  /** Next slot to hand over. */
  next: bigint;
}

// Handing over a whole slot takes milliseconds, in which its clock would not run yet; so a few
// packets go first, and the rest is timed from the last of them.
const firstPackets = 32;

function play(player: Player, list: PacedList, startNs: bigint, clock: Clock): void {
  const { packets, timesNs } = list;
  const head = timesNs.subarray(0, firstPackets);
  const lastOfHeadNs = head.at(-1) ?? 0n;
  const untilStartNs = startNs - clock.monotonicNs();
  player.enqueue(
    packets.slice(0, firstPackets),
    head.map((time) => (time + untilStartNs > 0n ? time + untilStartNs : 0n)),
  );
  player.enqueue(
    packets.slice(firstPackets),
    timesNs.subarray(firstPackets).map((time) => time - lastOfHeadNs),
  );
}

const handOverAheadNs = 20_000_000n; // before the slot starts, when the slot before has gone
const slotsAhead = 2;
const slotsBehindMax = 4n; // later than that: the machine stood still, go on from now

export class DemoFeed {
  readonly #traffic: ShredTraffic;
  readonly #lanes: readonly Lane[];
  readonly #clock: Clock;
  readonly #slotNs: bigint;
  readonly #ready = new Map<bigint, SlotShreds>();
  readonly #firstSlot: bigint;
  #startNs: bigint;

  constructor(options: {
    traffic: ShredTraffic;
    sources: readonly DemoSource[];
    clock: Clock;
    slotNs: number;
    seed: number;
  }) {
    this.#traffic = options.traffic;
    this.#clock = options.clock;
    this.#slotNs = BigInt(options.slotNs);
    this.#firstSlot = options.traffic.slot;
    this.#lanes = options.sources.map(({ profile, player }, i) => ({
      delivery: new Delivery(profile, options.seed + i + 1),
      player,
      next: this.#firstSlot,
    }));
    this.#prepare(this.#traffic.completeSlot());
    this.#startNs = this.#clock.monotonicNs() + handOverAheadNs;
  }

  /** The newest slot that is made or being made. */
  get slot(): bigint {
    return this.#traffic.slot;
  }

  tick(): void {
    if (this.#ready.size < slotsAhead) this.#prepare(this.#traffic.advance());
    const nowNs = this.#clock.monotonicNs();
    for (const lane of this.#lanes) this.#feed(lane, nowNs);
    const oldest = this.#lanes.reduce((low, { next }) => (next < low ? next : low), this.slot);
    for (const slot of this.#ready.keys()) if (slot < oldest) this.#ready.delete(slot);
  }

  close(): void {
    for (const { player } of this.#lanes) player.close();
  }

  #prepare(slot: SlotShreds | undefined): void {
    if (slot) this.#ready.set(slot.slot, slot);
  }

  #feed(lane: Lane, nowNs: bigint): void {
    const shreds = this.#ready.get(lane.next);
    let startNs = this.#startNs + (lane.next - this.#firstSlot) * this.#slotNs;
    if (!shreds || nowNs < startNs - handOverAheadNs || lane.player.counts().queued > 0n) return;
    if (nowNs > startNs + slotsBehindMax * this.#slotNs) {
      this.#startNs += nowNs - startNs;
      startNs = nowNs;
    }
    play(lane.player, lane.delivery.plan(shreds), startNs, this.#clock);
    lane.next++;
  }
}
