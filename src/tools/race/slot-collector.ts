// Slot collector: collects arrivals of several feeds by slot until the slot is settled.
//
// `race` and `listen` add every arrival. A slot is settled when no new shred of it arrives during
// the settling time, so every feed had that time to deliver each shred. Later arrivals count as
// late. Slots and sets are bounded for any input.

import { type ShredArrival, SlotArrivals } from "./slot-arrivals.ts";

interface FeedCounts {
  /** Arrivals of shreds, including duplicates and late ones. */
  arrivals: number;
  /** Shreds that this feed had already delivered. */
  repeats: number;
  /** Shreds of settled slots. */
  late: number;
  /**
   * Shreds with another signature than the first of their set: an equivocating leader, or a
   * forgery.
   */
  conflicting: number;
  /** Shreds beyond the maximum number of slots and sets in progress. */
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
const settledSlotsMax = 4096;
/** A slot is settled after this time even if new shreds continue to arrive. */
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
      repeats: 0,
      late: 0,
      conflicting: 0,
      beyond: 0,
      firstNs: Number.POSITIVE_INFINITY,
      lastNs: Number.NEGATIVE_INFINITY,
    }));
  }

  /** Slots in progress, in order of their first arrivals. */
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
    if (slot.note(set, arrival) === "again") counts.repeats++;
  }

  /** Settles slots without new shreds since `nowNs` minus the settling time. */
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
    if (this.#settled.size > settledSlotsMax)
      for (const oldest of this.#settled) {
        this.#settled.delete(oldest);
        break;
      }
    this.#options.onSettled(slot);
  }
}
