// Where a stream continues, and what it repeats: against a model, with random losses.

import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { ResumePoint } from "../../../src/tools/stream/resume-point.ts";
import type { StreamEvent } from "../../../src/tools/stream/stream-messages.ts";

function transaction(slot: number, signature: string, batchIndex = 0): StreamEvent {
  const place = { slot: BigInt(slot), batchIndex: BigInt(batchIndex) };
  return { kind: "transaction", ...place, signature, isVote: false, createdAtNs: null };
}

describe("ResumePoint", () => {
  it("repeats eight slots, and leaves out what was shown before the loss", () => {
    const point = new ResumePoint();
    expect(point.slot).toBe(null);
    expect(point.note(transaction(3, "a"))).toBe(true);
    expect(point.slot).toBe(0n);
    expect(point.note(transaction(100, "b"))).toBe(true);
    expect([point.slot, point.newest]).toEqual([93n, 100n]);
    point.lose();
    expect(point.note(transaction(100, "b"))).toBe(false);
    expect(point.note(transaction(100, "c"))).toBe(true);
  });

  it("shows a transaction again that a marker moved, and the marker once", () => {
    const point = new ResumePoint();
    const marker: StreamEvent = {
      kind: "update_parent",
      slot: 7n,
      fecSetIndex: 32n,
      parentSlot: 5n,
    };
    expect([transaction(7, "a"), marker].map((event) => point.note(event))).toEqual([true, true]);
    point.lose();
    const repeated = [marker, transaction(7, "a", 32), transaction(7, "a", 32)];
    expect(repeated.map((event) => point.note(event))).toEqual([false, true, true]);
  });

  it("shows every transaction once, wherever the connection is lost", () => {
    const random = new SeededRandom(4);
    const all = Array.from({ length: 400 }, (_, i) => ({
      slot: 100 + (i >> 3),
      signature: `${i}`,
    }));
    const point = new ResumePoint();
    const shown: string[] = [];
    let next = 0;
    while (next < all.length) {
      const end = Math.min(all.length, next + 65 + random.below(60)); // more than is repeated
      for (const { slot, signature } of all.slice(next, end)) {
        if (point.note(transaction(slot, signature))) shown.push(signature);
      }
      point.lose();
      const from = Number(point.slot ?? 0n);
      next = end === all.length ? end : all.findIndex(({ slot }) => slot >= from);
    }
    expect(shown).toEqual(all.map(({ signature }) => signature));
  });
});
