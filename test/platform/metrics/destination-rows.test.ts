import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DestinationRows, othersName } from "../../../src/platform/metrics/destination-rows.ts";
import { RunningTotals } from "../../../src/platform/metrics/running-totals.ts";
import type { DestinationSnapshot } from "../../../src/relay/data-plane/snapshot.ts";

function destination(address: string, sent: number, failed = 0): DestinationSnapshot {
  return {
    name: "customer",
    address,
    tier: "tier-1",
    sent: BigInt(sent),
    failed: {
      buffer_full: BigInt(failed),
      unreachable: 0n,
      refused: 0n,
      not_permitted: 0n,
      too_big: 0n,
      invalid: 0n,
      other: 0n,
    },
    icmp: 0n,
    recoveredSent: 0n,
  };
}

const sentOf = (rows: ReturnType<DestinationRows["rows"]>) =>
  rows.map(({ name, sent }) => [name, Number(sent)]);

describe("the series of destinations", () => {
  it("exist for configured destinations and for others up to the limit, until they are removed", () => {
    const rows = new DestinationRows();
    const fixed = new Set(["f"]);
    const look = (...list: DestinationSnapshot[]) => sentOf(rows.rows(list, fixed, 1));
    expect(look(destination("f", 1), destination("a", 10), destination("b", 20))).toEqual([
      ["customer f", 1],
      ["customer a", 10],
      [othersName, 20],
    ]);
    expect(look(destination("b", 25), destination("a", 11), destination("f", 2))).toEqual([
      ["customer a", 11],
      ["customer f", 2],
      [othersName, 25],
    ]);
    // "a" is removed and "b" replaces it: the shared counts do not fall.
    expect(look(destination("b", 30), destination("c", 5))).toEqual([
      ["customer b", 30],
      [othersName, 30],
    ]);
    expect(look(destination("b", 30), destination("c", 7, 3))).toEqual([
      ["customer b", 30],
      [othersName, 32],
    ]);
    const [, others] = rows.rows([destination("b", 30), destination("c", 7, 3)], fixed, 1);
    expect(others?.failed).toEqual([["buffer_full", 3n]]);
  });
});

describe("RunningTotals", () => {
  it("never fall, and are the sum of all owners' counts", () => {
    const step = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.nat(50));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        const totals = new RunningTotals();
        const counts = new Map<string, bigint>();
        let expected = 0n;
        for (const more of steps) {
          for (const owner of counts.keys()) if (!(owner in more)) counts.delete(owner);
          for (const [owner, count] of Object.entries(more)) {
            counts.set(owner, (counts.get(owner) ?? 0n) + BigInt(count));
            expected += BigInt(count);
            totals.note(owner, "x", counts.get(owner) ?? 0n);
          }
          totals.finish();
          expect(totals.totals.get("x") ?? 0n).toBe(expected);
        }
      }),
    );
  });
});
