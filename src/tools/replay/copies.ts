// What replay makes of a stretch of a capture: copies, out of order, some lost, some altered.
//
// Called by cli/replay.ts, window by window, so that any capture fits into memory. Pure and
// repeatable: the same packets and the same seed give the same result.

import type { SeededRandom } from "../../core/seeded-random.ts";

export interface TimedPacket {
  readonly packet: Uint8Array;
  /** When it is due, nanoseconds from the start of the replay. */
  readonly timeNs: number;
}

export interface CopyOptions {
  readonly copies: number;
  /** Every copy in an order of its own. */
  readonly shuffle: boolean;
  /** Share of the copies that are left out. */
  readonly drop: number;
  /** Share of the copies with one byte altered. */
  readonly corrupt: number;
}

interface CopyCounts {
  dropped: number;
  corrupted: number;
}

/** Bytes that a leader's signature covers in every shred: only those are altered. */
const coveredBytes = 1000;

/**
 * The packets that are sent for one window, with ascending times: at the time of the window's n-th
 * packet goes the n-th of each copy's own order. Adds to `counts`.
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
  const made: TimedPacket[] = [];
  window.forEach(({ timeNs }, place) => {
    for (const order of orders) {
      const packet = window[order?.[place] ?? place]?.packet;
      if (!packet) continue;
      if (random.happens(options.drop)) {
        counts.dropped++;
      } else if (random.happens(options.corrupt)) {
        counts.corrupted++;
        made.push({ packet: altered(packet, random), timeNs });
      } else {
        made.push({ packet, timeNs });
      }
    }
  });
  return made;
}

function altered(packet: Uint8Array, random: SeededRandom): Uint8Array {
  const copy = new Uint8Array(packet); // slice() of a Buffer would share its memory
  if (copy.length === 0) return copy;
  const at = random.below(Math.min(copy.length, coveredBytes));
  copy[at] = (copy[at] ?? 0) ^ (1 + random.below(255));
  return copy;
}
