// Slot ledger: coverage of every slot of a session, in bounded memory. Pure.
//
// Called by listen.ts once a second with the data plane's window of slots. Slots that have left
// the window are added to the totals.

import { coverageOf } from "../../relay/data-plane/report.ts";
import type { SlotSnapshot } from "../../relay/data-plane/snapshot.ts";

export interface SlotTotals {
  /** Slots with at least one received shred. */
  readonly slots: number;
  /** Slots with all data shreds. */
  readonly dataComplete: number;
  /** Slots with all data and code shreds. */
  readonly complete: number;
  /** Slots without their last data shred; their number of missing shreds is unknown. */
  readonly endUnknown: number;
}

export class SlotLedger {
  /** The slots of the window, which may be far apart: a row stays until a newer slot needs it. */
  #recent: ReadonlyMap<bigint, SlotSnapshot> = new Map();
  #left: SlotTotals = { slots: 0, dataComplete: 0, complete: 0, endUnknown: 0 };

  note(slots: readonly SlotSnapshot[]): void {
    const present = new Map(slots.map((slot) => [slot.slot, slot]));
    for (const [number, slot] of this.#recent)
      if (!present.has(number)) this.#left = add(this.#left, slot);
    this.#recent = present;
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
