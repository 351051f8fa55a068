// Delivery: the shreds of a leader as a source delivers them: delayed, jittered, some lost, some
// forged.
//
// Called by source-feed.ts, one Delivery per source. Pure and repeatable for a seed: it maps the
// shreds of a batch to packets with times. A forged copy is sent just before the valid packet, so
// that a relay that accepted it would lose the valid one.

import { SeededRandom } from "../core/seeded-random.ts";

export interface DeliveryProfile {
  readonly delayNs: number;
  /** Mean of the additional delay per packet (exponential, at most eight times the mean). */
  readonly jitterNs: number;
  /** Share of lost packets. */
  readonly loss: number;
  /** Share of packets that a forged copy precedes. */
  readonly forged: number;
}

export interface TimedPacket {
  readonly packet: Uint8Array;
  /** Delay from the production of the batch. */
  readonly timeNs: number;
}

const slotOffset = 65;
const bodyOffset = 90;
const signatureBytes = 64;
const forgedLeadNs = 200_000;

export class Delivery {
  /** These values may change at any time, so that faults can be switched on and off. */
  profile: DeliveryProfile;
  readonly #random: SeededRandom;

  constructor(profile: DeliveryProfile, seed: number) {
    this.profile = profile;
    this.#random = new SeededRandom(seed);
  }

  /** The arriving packets, in order of time. */
  plan(packets: readonly TimedPacket[]): TimedPacket[] {
    const { delayNs, jitterNs, loss, forged } = this.profile;
    const random = this.#random;
    const planned: TimedPacket[] = [];
    for (const { packet, timeNs } of packets) {
      const due = timeNs + delayNs + random.exponential(jitterNs, 8 * jitterNs);
      if (random.happens(forged)) {
        planned.push({ packet: forge(packet, random), timeNs: Math.max(0, due - forgedLeadNs) });
      }
      if (!random.happens(loss)) planned.push({ packet, timeNs: due });
    }
    return planned.toSorted((a, b) => a.timeNs - b.timeNs);
  }
}

/**
 * A copy with an invalid signature: one byte of the body changed, another signature, or a distant
 * slot.
 */
export function forge(packet: Uint8Array, random: SeededRandom): Uint8Array {
  const copy = new Uint8Array(packet); // slice() of a Buffer would share its memory
  const kind = random.below(4);
  if (kind === 0) {
    random.fillBytes(copy.subarray(0, signatureBytes));
  } else if (kind === 1) {
    new DataView(copy.buffer, copy.byteOffset).setBigUint64(slotOffset, 1n << 40n, true);
  } else {
    const at = bodyOffset + random.below(512);
    copy[at] = (copy[at] ?? 0) ^ (1 + random.below(255));
  }
  return copy;
}
