// A simulated network: the true times of slots, and the arrivals at a relay.

import { SeededRandom } from "../../../src/core/seeded-random.ts";

export interface Network {
  readonly seed: number;
  readonly slots: number;
  /** Duration of the slots before and from `changeAt` (a count of slots). */
  readonly slotMs: number;
  readonly laterSlotMs?: number;
  readonly changeAt?: number;
  /** Share of skipped windows of four slots, because leaders fail for whole windows. */
  readonly skipShare: number;
  /** A first arrival is later than its slot by 30 ms and up to this. */
  readonly jitterMs: number;
  /** Slots from the first to before the second are not received. */
  readonly loss?: readonly [number, number];
  /** Windows of four slots that their leader sends early, by up to this number of slots. */
  readonly hostileShare?: number;
  readonly aheadSlots?: number;
}

export interface ObservedSlot {
  readonly slot: bigint;
  readonly timeNs: bigint;
}

export const firstSlot = 380_000_000n;
export const startNs = 1_790_000_000_000_000_000n;
const delayMs = 30;

export class SimulatedSlots {
  readonly network: Network;
  /** In time order. */
  readonly seen: readonly ObservedSlot[];
  readonly skipped: readonly bigint[];

  constructor(network: Network) {
    this.network = network;
    const random = new SeededRandom(network.seed);
    const seen: ObservedSlot[] = [];
    const skipped: bigint[] = [];
    const [lossBegin, lossEnd] = network.loss ?? [0, 0];
    for (let first = 0; first < network.slots; first += 4) {
      const isHostile = random.happens(network.hostileShare ?? 0);
      const isSkipped = random.happens(network.skipShare);
      for (let place = first; place < first + 4; place++) {
        const slot = firstSlot + BigInt(place);
        const lateMs = delayMs + random.share() * network.jitterMs;
        const isLost = place >= lossBegin && place < lossEnd;
        if (isHostile) {
          // Sent to the relay directly, so an outage of the feed does not stop it.
          const ahead = random.below((network.aheadSlots ?? 0) + 1);
          const sentMs = this.#arrivalMs(Math.max(0, first - ahead));
          seen.push({ slot, timeNs: startNs + ns(sentMs + delayMs) });
        } else if (isSkipped) {
          skipped.push(slot);
        } else if (!isLost) {
          seen.push({ slot, timeNs: startNs + ns(this.#arrivalMs(place) + lateMs) });
        }
      }
    }
    this.seen = seen.toSorted((a, b) => (a.timeNs < b.timeNs ? -1 : a.timeNs > b.timeNs ? 1 : 0));
    this.skipped = skipped;
  }

  /** Time of the slot's first shred in the middle of its jitter. */
  timeOf(place: number): bigint {
    return startNs + ns(this.#arrivalMs(place) + delayMs + this.network.jitterMs / 2);
  }

  /** Slots since `firstSlot`, with a fraction, up to `timeNs`. */
  positionAt(timeNs: bigint): number {
    const { slotMs, laterSlotMs = slotMs, changeAt = 0 } = this.network;
    const ms = Number(timeNs - startNs) / 1e6 - delayMs - this.network.jitterMs / 2;
    const changeMs = changeAt * slotMs;
    return ms <= changeMs || laterSlotMs === slotMs
      ? ms / slotMs
      : changeAt + (ms - changeMs) / laterSlotMs;
  }

  #arrivalMs(place: number): number {
    const { slotMs, laterSlotMs = slotMs, changeAt = 0 } = this.network;
    if (laterSlotMs === slotMs || place <= changeAt) return place * slotMs;
    return changeAt * slotMs + (place - changeAt) * laterSlotMs;
  }
}

function ns(ms: number): bigint {
  return BigInt(Math.round(ms * 1e6));
}
