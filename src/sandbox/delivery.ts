// What a source makes of a leader's shreds: later, jittered, some lost, some forged.
//
// Called by source-feed.ts, one Delivery per source. Pure and repeatable for a seed: takes the shreds
// of a batch, gives packets with times. Forged copies leave just before the true ones, so that a
// relay which believed them would lose the true ones.

import { SeededRandom } from "../core/seeded-random.ts";

export interface DeliveryProfile {
  readonly delayNs: number;
  /** Mean of what comes on top, packet by packet (memoryless, at most eight times the mean). */
  readonly jitterNs: number;
  /** Share of the packets that never come. */
  readonly loss: number;
  /** Share of the packets that a forged copy precedes. */
  readonly forged: number;
}

export interface TimedPacket {
  readonly packet: Uint8Array;
  /** From the moment that its batch was made. */
  readonly timeNs: number;
}

const slotOffset = 65;
const bodyOffset = 90;
const signatureBytes = 64;
const forgedLeadNs = 200_000;

export class Delivery {
  /** May be changed at any time, so that faults can be switched on and off. */
  profile: DeliveryProfile;
  readonly #random: SeededRandom;

  constructor(profile: DeliveryProfile, seed: number) {
    this.profile = profile;
    this.#random = new SeededRandom(seed);
  }

  /** What arrives of these packets, ascending in time. */
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

/** A copy that no leader signed: one byte of the body changed, another signature, or a far slot. */
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
