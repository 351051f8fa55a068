import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CounterIds } from "../../../src/relay/data-plane/counter-ids.ts";

describe("counter ids", () => {
  it("retains numbers, never shares one, and reuses them as late as possible", () => {
    const names = fc.uniqueArray(
      fc.constantFrom("a", "b", "c", "d", "e", "f", "g", "h", "i", "j"),
      { maxLength: 6 },
    );
    fc.assert(
      fc.property(fc.array(names, { maxLength: 20 }), (tables) => {
        const ids = new CounterIds(6);
        let before = new Map<string, number>();
        const owners = new Map<number, string>();
        for (const table of tables) {
          const assigned = ids.assign(table);
          if (!assigned) throw new Error("at most six names were asked for");
          const rowsBefore = ids.rows;
          ids.assign(["not", "taken"]); // requested, never committed
          expect(ids.rows).toBe(rowsBefore);
          assigned.commit();
          const now = new Map(table.map((name, i) => [name, assigned.ids[i] ?? -1]));
          expect(new Set(now.values()).size).toBe(table.length);
          for (const [name, id] of now) {
            expect(id).toBeGreaterThanOrEqual(0);
            expect(id).toBeLessThan(ids.rows);
            if (before.has(name)) expect(id).toBe(before.get(name));
            else expect(assigned.reused.includes(id)).toBe(owners.has(id));
            owners.set(id, name);
          }
          before = now;
        }
        expect(ids.rows).toBeLessThanOrEqual(6);
      }),
    );
  });

  it("rejects more names than numbers; an uncommitted change has no effect", () => {
    const ids = new CounterIds(2);
    const take = (names: string[]) => {
      const assigned = ids.assign(names);
      assigned?.commit();
      return assigned && { ids: assigned.ids, reused: assigned.reused };
    };
    expect(take(["a", "b"])?.ids).toEqual([0, 1]);
    expect(ids.assign(["a", "b", "c"])).toBeUndefined();
    expect(ids.assign(["z"])?.reused).toEqual([0]);
    expect(take(["b"])?.ids).toEqual([1]);
    expect(take(["b", "z"])).toEqual({ ids: [1, 0], reused: [0] });
  });
});
