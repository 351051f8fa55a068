import { describe, expect, it } from "vitest";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import { leaderContextOf } from "../../../src/relay/leaders/leader-context.ts";
import { buildSchedule } from "../../../src/relay/leaders/schedule.ts";

const keyA = new Uint8Array(32).fill(7);
const keyB = new Uint8Array(32).fill(9);
const schedule = buildSchedule(400n, [
  { key: keyA, slots: [0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15] },
  { key: keyB, slots: [4, 5, 6, 7] },
]);
const [a, b] = [pubkeyOf(keyA), pubkeyOf(keyB)];

describe("leaderContextOf", () => {
  it.each([
    [400n, a, b],
    [403n, a, b],
    [404n, b, a],
    [407n, b, a],
    [408n, a, a], // two windows of one leader
    [412n, a, null], // the schedule ends
    [399n, null, a], // before it begins
    [416n, null, null],
  ])("slot %d: %s, then %s", (slot, current, next) => {
    expect(leaderContextOf(schedule, slot)).toEqual({ slot, current, next });
  });

  it("returns no leader without a schedule or a slot", () => {
    expect(leaderContextOf(undefined, 400n)).toEqual({ slot: 400n, current: null, next: null });
    expect(leaderContextOf(schedule, null)).toEqual({ slot: null, current: null, next: null });
  });
});
