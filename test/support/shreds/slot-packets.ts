// Packets of a whole slot, made by the product's shredder from batches of entries.

import type { Shredder, SlotPosition } from "../../../src/relay/data-plane/shredder.ts";

/** The shred version is 1. */
export function slotPackets(
  shredder: Shredder,
  slot: bigint,
  batches: readonly Uint8Array[],
): Uint8Array[] {
  let position: SlotPosition = {
    slot,
    parentOffset: 1,
    version: 1,
    chainedRoot: new Uint8Array(32),
    nextFecSetIndex: 0,
  };
  return batches.flatMap((batch, i) => {
    const lastInSlot = i + 1 === batches.length;
    const shreds = shredder.shred(batch, { position, referenceTick: 1, lastInSlot });
    position = shreds.position;
    return shreds.packets;
  });
}
