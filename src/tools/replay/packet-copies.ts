// Copies of packets for replay: repeated, shuffled, dropped and corrupted.
//
// Called by replay.ts for one window at a time, so that a capture of any size fits into memory.
// Pure and deterministic: the same packets and seed give the same result.

import type { SeededRandom } from "../../core/seeded-random.ts";

export interface TimedPacket {
  readonly packet: Uint8Array;
  /** Due time in nanoseconds from the start of the replay. */
  readonly timeNs: number;
}

export interface CopyOptions {
  readonly copies: number;
  /** Gives every copy its own order. */
  readonly shuffle: boolean;
  /** Share of dropped copies. */
  readonly drop: number;
  /** Share of copies with one altered byte. */
  readonly corrupt: number;
}

interface CopyCounts {
  dropped: number;
  corrupted: number;
}

/**
 * Bytes that the Merkle root covers in every shred. Only these are altered: the relay restores an
 * altered signature if it knows the right one. In packets too short for a shred, any byte may change.
 */
const covered = { begin: 64, end: 1000 };

/**
 * Returns the packets of one window with ascending times. The n-th packet of each copy's order is
 * sent at the time of the window's n-th packet. Adds to `counts`.
 */
export function makeCopies(
  window: readonly TimedPacket[],
  options: CopyOptions,
  random: SeededRandom,
  counts: CopyCounts,
): TimedPacket[] {
  const orders = Array.from({ length: options.copies }, () =>
    options.shuffle ? random.permutation(window.length) : undefined,
  );
  const copies: TimedPacket[] = [];
  window.forEach(({ timeNs }, place) => {
    for (const order of orders) {
      const packet = window[order?.[place] ?? place]?.packet;
      if (!packet) continue;
      if (random.happens(options.drop)) {
        counts.dropped++;
      } else if (random.happens(options.corrupt)) {
        counts.corrupted++;
        copies.push({ packet: altered(packet, random), timeNs });
      } else {
        copies.push({ packet, timeNs });
      }
    }
  });
  return copies;
}

function altered(packet: Uint8Array, random: SeededRandom): Uint8Array {
  const copy = new Uint8Array(packet); // slice() of a Buffer shares its memory
  if (copy.length === 0) return copy;
  const begin = copy.length > covered.begin ? covered.begin : 0;
  const at = begin + random.below(Math.min(copy.length, covered.end) - begin);
  copy[at] = (copy[at] ?? 0) ^ (1 + random.below(255));
  return copy;
}
