// Coverage of every slot of a session, in bounded memory. Pure.
//
// Called by listen.ts once a second with the slots that the data plane still remembers; what has
// left that window is added to the totals.

import { coverageOf } from "../../relay/data-plane/report.ts";
import type { SlotSnapshot } from "../../relay/data-plane/snapshot.ts";

export interface SlotTotals {
  /** Slots of which at least one shred came. */
  readonly slots: number;
  /** Slots whose every data shred came. */
  readonly dataComplete: number;
  /** Slots whose every data and code shred came. */
  readonly complete: number;
  /** Slots whose last data shred never came, so nobody knows how much is missing. */
  readonly endUnknown: number;
}

const keptSlots = 64n;

export class SlotLedger {
  readonly #recent = new Map<bigint, SlotSnapshot>();
  #left: SlotTotals = { slots: 0, dataComplete: 0, complete: 0, endUnknown: 0 };

  note(slots: readonly SlotSnapshot[]): void {
    for (const slot of slots) this.#recent.set(slot.slot, slot);
    const newest = slots.at(-1)?.slot ?? 0n;
    for (const [number, slot] of this.#recent) {
      if (number + keptSlots > newest) continue;
      this.#left = add(this.#left, slot);
      this.#recent.delete(number);
    }
  }

  totals(): SlotTotals {
    return [...this.#recent.values()].reduce(add, this.#left);
  }
}

function add(totals: SlotTotals, slot: SlotSnapshot): SlotTotals {
  const { dataShare, share } = coverageOf(slot);
  return {
    slots: totals.slots + 1,
    dataComplete: totals.dataComplete + (dataShare !== null && dataShare >= 1 ? 1 : 0),
    complete: totals.complete + (share !== null && share >= 1 ? 1 : 0),
    endUnknown: totals.endUnknown + (dataShare === null ? 1 : 0),
  };
}
