// Block shreds: the entries of a block as signed shreds, batch by batch.
//
// Called by the producer, one object per block. Every batch passes the native shredder with the
// leader's key. FEC sets are chained inside the block and to the last set of the actual parent,
// even across skipped slots. The last batch ends the slot.

import type { Shredder, SlotPosition } from "../../relay/data-plane/shredder.ts";
import { HashChain } from "./poh.ts";
import type { WireTransaction } from "./wire.ts";

export const ticksPerSlot = 64;
const referenceTickMax = 63;

/** The part of a block that its child needs. */
export interface ParentEnd {
  readonly slot: bigint;
  readonly blockhash: Uint8Array;
  /** Merkle root of its last FEC set, 32 bytes. */
  readonly lastRoot: Uint8Array;
}

interface BlockOptions {
  readonly slot: bigint;
  readonly parent: ParentEnd;
  readonly shredder: Shredder;
  readonly shredVersion: number;
  readonly hashesPerTick: number;
}

/** A marker that begins the block again on this parent (SIMD-0307, SIMD-0337), in place of a batch. */
function updateParentMarker({ slot, lastRoot }: ParentEnd): Uint8Array {
  const bytes = new Uint8Array(54);
  const view = new DataView(bytes.buffer);
  view.setUint16(8, 1, true); // version of markers, after the entry count 0
  view.setUint8(10, 2); // kind: update parent
  view.setUint16(11, 41, true);
  view.setUint8(13, 1); // version of the payload
  view.setBigUint64(14, slot, true);
  bytes.set(lastRoot, 22);
  return bytes;
}

export class BlockShreds {
  readonly #shredder: Shredder;
  readonly #options: Pick<BlockOptions, "parent" | "hashesPerTick">;
  #hashes: HashChain;
  #position: SlotPosition;
  #ticks = 0;

  constructor(options: BlockOptions) {
    this.#options = options;
    this.#shredder = options.shredder;
    this.#hashes = new HashChain(options.parent.blockhash, options.hashesPerTick);
    this.#position = {
      slot: options.slot,
      parentOffset: Number(options.slot - options.parent.slot),
      version: options.shredVersion,
      chainedRoot: options.parent.lastRoot,
      nextFecSetIndex: 0,
    };
  }

  /** The blockhash, after the last batch is complete. */
  get hash(): Uint8Array {
    return this.#hashes.hash;
  }

  get lastRoot(): Uint8Array {
    return this.#position.chainedRoot;
  }

  /** Packets of one more batch: `transactions`, then `ticks` ticks. */
  add(transactions: readonly WireTransaction[], ticks: number): readonly Uint8Array[] {
    this.#ticks += ticks;
    return this.#shred(this.#hashes.batch(transactions, ticks));
  }

  /** Packets of an update-parent marker: the contents so far are not part of the block. */
  restart(): readonly Uint8Array[] {
    const { parent, hashesPerTick } = this.#options;
    this.#hashes = new HashChain(parent.blockhash, hashesPerTick);
    return this.#shred(updateParentMarker(parent));
  }

  #shred(batch: Uint8Array): readonly Uint8Array[] {
    const { packets, position } = this.#shredder.shred(batch, {
      position: this.#position,
      referenceTick: Math.min(referenceTickMax, this.#ticks),
      lastInSlot: this.#ticks >= ticksPerSlot,
    });
    this.#position = position;
    return packets;
  }
}
