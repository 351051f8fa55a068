// FairCache: bounded, and fair to owners with few entries.

import fc from "fast-check";
import { expect, it } from "vitest";
import { FairCache } from "../../src/core/fair-cache.ts";

it("drops the least recently used entry of the owner with the most", () => {
  const cache = new FairCache<number>(4);
  cache.set("b", 1, "ben");
  for (const key of ["1", "2", "3", "4", "5"]) cache.set(key, Number(key), "eve");
  expect([cache.get("b"), [...cache.values()]]).toEqual([1, [1, 3, 4, 5]]);
  cache.use("3", "eve");
  cache.set("c", 2, "ben");
  expect([cache.get("3"), cache.get("4"), cache.get("c"), cache.size]).toEqual([
    3,
    undefined,
    2,
    4,
  ]);
});

it("gives an entry that several use to the owner with fewer", () => {
  const cache = new FairCache<number>(3);
  cache.set("b", 1, "ben");
  for (const key of ["1", "2"]) cache.set(key, 0, "eve");
  cache.use("b", "eve"); // it stays ben's
  for (const key of ["3", "4", "5"]) cache.set(key, 0, "eve");
  expect(cache.get("b")).toBe(1);
  cache.use("5", "ann");
  for (const key of ["6", "7", "8"]) cache.set(key, 0, "eve");
  expect([cache.get("b"), cache.get("5")]).toEqual([1, 0]);
});

it("never drops an entry of an owner that has at most its share", () => {
  const step = fc.record({ owner: fc.nat(3), key: fc.nat(30) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const cache = new FairCache<string>(8);
      const own = new Set<string>();
      for (const { owner, key } of steps) {
        const name = `${owner} ${key}`;
        if (owner === 0 && (own.has(name) || own.size < 2)) own.add(name);
        else if (owner === 0) continue;
        cache.set(name, name, String(owner));
        expect(cache.size).toBeLessThanOrEqual(8);
        expect(new Set(cache.values()).size).toBe(cache.size);
        for (const kept of own) expect(cache.get(kept)).toBe(kept);
      }
    }),
  );
});
