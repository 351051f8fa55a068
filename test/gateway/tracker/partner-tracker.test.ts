// The next leader: explicit cases of windows, epoch boundaries and gaps, everything else against a
// slow model.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import { PartnerTracker } from "../../../src/gateway/tracker/partner-tracker.ts";
import type { LeaderRecord } from "../../../src/gateway/tracker/types.ts";
import { joinEpochs } from "../../../src/relay/leaders/rpc-leader-schedule.ts";
import { buildSchedule, type LeaderSchedule } from "../../../src/relay/leaders/schedule.ts";

const keys = Array.from({ length: 6 }, (_, i) => new Uint8Array(32).fill(i + 1));
const names = keys.map((key) => String(pubkeyOf(key)));
const [a = "", b = "", c = ""] = names;
const letters = ["a", "b", "c", "d", "e", "f"];

/** One letter per slot: "a" leads, "." is missing. */
function slotsOf(turns: string): ReadonlyMap<string, readonly number[]> {
  const slots = new Map<string, number[]>();
  for (const [i, letter] of turns.split("").entries()) {
    const name = names[letters.indexOf(letter)];
    if (name !== undefined) slots.set(name, [...(slots.get(name) ?? []), i]);
  }
  return slots;
}

/** Consecutive epochs. */
function scheduleOf(firstSlot: bigint, ...epochs: string[]): LeaderSchedule {
  let first = firstSlot;
  const spans = epochs.map((turns) => {
    const span = { firstSlot: first, leaders: slotsOf(turns) };
    first += BigInt(turns.length);
    return span;
  });
  return joinEpochs(spans);
}

function trackerOf(schedule: LeaderSchedule | undefined, members: string[], present = 100n) {
  const now = { slot: present as bigint | null };
  const tracker = new PartnerTracker(() => now.slot);
  tracker.replaceSchedule(schedule);
  tracker.replaceMembers(new Set(members));
  return { tracker, now };
}

function found(record: LeaderRecord | null): [string, bigint] | null {
  return record && [record.pubkey, record.leaderSlot];
}

describe("the next member", () => {
  it.each<[string, string[], bigint, [string, bigint] | null]>([
    ["before its window", [b], 100n, [b, 104n]],
    ["at its beginning", [b], 104n, [b, 104n]],
    ["inside it", [b], 106n, [b, 106n]],
    ["in its last slot", [b], 107n, [b, 107n]],
    ["behind it", [b], 108n, [b, 120n]],
    ["another member right behind", [b, c], 108n, [c, 108n]],
    ["in two windows in a row", [c], 113n, [c, 113n]],
    ["in a window over the edge of an epoch", [a], 117n, [a, 117n]],
    ["behind that edge", [a], 119n, [a, 119n]],
    ["in the next epoch", [b], 118n, [b, 120n]],
    ["behind the last window", [b], 124n, null],
    ["behind the schedule", [a], 132n, null],
    ["far behind", [a], 2n ** 64n - 1n, null],
    ["before the schedule", [b], 0n, [b, 104n]],
    ["no member in the schedule", [names[5] ?? ""], 100n, null],
    ["no member", [], 100n, null],
  ])("%s", (_, members, slot, expected) => {
    const schedule = scheduleOf(100n, "aaaabbbbccccccccaa", "aabbbb..aaaa");
    expect(found(trackerOf(schedule, members).tracker.next(slot))).toEqual(expected);
  });

  it("skips gaps and does not join windows across them", () => {
    const { tracker } = trackerOf(scheduleOf(100n, "aa..aa.b"), [a]);
    const slots = Array.from({ length: 8 }, (_, i) => tracker.next(100n + BigInt(i))?.leaderSlot);
    expect(slots).toEqual([100n, 101n, 104n, 104n, 104n, 105n, undefined, undefined]);
  });

  it("is searched from the current slot by default", () => {
    const { tracker, now } = trackerOf(scheduleOf(100n, "aaaabbbb"), [b], 101n);
    expect(tracker.next(null)).toEqual({ pubkey: b, leaderSlot: 104n, contextSlot: 101n });
    now.slot = 106n;
    expect(tracker.next(null)).toEqual({ pubkey: b, leaderSlot: 106n, contextSlot: 106n });
    expect(tracker.next(100n)).toEqual({ pubkey: b, leaderSlot: 104n, contextSlot: 106n });
  });

  it("is unknown without a current slot, except for a given slot", () => {
    const { tracker, now } = trackerOf(scheduleOf(100n, "aaaabbbb"), [b]);
    now.slot = null;
    expect(tracker.next(null)).toBeNull();
    expect(tracker.next(100n)).toEqual({ pubkey: b, leaderSlot: 104n, contextSlot: 0n });
  });

  it("is unknown without a schedule", () => {
    const { tracker } = trackerOf(undefined, [b]);
    expect(tracker.next(100n)).toBeNull();
    tracker.replaceSchedule(scheduleOf(100n, "aaaabbbb"));
    expect(tracker.next(100n)?.leaderSlot).toBe(104n);
    tracker.replaceSchedule(undefined);
    expect(tracker.next(100n)).toBeNull();
  });

  it("follows the schedule and the members", () => {
    const { tracker } = trackerOf(scheduleOf(100n, "aaaabbbb"), [b]);
    tracker.replaceSchedule(scheduleOf(104n, "bbbb", "cccc"));
    expect(found(tracker.next(100n))).toEqual([b, 104n]);
    tracker.replaceMembers(new Set([c]));
    expect(found(tracker.next(100n))).toEqual([c, 108n]);
    expect(() => tracker.replaceMembers(new Set(["no key"]))).toThrow(
      /public key: invalid value "no key"; expected/,
    );
    expect([...tracker.memberSet()]).toEqual([c]);
  });
});

describe("members", () => {
  it("are those that lead in the current epoch, sorted", () => {
    const all = names.slice(0, 4);
    const { tracker, now } = trackerOf(scheduleOf(64n, "bbbbaaaa", "aaaacccc"), all);
    const of = (slot: bigint | null) => {
      now.slot = slot;
      return tracker.members();
    };
    expect(of(64n)).toEqual([a, b].toSorted());
    expect(of(71n)).toEqual([a, b].toSorted());
    expect(of(72n)).toEqual([a, c].toSorted());
    expect(of(79n)).toEqual([a, c].toSorted());
    expect(of(72n)).toBe(of(75n)); // made once
    // The epoch is unknown: all members.
    for (const slot of [63n, 80n, null]) expect(of(slot)).toEqual(all.toSorted());
    expect([...tracker.memberSet()].toSorted()).toEqual(all.toSorted());
  });

  it("are in both epochs if a window crosses the boundary", () => {
    const { tracker, now } = trackerOf(scheduleOf(64n, "bbbbbbaa", "aacccccc"), [a], 64n);
    expect(tracker.members()).toEqual([a]);
    now.slot = 79n;
    expect(tracker.members()).toEqual([a]);
  });

  it("are those of one epoch in a schedule from a file", () => {
    const leaders = names.slice(0, 3).map((_, i) => ({
      key: keys[i] ?? new Uint8Array(32),
      slots: [4 * i, 4 * i + 1],
    }));
    const { tracker } = trackerOf(buildSchedule(100n, leaders), [a, c, names[4] ?? ""]);
    expect(tracker.members()).toEqual([a, c].toSorted());
  });

  it("are the same object until they change", () => {
    const { tracker } = trackerOf(scheduleOf(100n, "aaaabbbb"), [a, b]);
    const before = tracker.memberSet();
    tracker.replaceMembers(new Set([b, a]));
    expect(tracker.memberSet()).toBe(before);
    tracker.replaceMembers(new Set([b, c]));
    expect([...tracker.memberSet()]).toEqual([b, c]);
  });
});

/** Epochs of windows of four slots, the last cut off by the epoch's end; some slots are missing. */
const anyEpoch = fc
  .record({
    length: fc.integer({ min: 1, max: 40 }),
    turns: fc.array(fc.constantFrom(...letters), { minLength: 10, maxLength: 10 }),
    holes: fc.uniqueArray(fc.nat(39), { maxLength: 8 }),
  })
  .map(({ length, turns, holes }) =>
    Array.from({ length }, (_, i) => (holes.includes(i) ? "." : turns[Math.floor(i / 4)])).join(""),
  );

describe("against a slow model", () => {
  it("finds the same leaders at every slot", () => {
    fc.assert(
      fc.property(
        fc.array(anyEpoch, { minLength: 1, maxLength: 4 }),
        fc.bigInt(0n, 500n),
        fc.uniqueArray(fc.constantFrom(...names)),
        fc.uniqueArray(fc.constantFrom(...names)),
        (epochs, first, listed, denied) => {
          const all = epochs.join("");
          const [begin] = /[^.]/.exec(epochs[0] ?? "") ?? [];
          fc.pre(begin !== undefined && epochs.every((epoch) => /[^.]/.test(epoch)));
          const members = listed.filter((name) => !denied.includes(name));
          const { tracker, now } = trackerOf(scheduleOf(first, ...epochs), members);
          const memberAt = (place: number): string | undefined =>
            members.find((name) => name === names[letters.indexOf(all[place] ?? ".")]);
          let epochBegin = 0;
          for (const epoch of epochs) {
            const leading = new Set(Array.from(epoch, (_, i) => memberAt(epochBegin + i)));
            const expected = members.filter((name) => leading.has(name)).toSorted();
            // The last slots may have no leader, because the schedule ends before them.
            now.slot = first + BigInt(epochBegin);
            expect(tracker.members()).toEqual(expected);
            epochBegin += epoch.length;
          }
          now.slot = 7n;
          for (let offset = -3; offset <= all.length + 3; offset++) {
            const slot = first + BigInt(offset);
            if (slot < 0n) continue;
            let place = Math.max(offset, 0);
            while (place < all.length && memberAt(place) === undefined) place++;
            const pubkey = memberAt(place);
            const expected =
              pubkey === undefined
                ? null
                : { pubkey, leaderSlot: first + BigInt(place), contextSlot: 7n };
            expect(tracker.next(slot)).toEqual(expected);
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});
