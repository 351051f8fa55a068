// Leader schedule of the sandbox: the leader of each slot, drawn by stake for each epoch.
//
// Called by the producer, the RPC methods and the relay's tables. Each draw assigns four
// consecutive slots. The draws of an epoch depend only on the seed, the epoch and the stakes. As in
// a cluster, the current epoch and the next one are known.

import { SeededRandom } from "../../core/seeded-random.ts";
import { buildSchedule, type LeaderSchedule } from "../../relay/leaders/schedule.ts";

export const slotsPerTurn = 4;

interface StakedLeader {
  readonly identity: string;
  readonly publicKey: Uint8Array;
  readonly stakeLamports: bigint;
}

/** Number of epochs in the cache. */
const rememberedEpochs = 4;

export class SandboxLeaders {
  readonly slotsPerEpoch: bigint;
  readonly #seed: number;
  readonly #leaders: readonly StakedLeader[];
  readonly #epochs = new Map<bigint, Uint8Array>();

  constructor(seed: number, leaders: readonly StakedLeader[], slotsPerEpoch: bigint) {
    this.#seed = seed;
    this.#leaders = leaders;
    this.slotsPerEpoch = slotsPerEpoch;
  }

  epochOf(slot: bigint): bigint {
    return slot / this.slotsPerEpoch;
  }

  /** Index of the leader of `slot` in the constructor's list. */
  numberOf(slot: bigint): number {
    const turns = this.#turnsOf(this.epochOf(slot));
    return turns[Math.floor(Number(slot % this.slotsPerEpoch) / slotsPerTurn)] ?? 0;
  }

  /** Maps each identity to its slots, relative to the first slot of the epoch. */
  slotsByIdentity(epoch: bigint): ReadonlyMap<string, readonly number[]> {
    const slots = new Map<string, number[]>();
    const turns = this.#turnsOf(epoch);
    for (let slot = 0; slot < Number(this.slotsPerEpoch); slot++) {
      const identity = this.#leaders[turns[Math.floor(slot / slotsPerTurn)] ?? 0]?.identity;
      if (identity === undefined) continue;
      const own = slots.get(identity);
      if (own) own.push(slot);
      else slots.set(identity, [slot]);
    }
    return slots;
  }

  /** The schedule of the epoch of `slot` and the next one, in the format of the relay. */
  forRelay(slot: bigint): LeaderSchedule {
    const epoch = this.epochOf(slot);
    const length = Number(this.slotsPerEpoch);
    const firstSlot = epoch * this.slotsPerEpoch;
    const present = this.slotsByIdentity(epoch);
    const next = this.slotsByIdentity(epoch + 1n);
    const leaders = this.#leaders.map(({ identity, publicKey }) => ({
      key: publicKey,
      slots: [
        ...(present.get(identity) ?? []),
        ...(next.get(identity) ?? []).map((place) => place + length),
      ],
    }));
    return buildSchedule(firstSlot, leaders, [firstSlot, firstSlot + this.slotsPerEpoch]);
  }

  #turnsOf(epoch: bigint): Uint8Array {
    const known = this.#epochs.get(epoch);
    if (known) return known;
    const random = new SeededRandom(BigInt(this.#seed) ^ (epoch << 32n));
    const total = this.#leaders.reduce((sum, { stakeLamports }) => sum + Number(stakeLamports), 0);
    const turns = Uint8Array.from(
      { length: Math.ceil(Number(this.slotsPerEpoch) / slotsPerTurn) },
      () => this.#draw(random.share() * total),
    );
    if (this.#epochs.size >= rememberedEpochs) {
      const [oldest] = this.#epochs.keys();
      if (oldest !== undefined) this.#epochs.delete(oldest);
    }
    this.#epochs.set(epoch, turns);
    return turns;
  }

  #draw(point: number): number {
    let left = point;
    for (const [number, { stakeLamports }] of this.#leaders.entries()) {
      left -= Number(stakeLamports);
      if (left < 0) return number;
    }
    return this.#leaders.length - 1;
  }
}
