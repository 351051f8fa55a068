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
export const leaderCount = 5;
const slotsPerTurn = 4;
/** The leader that is an alternative partner. */
const partnerTurn = 1;
/** Slots of the schedule before the run and behind it. */
const scheduledAround = 4_000;
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

function isCodeShred(packet: Uint8Array): boolean {
  return ((packet[variantAt] ?? 0) & 0x80) === 0;
}

function numberAt(packet: Uint8Array, at: number): number {
  const low = (packet[at] ?? 0) + (packet[at + 1] ?? 0) * 0x100;
  return low + (packet[at + 2] ?? 0) * 0x1_0000 + (packet[at + 3] ?? 0) * 0x100_0000;
}

/** Reads the place of a packet with at least 83 bytes. */
export function placeOf(packet: Uint8Array): ShredPlace {
  const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
  return {
    slot: view.getBigUint64(slotAt, true),
    isCode: isCodeShred(packet),
    index: numberAt(packet, indexAt),
    fecSet: numberAt(packet, fecSetAt),
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

/** Authentic shreds of a slot by their index; several: an equivocation. */
interface SlotShreds {
  readonly data: AuthenticShred[][];
  readonly code: AuthenticShred[][];
}

/** Transactions of one version of a block, by FEC set. */
export type VersionContents = readonly (readonly WireTransaction[])[];

const none: readonly AuthenticShred[] = [];

function placeName({ slot, isCode, index }: ShredPlace): string {
  return `${slot} ${isCode ? "code" : "data"} ${index}`;
}

/** Hash of a slot's block that no source delivers, so that nobody has its shreds. */
export function undeliveredBlockhash(slot: bigint): Uint8Array {
  return createHash("sha256").update(`${slot}`).digest();
}

function turnOf(slot: bigint): number {
  return Math.floor(Number(slot - scheduleBegin) / slotsPerTurn) % leaderCount;
}

export class Cluster {
  readonly schedule: LeaderSchedule;
  /** Identities of all leaders in base58, in the order of their turns. */
  readonly identities: readonly string[];
  /** Identities of the alternative partners. */
  readonly partners: ReadonlySet<string>;
  readonly #leaders: readonly Shredder[];
  readonly #ends = new Map<bigint, ParentEnd>();
  /** FEC sets of update-parent markers, by slot. */
  readonly #markers = new Map<bigint, number>();
  /** Shreds by the number of their slot, which fits into 32 bits: a BigInt would be slow as a key. */
  readonly #bySlot = new Map<number, SlotShreds>();
  readonly #slots: bigint[] = [];
  /** A key that leads no slot. */
  readonly #stranger: Shredder;

  /** `slots`: the most that can begin in the run. */
  constructor(seed: number, slots: number) {
    const keyOf = (name: string) => createHash("sha256").update(`${seed} ${name}`).digest();
    this.#leaders = Array.from(
      { length: leaderCount },
      (_, i) => new Shredder(keyOf(`leader ${i}`)),
    );
    this.identities = this.#leaders.map(({ publicKey }) => base58.encode(publicKey));
    this.partners = new Set(this.identities.slice(partnerTurn, partnerTurn + 1));
    this.#stranger = new Shredder(keyOf("stranger"));
    const turns = Array.from({ length: slots + scheduledAround }, (_, slot) => slot);
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
    for (const known of this.#candidates(packet))
      if (known.packet === packet || Buffer.compare(known.packet, packet) === 0) return known;
    return undefined;
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
    if (packet.length <= fecSetAt + 4 || numberAt(packet, slotAt + 4) !== 0) return none;
    const slot = this.#bySlot.get(numberAt(packet, slotAt));
    const shreds = isCodeShred(packet) ? slot?.code : slot?.data;
    return shreds?.[numberAt(packet, indexAt)] ?? none;
  }

  identityOf(slot: bigint): string | undefined {
    return this.identities[turnOf(slot)];
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
      blockhash: undeliveredBlockhash(plan.parent),
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
    const slot = this.#bySlot.get(Number(place.slot)) ?? { data: [], code: [] };
    this.#bySlot.set(Number(place.slot), slot);
    const shreds = place.isCode ? slot.code : slot.data;
    const known = shreds[place.index] ?? [];
    const shred = { name: `${placeName(place)} #${known.length}`, place, packet };
    shreds[place.index] = [...known, shred];
    return shred;
  }

  #forgetBefore(slot: bigint): void {
    this.#slots.push(slot);
    if (this.#slots.length <= rememberedSlots) return;
    const oldest = this.#slots.shift();
    if (oldest === undefined) return;
    this.#ends.delete(oldest);
    this.#markers.delete(oldest);
    this.#bySlot.delete(Number(oldest));
  }
}
