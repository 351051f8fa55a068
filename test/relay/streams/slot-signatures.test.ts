// Signatures of a stream by slot: in any order of batches and markers, what stands at the end is what the
// block contains, and no signature is sent twice within a fork.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SlotSignatures } from "../../../src/relay/streams/slot-signatures.ts";

const slot = 7n;

describe("SlotSignatures", () => {
  it("leaves what the block contains, in any order", () => {
    const placeOf = fc.record({ signature: fc.constantFrom("a", "b", "c", "d"), batch: fc.nat(9) });
    const marks = fc.array(fc.nat(10), { maxLength: 3 });
    const anyCase = fc
      .record({ places: fc.array(placeOf, { maxLength: 12 }), marks })
      .chain((made) => {
        const events = [...made.places, ...made.marks.map((mark) => ({ mark }))];
        const order = fc.shuffledSubarray(events, { minLength: events.length });
        return fc.record({ made: fc.constantFrom(made), order });
      });
    fc.assert(
      fc.property(anyCase, ({ made, order }) => {
        const signatures = new SlotSignatures();
        const standing = new Set<string>();
        let known = 0;
        for (const event of order) {
          if ("mark" in event) {
            known = Math.max(known, event.mark);
            for (const one of signatures.withdraw(slot, event.mark)) {
              expect(standing.delete(one)).toBe(true);
            }
            continue;
          }
          // The relay sends nothing that a known marker abandons.
          if (event.batch < known) continue;
          if (!signatures.add(slot, event.signature, event.batch)) continue;
          expect(standing.has(event.signature)).toBe(false);
          standing.add(event.signature);
        }
        const last = Math.max(0, ...made.marks);
        const expected = made.places.filter(({ batch }) => batch >= last);
        expect(standing).toEqual(new Set(expected.map(({ signature }) => signature)));
      }),
    );
  });

  it("forgets complete slots, and the oldest of many open ones", () => {
    const signatures = new SlotSignatures();
    expect(signatures.add(1n, "a", 0)).toBe(true);
    expect(signatures.add(1n, "a", 0)).toBe(false);
    expect(signatures.add(2n, "a", 0)).toBe(true);
    signatures.complete(1n);
    expect(signatures.withdraw(1n, 9)).toEqual([]);
    for (let open = 3n; open < 11n; open++) signatures.add(open, "a", 0);
    expect(signatures.withdraw(2n, 9)).toEqual([]);
    expect(signatures.withdraw(10n, 9)).toEqual(["a"]);
  });
});
