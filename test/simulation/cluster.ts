// The simulated network: leaders with keys, their schedule, and the shreds that they sign.
//
// It also is the register of everything authentic, by which the checks recognise a forgery. The register
// reads shreds by offsets of its own, without the product's parser. Offsets: SIMD-0504 and
// native/shred/wire.h.

import { createHash } from "node:crypto";
import { base58 } from "@scure/base";
import { Shredder } from "../../src/relay/data-plane/shredder.ts";
import { buildSchedule, type LeaderSchedule } from "../../src/relay/leaders/schedule.ts";
import { BlockShreds, type ParentEnd, ticksPerSlot } from "../../src/sandbox/chain/block-shreds.ts";
import type { WireTransaction } from "../../src/sandbox/chain/wire.ts";

export const shredVersion = 77;
/** First slot of the schedule. */
const scheduleBegin = 1_000n;
/** Slots before this one are the past: leaders have signed them, and no run delivers them in time. */
export const firstSlot = 2_500n;
const leaderCount = 5;
const slotsPerTurn = 4;
/** The leader that is an alternative partner. */
const partnerTurn = 1;
/** Slots of the schedule: more than an hour. */
const scheduledSlots = 40_000;
const rememberedSlots = 600;

export const signatureBytes = 64;
const variantAt = 64;
const slotAt = 65;
const indexAt = 73;
const fecSetAt = 79;

export interface ShredPlace {
  readonly slot: bigint;
  readonly isCode: boolean;
  readonly index: number;
  readonly fecSet: number;
}

/** Reads the place of a packet with at least 83 bytes. */
export function placeOf(packet: Uint8Array): ShredPlace {
  const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
  return {
    slot: view.getBigUint64(slotAt, true),
    isCode: ((packet[variantAt] ?? 0) & 0x80) === 0,
    index: view.getUint32(indexAt, true),
    fecSet: view.getUint32(fecSetAt, true),
  };
}

/** An authentic shred. */
export interface AuthenticShred {
  /** Unique, also among the versions of an equivocating leader. */
  readonly name: string;
  readonly place: ShredPlace;
  readonly packet: Uint8Array;
}

export interface SlotPlan {
  readonly slot: bigint;
  readonly parent: bigint;
  /** FEC sets, at least 1. */
  readonly sets: number;
  /** The leader begins the block again, with a marker, after this many sets; null: it does not. */
  readonly restartAfter: number | null;
  /** Versions that the leader signs: 2 and more are an equivocation. */
  readonly versions: number;
}

/** Transactions of one version of a block, by FEC set. */
export type VersionContents = readonly (readonly WireTransaction[])[];

function placeName({ slot, isCode, index }: ShredPlace): string {
  return `${slot} ${isCode ? "code" : "data"} ${index}`;
}

function turnOf(slot: bigint): number {
  return Math.floor(Number(slot - scheduleBegin) / slotsPerTurn) % leaderCount;
}

export class Cluster {
  readonly schedule: LeaderSchedule;
  /** Identities of the alternative partners in base58. */
  readonly partners: ReadonlySet<string>;
  readonly #leaders: readonly Shredder[];
  readonly #ends = new Map<bigint, ParentEnd>();
  /** FEC sets of update-parent markers, by slot. */
  readonly #markers = new Map<bigint, number>();
  /** Authentic shreds by place; several: an equivocation. */
  readonly #byPlace = new Map<string, AuthenticShred[]>();
  readonly #slots: bigint[] = [];
  /** A key that leads no slot. */
  readonly #stranger: Shredder;

  constructor(seed: number) {
    const keyOf = (name: string) => createHash("sha256").update(`${seed} ${name}`).digest();
    this.#leaders = Array.from(
      { length: leaderCount },
      (_, i) => new Shredder(keyOf(`leader ${i}`)),
    );
    this.partners = new Set(
      this.#leaders
        .slice(partnerTurn, partnerTurn + 1)
        .map((leader) => base58.encode(leader.publicKey)),
    );
    this.#stranger = new Shredder(keyOf("stranger"));
    const turns = Array.from({ length: scheduledSlots }, (_, slot) => slot);
    this.schedule = buildSchedule(
      scheduleBegin,
      this.#leaders.map(({ publicKey }, i) => ({
        key: publicKey,
        slots: turns.filter((slot) => Math.floor(slot / slotsPerTurn) % leaderCount === i),
      })),
    );
  }

  /**
   * The shreds of a slot, version by version, in the order in which its leader sends them. `contents`: the
   * transactions of each version, by FEC set.
   */
  produce(plan: SlotPlan, contents: readonly VersionContents[] = []): AuthenticShred[][] {
    const versions = Array.from({ length: plan.versions }, (_, version) =>
      this.#shreds(plan, this.#leaderOf(plan.slot), version, contents[version]),
    );
    const all = versions.map((packets) => packets.map((packet) => this.#register(packet)));
    this.#forgetBefore(plan.slot);
    return all;
  }

  /** Hash of the first version of a slot's block; undefined: it is not known any longer. */
  blockhashOf(slot: bigint): Uint8Array | undefined {
    return this.#ends.get(slot)?.blockhash;
  }

  /** The FEC set of the slot's update-parent marker; undefined: the slot has none. */
  markerOf(slot: bigint): number | undefined {
    return this.#markers.get(slot);
  }

  /** Well-formed shreds of the slot, signed by a key that does not lead it. */
  forge(plan: SlotPlan): Uint8Array[] {
    return this.#shreds(plan, this.#stranger, 0);
  }

  /** The authentic shred with these bytes; undefined: the packet is forged. */
  find(packet: Uint8Array): AuthenticShred | undefined {
    return this.#candidates(packet).find((known) => Buffer.compare(known.packet, packet) === 0);
  }

  /** The authentic shred that differs only in its signature. */
  findSigned(packet: Uint8Array): AuthenticShred | undefined {
    const content = packet.subarray(signatureBytes);
    return this.#candidates(packet).find(
      (known) => Buffer.compare(known.packet.subarray(signatureBytes), content) === 0,
    );
  }

  /** The place of a packet, and how it differs from the authentic shreds of that place. */
  describe(packet: Uint8Array): string {
    if (packet.length <= fecSetAt + 4) return `a packet of ${packet.length} bytes`;
    const known = this.#candidates(packet);
    const differences = known.map(({ packet: bytes }) => {
      const at = [...packet.keys()].filter((i) => packet[i] !== bytes[i]);
      return `${at.length} bytes from ${at[0] ?? "the end"} on`;
    });
    const text = differences.length > 0 ? differences.join(" or ") : "an unknown place";
    return `a packet of ${packet.length} bytes at ${placeName(placeOf(packet))} (${text})`;
  }

  #candidates(packet: Uint8Array): readonly AuthenticShred[] {
    if (packet.length <= fecSetAt + 4) return [];
    return this.#byPlace.get(placeName(placeOf(packet))) ?? [];
  }

  isLedByPartner(slot: bigint): boolean {
    return turnOf(slot) === partnerTurn;
  }

  #leaderOf(slot: bigint): Shredder {
    const leader = this.#leaders[turnOf(slot)];
    if (!leader) throw new RangeError(`slot ${slot} is not scheduled`);
    return leader;
  }

  #shreds(
    plan: SlotPlan,
    shredder: Shredder,
    version: number,
    contents: VersionContents = [],
  ): Uint8Array[] {
    const parent = this.#ends.get(plan.parent) ?? {
      slot: plan.parent,
      blockhash: createHash("sha256").update(`${plan.parent}`).digest(),
      lastRoot: createHash("sha256").update(`root ${plan.parent}`).digest(),
    };
    const block = new BlockShreds({
      slot: plan.slot,
      // Another hash makes other bytes.
      parent: { ...parent, blockhash: parent.blockhash.map((byte) => byte ^ version) },
      shredder,
      shredVersion,
      hashesPerTick: 2, // one more than an entry with transactions
    });
    const packets: Uint8Array[] = [];
    for (let set = 0; set < plan.sets - 1; set++) {
      if (set === plan.restartAfter) {
        const marker = block.restart();
        if (marker[0]) this.#markers.set(plan.slot, placeOf(marker[0]).fecSet);
        packets.push(...marker);
      }
      packets.push(...block.add(contents[set] ?? [], 1));
    }
    packets.push(...block.add(contents[plan.sets - 1] ?? [], ticksPerSlot));
    if (version === 0 && shredder !== this.#stranger)
      this.#ends.set(plan.slot, {
        slot: plan.slot,
        blockhash: block.hash,
        lastRoot: block.lastRoot,
      });
    return packets;
  }

  #register(packet: Uint8Array): AuthenticShred {
    const place = placeOf(packet);
    const name = placeName(place);
    const known = this.#byPlace.get(name) ?? [];
    const shred = { name: `${name} #${known.length}`, place, packet };
    this.#byPlace.set(name, [...known, shred]);
    return shred;
  }

  #forgetBefore(slot: bigint): void {
    this.#slots.push(slot);
    if (this.#slots.length <= rememberedSlots) return;
    const oldest = this.#slots.shift();
    if (oldest === undefined) return;
    this.#ends.delete(oldest);
    this.#markers.delete(oldest);
    for (const [name, [shred]] of this.#byPlace)
      if (shred?.place.slot === oldest) this.#byPlace.delete(name);
      else break; // in the order of production
  }
}
