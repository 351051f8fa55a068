// Signed shreds like those of a cluster's leaders.
//
// For tests of the relay. A few leaders with seeded keys take turns of four slots; every slot is
// cut into entry batches of two FEC sets, chained across slots. Times are those at which a shred
// leaves its leader, in nanoseconds from the slot's start. No clock, no I/O.

import { createHash } from "node:crypto";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { Shredder, type SlotPosition } from "../../../src/relay/data-plane/shredder.ts";
import type { LeaderSchedule } from "../../../src/relay/leaders/schedule.ts";
import { makeEntryBatch } from "./generated-entries.ts";

/** Ledger bytes in 32 data shreds; the last set of a slot is resigned and carries less. */
export const fecSetBytes = 32 * 963;
const lastFecSetBytes = 32 * 899;
const slotsPerTurn = 4;
const ticksPerSlot = 64;

export interface TrafficOptions {
  readonly seed: number;
  readonly leaders: number;
  readonly firstSlot: bigint;
  readonly shredVersion: number;
  /** FEC sets per slot, of 64 shreds each. Mainnet has about 31. */
  readonly fecSetsPerSlot: number;
  readonly slotNs: number;
}

export interface TimedPacket {
  readonly packet: Uint8Array;
  /** Time from the start of the slot. */
  readonly timeNs: number;
}

export interface SlotShreds {
  readonly slot: bigint;
  /** Ascending by time. */
  readonly packets: readonly TimedPacket[];
}

const setsPerBatch = 2;
const shredGapNs = 60_000; // a set arrives on many paths of Turbine, over a few milliseconds
const quietEndShare = 0.08; // of the slot: the hand-over to the next leader

export class ShredTraffic {
  readonly #options: TrafficOptions;
  readonly #leaders: readonly Shredder[];
  readonly #random: SeededRandom;
  #position: SlotPosition;
  #packets: TimedPacket[] = [];

  constructor(options: TrafficOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
    this.#leaders = Array.from(
      { length: options.leaders },
      (_, i) => new Shredder(createHash("sha256").update(`shredway ${options.seed} ${i}`).digest()),
    );
    this.#position = {
      slot: options.firstSlot,
      parentOffset: 1,
      version: options.shredVersion,
      chainedRoot: new Uint8Array(32),
      nextFecSetIndex: 0,
    };
  }

  /** The slot in progress. */
  get slot(): bigint {
    return this.#position.slot;
  }

  get leaderKeys(): readonly Uint8Array[] {
    return this.#leaders.map(({ publicKey }) => publicKey);
  }

  /**
   * Leaders in [firstSlot, firstSlot + slots); firstSlot may be before the first generated slot.
   */
  schedule(firstSlot: bigint, slots: number): LeaderSchedule {
    return {
      firstSlot,
      leaderBySlot: Uint32Array.from({ length: slots }, (_, i) =>
        this.#leaderOf(firstSlot + BigInt(i)),
      ),
      keys: this.leaderKeys,
      epochFirstSlots: [firstSlot],
    };
  }

  /**
   * Generates one more batch. Returns the slot when it is complete. A batch takes about a
   * millisecond, so a caller can spread the work over the slot before.
   */
  advance(): SlotShreds | undefined {
    const { fecSetsPerSlot, slotNs } = this.#options;
    const first = this.#position.nextFecSetIndex / 32;
    const sets = Math.min(setsPerBatch, fecSetsPerSlot - first);
    const isLast = first + sets === fecSetsPerSlot;
    const done = (first + sets) / fecSetsPerSlot;
    const ticks = Math.max(1, Math.round((ticksPerSlot * sets) / fecSetsPerSlot));
    const bytesMax = isLast ? (sets - 1) * fecSetBytes + lastFecSetBytes : sets * fecSetBytes;
    // A batch that fills less than half of its last set would be cut into fewer sets than planned.
    const entries = makeEntryBatch(bytesMax - this.#random.below(2000), ticks, this.#random);
    const created = this.#leader().shred(entries, {
      position: this.#position,
      referenceTick: Math.min(63, Math.round(done * ticksPerSlot)),
      lastInSlot: isLast,
    });
    const batchAtNs = Math.round((first / fecSetsPerSlot) * slotNs * (1 - quietEndShare));
    created.packets.forEach((packet, i) => {
      this.#packets.push({ packet, timeNs: batchAtNs + i * shredGapNs });
    });
    this.#position = created.position;
    return isLast ? this.#endSlot() : undefined;
  }

  /** Generates the rest of the current slot. */
  completeSlot(): SlotShreds {
    for (;;) {
      const slot = this.advance();
      if (slot) return slot;
    }
  }

  #endSlot(): SlotShreds {
    const slot = { slot: this.#position.slot, packets: this.#packets };
    this.#packets = [];
    this.#position = { ...this.#position, slot: this.#position.slot + 1n, nextFecSetIndex: 0 };
    return slot;
  }

  #leaderOf(slot: bigint): number {
    return Number((slot / BigInt(slotsPerTurn)) % BigInt(this.#leaders.length));
  }

  #leader(): Shredder {
    const leader = this.#leaders[this.#leaderOf(this.#position.slot)];
    if (!leader) throw new RangeError("expected at least one leader, got none");
    return leader;
  }
}

/** One leader, and one FEC set in each slot from 50 on. */
export function oneLeaderTraffic(seed = 5): ShredTraffic {
  return new ShredTraffic({
    leaders: 1,
    firstSlot: 50n,
    fecSetsPerSlot: 1,
    slotNs: 100_000_000,
    seed,
    shredVersion: 99,
  });
}
