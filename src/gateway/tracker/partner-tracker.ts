// PartnerTracker: who of the alternative partners leads now, and who next.
//
// Made by main, told of every schedule and every list of members, asked by the gateway and the plan.
// Answers from memory, so it goes on while the node is away: by the last schedule, as far as that
// reaches. Knows no clock of its own: the present slot is what the measured slot clock believes.

import { parsePubkey, pubkeyBytes } from "../../core/primitives.ts";
import type { LeaderSchedule } from "../../relay/leaders/schedule.ts";
import type { LeaderRecord, Tracker } from "./types.ts";
import { WindowIndex } from "./window-index.ts";

/** `context_slot` while no slot was measured: far behind whatever is asked for. */
const unknownSlot = 0n;

export class PartnerTracker implements Tracker {
  readonly #presentSlot: () => bigint | null;
  #schedule: LeaderSchedule | undefined;
  #members: ReadonlySet<string> = new Set();
  #sorted: readonly string[] = [];
  /** The 32 bytes of each as latin1 text -> base58: leaders are compared by their bytes. */
  #names: ReadonlyMap<string, string> = new Map();
  #index: WindowIndex | null = null;

  /** `presentSlot`: null while it is not measured. */
  constructor(presentSlot: () => bigint | null) {
    this.#presentSlot = presentSlot;
  }

  /** In force from now on; undefined: none is known. */
  replaceSchedule(schedule: LeaderSchedule | undefined): void {
    if (schedule === this.#schedule) return;
    this.#schedule = schedule;
    this.#rebuild();
  }

  /** All of them, less denied ones. Throws ShredwayError "value_invalid" unless each is a public key. */
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
    const asked = slot ?? present;
    const found = asked === null ? null : this.#index?.atOrAfter(asked);
    if (!found) return null;
    return { pubkey: found.pubkey, leaderSlot: found.slot, contextSlot: present ?? unknownSlot };
  }

  #rebuild(): void {
    this.#index = this.#schedule ? new WindowIndex(this.#schedule, this.#names) : null;
  }
}
