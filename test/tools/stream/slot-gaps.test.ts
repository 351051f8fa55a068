// Slots that a stream missed as a whole, on a chain with skipped slots, forks and losses.

import { describe, expect, it } from "vitest";
import { SlotGaps } from "../../../src/tools/stream/slot-gaps.ts";

function gapsOf(slots: readonly (readonly [bigint, bigint])[]): SlotGaps {
  const gaps = new SlotGaps();
  for (const [slot, parent] of slots) gaps.note(slot, parent);
  return gaps;
}

describe("SlotGaps", () => {
  it("counts no skipped slot, because a later slot names an earlier parent", () => {
    const gaps = gapsOf([
      [10n, 9n],
      [11n, 10n],
      [14n, 11n],
      [15n, 14n],
    ]);
    expect([gaps.first, gaps.newest, gaps.absent]).toEqual([10n, 15n, 0]);
  });

  it("counts the slots from the last one to an unknown parent", () => {
    const gaps = gapsOf([
      [10n, 9n],
      [14n, 13n],
    ]);
    expect(gaps.absent).toBe(3);
    gaps.note(12n, 11n);
    expect(gaps.absent).toBe(2);
    gaps.note(15n, 0n);
    expect(gaps.absent).toBe(2);
  });

  it("counts forgotten slots, and at most 1,024 for one gap", () => {
    const gaps = gapsOf([
      [10n, 9n],
      [12n, 11n],
    ]);
    for (let slot = 13n; slot < 2000n; slot++) gaps.note(slot, slot - 1n);
    expect(gaps.absent).toBe(1);
    gaps.note(1_000_000n, 999_999n);
    expect(gaps.absent).toBe(1 + 1024);
  });
});
