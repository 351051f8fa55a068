// Windows of the members in a leader schedule: who of them leads at or after a slot. Pure.
//
// Built by partner-tracker.ts when the schedule or the members change, asked for every question. A
// window is a run of slots with the same leader. The cluster cuts runs into pieces of four and begins
// anew with each epoch; no answer depends on that, so a leader who goes on after the fourth slot, or
// over the edge of an epoch, has one window. Slots that the schedule leaves out belong to nobody.

import { coveredSlots, type LeaderSchedule } from "../../relay/leaders/schedule.ts";

interface MemberSlot {
  readonly pubkey: string;
  readonly slot: bigint;
}

/** In `of`: the leader is no member. */
const noMember = -1;

/** First place with a value above `limit`; their number when there is none. `values` ascends. */
function placeAbove(values: Uint32Array, limit: number): number {
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
  /** Of each window, ascending, relative to the schedule: first slot, slot behind its last, member. */
  readonly #begins: Uint32Array;
  readonly #ends: Uint32Array;
  readonly #of: Uint32Array;
  /** By place in `epochFirstSlots`; made when somebody asks. */
  readonly #ofEpochs = new Map<number, readonly string[]>();

  /** `members`: the 32 bytes of each as latin1 text -> its name. */
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
    const of: number[] = [];
    let open = noMember;
    for (let slot = 0; slot <= leaderBySlot.length; slot++) {
      // Behind the last slot, and where nobody leads, there is no such key.
      const member = numbers[leaderBySlot[slot] ?? keys.length] ?? noMember;
      if (member === open) continue;
      if (open !== noMember) ends.push(slot);
      if (member !== noMember) {
        begins.push(slot);
        of.push(member);
      }
      open = member;
    }
    this.#names = names;
    this.#begins = Uint32Array.from(begins);
    this.#ends = Uint32Array.from(ends);
    this.#of = Uint32Array.from(of);
  }

  /** `slot` itself inside a window, else the first of the next one; null: there is none any more. */
  atOrAfter(slot: bigint): MemberSlot | null {
    const first = this.#schedule.firstSlot;
    const asked = slot < first ? 0 : Number(slot - first);
    const place = placeAbove(this.#ends, asked);
    const begin = this.#begins[place];
    const pubkey = this.#names[this.#of[place] ?? this.#names.length];
    if (begin === undefined || pubkey === undefined) return null;
    return { pubkey, slot: first + BigInt(Math.max(begin, asked)) };
  }

  /** Who leads in the epoch of `slot`, sorted; null: the schedule does not cover that slot. */
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
    for (let place = placeAbove(this.#ends, begin); ; place++) {
      const [from, member] = [this.#begins[place], this.#of[place]];
      if (from === undefined || member === undefined || from >= end) break;
      found.add(member);
    }
    const names = Array.from(found, (member) => this.#names[member] ?? "").toSorted();
    this.#ofEpochs.set(epoch, names);
    return names;
  }
}
