// Generated shreds of a whole slot, for relays that do not verify signatures.

import { Shredder } from "../../../src/relay/data-plane/shredder.ts";

/** `number`: unique for each slot. `bytes` of entries, all equal to `fill`. */
export function generateSlot(number: number, bytes = 20_000, fill = 0): Uint8Array[] {
  const shredder = new Shredder(new Uint8Array(32).fill(3));
  const position = {
    slot: BigInt(1000 + number),
    parentOffset: 1,
    version: 1,
    chainedRoot: new Uint8Array(32),
    nextFecSetIndex: 0,
  };
  const options = { position, referenceTick: 1, lastInSlot: true };
  return shredder.shred(Buffer.alloc(bytes, fill), options).packets;
}
