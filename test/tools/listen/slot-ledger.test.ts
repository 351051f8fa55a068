import { describe, expect, it } from "vitest";
import { coverageOf } from "../../../src/relay/data-plane/report.ts";
import type { SlotSnapshot } from "../../../src/relay/data-plane/snapshot.ts";
import { SlotLedger } from "../../../src/tools/listen/slot-ledger.ts";

function slot(number: bigint, data: number, code: number, last: number | null): SlotSnapshot {
  return {
    slot: number,
    firstSeenNs: 1000n,
    lastSeenNs: 1500n,
    data,
    code,
    highestDataIndex: data - 1,
    lastDataIndex: last,
  };
}

describe("coverageOf", () => {
  it("is a share of the slot after its end is known", () => {
    expect(coverageOf(slot(1n, 48, 64, 63))).toMatchObject({
      dataShare: 0.75,
      share: 112 / 128,
      spanNs: 500n,
    });
  });
  it("is unknown before the slot's end is known", () => {
    expect(coverageOf(slot(1n, 48, 64, null))).toMatchObject({ dataShare: null, share: null });
  });
});

describe("SlotLedger", () => {
  it("counts every slot once, with its latest counters", () => {
    const ledger = new SlotLedger();
    ledger.note([slot(1n, 10, 0, null), slot(2n, 64, 64, 63)]);
    ledger.note([slot(1n, 64, 60, 63), slot(2n, 64, 64, 63), slot(3n, 5, 5, null)]);
    expect(ledger.totals()).toEqual({ slots: 3, dataComplete: 2, complete: 1, endUnknown: 1 });
  });

  it("counts slots before a gap once, as long as they stay in the window", () => {
    const ledger = new SlotLedger();
    const [before, after] = [slot(1000n, 32, 32, 31), slot(2000n, 32, 30, 31)];
    ledger.note([before]);
    for (let second = 0; second < 3; second++) ledger.note([before, after]);
    ledger.note([after]);
    expect(ledger.totals()).toEqual({ slots: 2, dataComplete: 2, complete: 1, endUnknown: 0 });
  });

  it("retains the count of slots that left the window", () => {
    const ledger = new SlotLedger();
    for (let number = 0n; number < 1000n; number++) ledger.note([slot(number, 32, 32, 31)]);
    expect(ledger.totals()).toEqual({
      slots: 1000,
      dataComplete: 1000,
      complete: 1000,
      endUnknown: 0,
    });
  });
});
