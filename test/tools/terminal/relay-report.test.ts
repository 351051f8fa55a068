import { describe, expect, it } from "vitest";
import { verdictNames } from "../../../src/relay/data-plane/names.ts";
import {
  decodeSnapshot,
  layoutOf,
  type RelaySnapshot,
  type SnapshotShape,
} from "../../../src/relay/data-plane/snapshot.ts";
import { totalsOf } from "../../../src/tools/terminal/relay-report.ts";

const shape: SnapshotShape = {
  workers: 1,
  sourceRows: 1,
  destinationRows: 0,
  histogramBuckets: 4,
  histogramPrecisionBits: 2,
  slotRows: 0,
  slotRowFields: 7,
};

/** A snapshot with a different count for every verdict. */
function snapshotWithEveryVerdict(): RelaySnapshot {
  const layout = layoutOf(shape);
  const words = new BigUint64Array(layout.words);
  verdictNames.forEach((_name, i) => {
    words[layout.sources + i] = 1n << BigInt(i);
  });
  const rows = { sources: [{ id: 0, name: "a", tier: "t", isForwarded: true }], destinations: [] };
  return decodeSnapshot(words, shape, rows, 0n);
}

describe("totalsOf", () => {
  it("counts every packet exactly once", () => {
    const { received, receiveDrops, sent, failed, refused, ...passed } = totalsOf(
      snapshotWithEveryVerdict(),
    );
    const counts = [...Object.values(passed), ...Object.values(refused ?? {})];
    const sum = counts.reduce((total: bigint, count) => total + BigInt(String(count)), 0n);
    expect(sum).toBe((1n << BigInt(verdictNames.length)) - 1n);
    expect(received).toBe(sum);
    expect(passed).toMatchObject({ first: 1n, newTier: 2n, equivocation: 4n, duplicate: 32n });
    expect(passed).toMatchObject({ firstForwardable: 8n, ownUse: 16n });
    expect([receiveDrops, sent, failed]).toEqual([0n, 0n, 0n]);
  });
});
