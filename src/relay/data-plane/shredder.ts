// Shredder: makes authentic shreds from the bytes of entries, like a leader (native/shred/shredder.h).

import { guarded, type NativeShredder, native } from "./native.ts";

/** The slot and position of the next FEC set. */
export interface SlotPosition {
  readonly slot: bigint;
  /** slot - parent slot; 0 only in slot 0. */
  readonly parentOffset: number;
  readonly version: number;
  /** Root of the previous FEC set, 32 bytes. */
  readonly chainedRoot: Uint8Array;
  /** Multiple of 32. */
  readonly nextFecSetIndex: number;
}

export interface ShredOptions {
  readonly position: SlotPosition;
  /** 0 to 63. */
  readonly referenceTick: number;
  /**
   * Ends the slot: the last FEC set is resigned and its last data shred has the flag LAST_IN_SLOT.
   */
  readonly lastInSlot: boolean;
}

export class Shredder {
  readonly publicKey: Uint8Array;
  readonly #native: NativeShredder;

  /** `seed`: 32 bytes of an Ed25519 private key. Throws ShredwayError "shred_refused". */
  constructor(seed: Uint8Array) {
    this.#native = guarded("shred_refused", () => new (native().Shredder)(seed));
    this.publicKey = this.#native.publicKey();
  }

  /**
   * Packets of one batch of entries, per FEC set 32 data then 32 code shreds, and the next position.
   * Throws ShredwayError "shred_refused" if the slot is full or the position is invalid.
   */
  shred(
    entries: Uint8Array,
    { position, referenceTick, lastInSlot }: ShredOptions,
  ): { packets: Uint8Array[]; position: SlotPosition } {
    const shreds = guarded("shred_refused", () =>
      this.#native.shred(entries, position, referenceTick, lastInSlot),
    );
    const packets = Array.from(shreds.ends, (end, i) =>
      shreds.bytes.subarray(i === 0 ? 0 : (shreds.ends[i - 1] ?? 0), end),
    );
    const { chainedRoot, nextFecSetIndex } = shreds;
    return { packets, position: { ...position, chainedRoot, nextFecSetIndex } };
  }
}
