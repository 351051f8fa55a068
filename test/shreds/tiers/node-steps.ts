// Steps and settings of random histories of several nodes on one database.

import fc from "fast-check";

const waits = [0, 1, 50, 500, 999, 1000, 3000, 7000, 20_000];
const place = fc.nat(2);
const wait = fc.constantFrom(...waits);
export type NodeStep =
  | {
      readonly kind: "register";
      readonly places: readonly number[];
      readonly repeated: boolean;
      readonly count: number;
    }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "away" | "back" }
  | {
      readonly kind: "kill" | "close" | "freeze" | "cut";
      readonly place: number;
      readonly lockMs: number | null;
    }
  | { readonly kind: "thaw" | "join" | "lose answer" | "lose lock"; readonly place: number };

/** Index 3 stands for the present leader. */
const hit = fc.constantFrom(0, 1, 2, 3, 3, 3);
const lockMs = fc.constantFrom(0, 100, 2500);
const maybeLockMs = fc.constantFrom(null, 0, 100, 2500);
const step: fc.Arbitrary<NodeStep> = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.record({
      kind: fc.constant("register" as const),
      places: fc.array(place, { minLength: 1, maxLength: 3 }),
      repeated: fc.constantFrom(false, false, true),
      count: fc.integer({ min: 1, max: 4 }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: wait }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom("kill" as const, "close" as const),
      place: hit,
      lockMs,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom("freeze" as const, "cut" as const),
      place: hit,
      lockMs: maybeLockMs,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("away" as const, "back" as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        "thaw" as const,
        "join" as const,
        "lose answer" as const,
        "lose lock" as const,
      ),
      place: hit,
    }),
  },
);

export function nodeSteps(maxLength: number): fc.Arbitrary<NodeStep[]> {
  return fc.array(step, { minLength: 5, maxLength, size: "max" });
}

export const nodeSettings = fc.record({
  nodes: fc.constantFrom(1, 2, 3, 3),
  countsAtOnce: fc.boolean(),
  skewMs: fc.constantFrom(0, 0, 20, 3000),
  delayMaxMs: fc.constantFrom(0, 3, 3, 200),
  seed: fc.nat(),
});
export type NodeSetting = typeof nodeSettings extends fc.Arbitrary<infer T> ? T : never;
