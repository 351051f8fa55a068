// Slot collector: arrivals of several feeds, put together by slot until nobody can bring anything new.
//
// Called by race and listen with every arrival. A slot is settled when nothing new came for it during the
// settling time: then each feed had that long to bring every shred of it, and what comes later is
// counted as late. Bounded in slots and sets, whatever is sent.

import { type ShredArrival, SlotArrivals } from "./slot-arrivals.ts";

interface FeedCounts {
  /** Arrivals of shreds, duplicates and late ones included. */
  arrivals: number;
  /** Shreds that this feed had brought before. */
  again: number;
  /** Of slots that were settled already. */
  late: number;
  /** With another signature than the first of their set: another leader's word, or a forgery. */
  conflicting: number;
  /** Beyond the slots and sets that are followed at a time. */
  beyond: number;
  firstNs: number;
  lastNs: number;
}

interface SlotCollectorOptions {
  readonly feeds: number;
  readonly settleNs: number;
  readonly onSettled: (slot: SlotArrivals) => void;
}

const openSlotsMax = 1024;
const openSetsMax = 16_384;
const settledKept = 4096;
/** A slot that something new keeps coming for is settled after so long all the same. */
const openNsMax = 30e9;

export class SlotCollector {
  readonly counts: readonly FeedCounts[];
  readonly #options: SlotCollectorOptions;
  readonly #open = new Map<number, SlotArrivals>();
  readonly #settled = new Set<number>();
  #sets = 0;

  constructor(options: SlotCollectorOptions) {
    this.#options = options;
    this.counts = Array.from({ length: options.feeds }, () => ({
      arrivals: 0,
      again: 0,
      late: 0,
      conflicting: 0,
      beyond: 0,
      firstNs: Number.POSITIVE_INFINITY,
      lastNs: Number.NEGATIVE_INFINITY,
    }));
  }

  /** Slots under way, in the order of their first arrivals. */
  get open(): readonly SlotArrivals[] {
    return [...this.#open.values()];
  }

  note(arrival: ShredArrival): void {
    const counts = this.counts[arrival.feed];
    if (!counts) return;
    counts.arrivals++;
    counts.firstNs = Math.min(counts.firstNs, arrival.timeNs);
    counts.lastNs = Math.max(counts.lastNs, arrival.timeNs);
    const slot = this.#slotOf(arrival, counts);
    if (!slot) return;
    let set = slot.setOf(arrival);
    if (!set) {
      if (this.#sets === openSetsMax) {
        counts.beyond++;
        return;
      }
      this.#sets++;
      set = slot.addSet(arrival);
    }
    if (set.signature !== arrival.signature) counts.conflicting++;
    if (slot.note(set, arrival) === "again") counts.again++;
  }

  /** Settles what nothing new came for since `nowNs` minus the settling time. */
  settle(nowNs: number): void {
    for (const slot of this.#open.values()) {
      const isQuiet = slot.lastNewNs + this.#options.settleNs <= nowNs;
      if (isQuiet || slot.firstNs + openNsMax <= nowNs) this.#close(slot);
    }
  }

  #slotOf(arrival: ShredArrival, counts: FeedCounts): SlotArrivals | undefined {
    const known = this.#open.get(arrival.slot);
    if (known) return known;
    if (this.#settled.has(arrival.slot)) {
      counts.late++;
      return undefined;
    }
    if (this.#open.size === openSlotsMax) {
      counts.beyond++;
      return undefined;
    }
    const slot = new SlotArrivals(arrival.slot, this.#options.feeds);
    this.#open.set(arrival.slot, slot);
    return slot;
  }

  #close(slot: SlotArrivals): void {
    this.#open.delete(slot.slot);
    this.#sets -= slot.sets.size;
    this.#settled.add(slot.slot);
    if (this.#settled.size > settledKept)
      for (const oldest of this.#settled) {
        this.#settled.delete(oldest);
        break;
      }
    this.#options.onSettled(slot);
  }
}
