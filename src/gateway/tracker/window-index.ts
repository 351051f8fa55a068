// Index of the members' windows in a leader schedule. Pure.
//
// partner-tracker.ts builds it when the schedule or the members change. A window is a run of slots
// with the same leader. A run may be longer than four slots or cross an epoch boundary; it is still
// one window. Slots missing in the schedule belong to no leader.

import { coveredSlots, type LeaderSchedule } from "../../relay/leaders/schedule.ts";

interface MemberSlot {
  readonly pubkey: string;
  readonly slot: bigint;
}

/** Marks leaders that are not members. */
const noMember = -1;

/** Index of the first value above `limit`, or the length if all are lower. `values` ascends. */
function indexAbove(values: Uint32Array, limit: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] ?? 0) > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

export class WindowIndex {
  readonly #schedule: LeaderSchedule;
  readonly #names: readonly string[];
  /**
   * Windows in ascending order, slots relative to the schedule: first slot, slot after the last,
   * member.
   */
  readonly #begins: Uint32Array;
  readonly #ends: Uint32Array;
  readonly #members: Uint32Array;
  /** Leading members by index in `epochFirstSlots`; computed on demand. */
  readonly #ofEpochs = new Map<number, readonly string[]>();

  /** `members`: names by their 32 bytes as latin1 text. */
  constructor(schedule: LeaderSchedule, members: ReadonlyMap<string, string>) {
    const { keys, leaderBySlot } = schedule;
    this.#schedule = schedule;
    const names: string[] = [];
    const numbers = Int32Array.from(keys, (key) => {
      const name = members.get(Buffer.from(key).toString("latin1"));
      return name === undefined ? noMember : names.push(name) - 1;
    });
    const begins: number[] = [];
    const ends: number[] = [];
    const windowMembers: number[] = [];
    let open = noMember;
    for (let slot = 0; slot <= leaderBySlot.length; slot++) {
      // After the last slot, and in slots without a leader, no key exists.
      const member = numbers[leaderBySlot[slot] ?? keys.length] ?? noMember;
      if (member === open) continue;
      if (open !== noMember) ends.push(slot);
      if (member !== noMember) {
        begins.push(slot);
        windowMembers.push(member);
      }
      open = member;
    }
    this.#names = names;
    this.#begins = Uint32Array.from(begins);
    this.#ends = Uint32Array.from(ends);
    this.#members = Uint32Array.from(windowMembers);
  }

  /**
   * Returns `slot` itself within a window, otherwise the first slot of the next window; null: none
   * follows.
   */
  atOrAfter(slot: bigint): MemberSlot | null {
    const first = this.#schedule.firstSlot;
    const relative = slot < first ? 0 : Number(slot - first);
    const place = indexAbove(this.#ends, relative);
    const begin = this.#begins[place];
    const pubkey = this.#names[this.#members[place] ?? this.#names.length];
    if (begin === undefined || pubkey === undefined) return null;
    return { pubkey, slot: first + BigInt(Math.max(begin, relative)) };
  }

  /**
   * Members that lead in the epoch of `slot`, sorted; null: the schedule does not cover that slot.
   */
  leadersAround(slot: bigint): readonly string[] | null {
    const { first, last } = coveredSlots(this.#schedule);
    if (slot < first || slot > last) return null;
    const firsts = this.#schedule.epochFirstSlots;
    const epoch = firsts.findLastIndex((begin) => begin <= slot);
    const known = this.#ofEpochs.get(epoch);
    if (known) return known;
    const begin = Number((firsts[epoch] ?? first) - first);
    const end = Number((firsts[epoch + 1] ?? last + 1n) - first);
    const found = new Set<number>();
    for (let place = indexAbove(this.#ends, begin); ; place++) {
      const [from, member] = [this.#begins[place], this.#members[place]];
      if (from === undefined || member === undefined || from >= end) break;
      found.add(member);
    }
    const names = Array.from(found, (member) => this.#names[member] ?? "").toSorted();
    this.#ofEpochs.set(epoch, names);
    return names;
  }
}
