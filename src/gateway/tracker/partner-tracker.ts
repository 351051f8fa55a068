// PartnerTracker: finds the alternative partners that lead now and next.
//
// The service creates it and passes every leader schedule and member list; the gateway and the send
// plan query it. It answers from memory, so it continues without the node as far as the last
// schedule reaches. The measured slot clock provides the current slot.

import { parsePubkey, pubkeyBytes } from "../../core/primitives.ts";
import type { LeaderSchedule } from "../../relay/leaders/schedule.ts";
import type { LeaderRecord, Tracker } from "./types.ts";
import { WindowIndex } from "./window-index.ts";

/** `context_slot` while the current slot is unknown: below every requested slot. */
const unknownSlot = 0n;

export class PartnerTracker implements Tracker {
  readonly #presentSlot: () => bigint | null;
  #schedule: LeaderSchedule | undefined;
  #members: ReadonlySet<string> = new Set();
  #sorted: readonly string[] = [];
  /** Base58 identities by their 32 bytes as latin1 text, because schedules contain bytes. */
  #names: ReadonlyMap<string, string> = new Map();
  #index: WindowIndex | null = null;

  /** `presentSlot` returns null while the slot is unknown. */
  constructor(presentSlot: () => bigint | null) {
    this.#presentSlot = presentSlot;
  }

  /** Replaces the schedule; undefined: none is known. */
  replaceSchedule(schedule: LeaderSchedule | undefined): void {
    if (schedule === this.#schedule) return;
    this.#schedule = schedule;
    this.#rebuild();
  }

  /**
   * Replaces all members (without denied ones). Throws ShredwayError "value_invalid" unless each is
   * a public key.
   */
  replaceMembers(members: ReadonlySet<string>): void {
    const isSame = members.size === this.#members.size;
    if (isSame && [...members].every((name) => this.#members.has(name))) return;
    const names = Array.from(members, (name): [string, string] => [
      Buffer.from(pubkeyBytes(parsePubkey(name))).toString("latin1"),
      name,
    ]);
    this.#names = new Map(names);
    this.#members = new Set(members);
    this.#sorted = [...members].toSorted();
    this.#rebuild();
  }

  members(): readonly string[] {
    const slot = this.#presentSlot();
    const leading = slot === null ? null : this.#index?.leadersAround(slot);
    return leading ?? this.#sorted;
  }

  memberSet(): ReadonlySet<string> {
    return this.#members;
  }

  next(slot: bigint | null): LeaderRecord | null {
    const present = this.#presentSlot();
    const fromSlot = slot ?? present;
    const found = fromSlot === null ? null : this.#index?.atOrAfter(fromSlot);
    if (!found) return null;
    return { pubkey: found.pubkey, leaderSlot: found.slot, contextSlot: present ?? unknownSlot };
  }

  #rebuild(): void {
    this.#index = this.#schedule ? new WindowIndex(this.#schedule, this.#names) : null;
  }
}
