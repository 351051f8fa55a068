// Slot collector: collects arrivals of several feeds by slot until the slot is settled (open-slots.ts).
//
// `race` and `listen` add every arrival. FEC sets are bounded for any input.

import { type FeedCounts, OpenSlots } from "./open-slots.ts";
import { type ShredArrival, SlotArrivals } from "./slot-arrivals.ts";

interface SlotCollectorOptions {
  readonly feeds: number;
  readonly settleNs: number;
  readonly onSettled: (slot: SlotArrivals) => void;
}

const openSetsMax = 16_384;

export class SlotCollector {
  readonly #slots: OpenSlots<SlotArrivals>;
  #sets = 0;

  constructor({ feeds, settleNs, onSettled }: SlotCollectorOptions) {
    this.#slots = new OpenSlots({
      feeds,
      settleNs,
      create: (slot) => new SlotArrivals(slot, feeds),
      onSettled: (slot) => {
        this.#sets -= slot.sets.size;
        onSettled(slot);
      },
    });
  }

  get counts(): readonly FeedCounts[] {
    return this.#slots.counts;
  }

  /** Slots in progress, in order of their first arrivals. */
  get open(): readonly SlotArrivals[] {
    return this.#slots.all;
  }

  note(arrival: ShredArrival): void {
    const slot = this.#slots.slotOf(arrival);
    const counts = this.counts[arrival.feed];
    if (!slot || !counts) return;
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

  settle(nowNs: number): void {
    this.#slots.settle(nowNs);
  }
}
