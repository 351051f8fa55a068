// Slot book: sights of several feeds, put together by slot until nobody can bring anything new.
//
// Called by race and listen with every sight. A slot is settled when nothing new came for it during the
// settling time: then each feed had that long to bring every shred of it, and what comes later is
// counted as late. Bounded in slots and sets, whatever is sent.

import { type ShredArrival, SlotArrivals } from "./slot-arrivals.ts";

interface FeedCounts {
  /** Sights of shreds, duplicates and late ones included. */
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

interface SlotBookOptions {
  readonly feeds: number;
  readonly settleNs: number;
  readonly onSettled: (slot: SlotArrivals) => void;
}

const openSlotsMax = 1024;
const openSetsMax = 16_384;
const settledKept = 4096;
/** A slot that something new keeps coming for is settled after so long all the same. */
const openNsMax = 30e9;

export class SlotBook {
  readonly counts: readonly FeedCounts[];
  readonly #options: SlotBookOptions;
  readonly #open = new Map<number, SlotArrivals>();
  readonly #settled = new Set<number>();
  #sets = 0;

  constructor(options: SlotBookOptions) {
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

  /** Slots under way, in the order of their first sights. */
  get open(): readonly SlotArrivals[] {
    return [...this.#open.values()];
  }

  note(sight: ShredArrival): void {
    const counts = this.counts[sight.feed];
    if (!counts) return;
    counts.arrivals++;
    counts.firstNs = Math.min(counts.firstNs, sight.timeNs);
    counts.lastNs = Math.max(counts.lastNs, sight.timeNs);
    const slot = this.#slotOf(sight, counts);
    if (!slot) return;
    let set = slot.setOf(sight);
    if (!set) {
      if (this.#sets === openSetsMax) {
        counts.beyond++;
        return;
      }
      this.#sets++;
      set = slot.addSet(sight);
    }
    if (set.signature !== sight.signature) counts.conflicting++;
    if (slot.note(set, sight) === "again") counts.again++;
  }

  /** Settles what nothing new came for since `nowNs` minus the settling time. */
  settle(nowNs: number): void {
    for (const slot of this.#open.values()) {
      const isQuiet = slot.lastNewNs + this.#options.settleNs <= nowNs;
      if (isQuiet || slot.firstNs + openNsMax <= nowNs) this.#close(slot);
    }
  }

  #slotOf(sight: ShredArrival, counts: FeedCounts): SlotArrivals | undefined {
    const known = this.#open.get(sight.slot);
    if (known) return known;
    if (this.#settled.has(sight.slot)) {
      counts.late++;
      return undefined;
    }
    if (this.#open.size === openSlotsMax) {
      counts.beyond++;
      return undefined;
    }
    const slot = new SlotArrivals(sight.slot, this.#options.feeds);
    this.#open.set(sight.slot, slot);
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
