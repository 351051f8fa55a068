import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DueHeap } from "../../../src/shreds/destinations/due-heap.ts";

const id = fc.constantFrom("a", "b", "c", "d", "e", "f", "g", "h");
const step = fc.oneof(
  fc.record({ id, atMs: fc.nat(50) }),
  fc.record({ id, atMs: fc.constant(null) }),
  fc.record({ nowMs: fc.nat(60) }),
);

describe("DueHeap", () => {
  it("returns due items in order, as a plain map would", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const heap = new DueHeap();
        const model = new Map<string, number>();
        for (const each of steps) {
          if ("nowMs" in each) {
            const due = [...model].filter(([, atMs]) => atMs <= each.nowMs);
            for (const [gone] of due) model.delete(gone);
            const given = heap.takeDue(each.nowMs);
            expect(given.toSorted()).toEqual(due.map(([gone]) => gone).toSorted());
            const times = given.map((gone) => due.find(([known]) => known === gone)?.[1] ?? 0);
            expect(times).toEqual(times.toSorted((a, b) => a - b));
          } else {
            heap.set(each.id, each.atMs);
            if (each.atMs === null) model.delete(each.id);
            else model.set(each.id, each.atMs);
          }
          expect(heap.size).toBe(model.size);
          expect(heap.nextMs).toBe(model.size === 0 ? null : Math.min(...model.values()));
        }
      }),
    );
  });
});
