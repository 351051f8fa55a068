import { describe, expect, it } from "vitest";
import { verdictNames } from "../../../src/relay/data-plane/names.ts";
import {
  decodeSnapshot,
  layoutOf,
  type RelaySnapshot,
  type SnapshotShape,
  type VerdictCounts,
} from "../../../src/relay/data-plane/snapshot.ts";
import { buildSchedule } from "../../../src/relay/leaders/schedule.ts";
import { ScheduleCheck } from "../../../src/relay/leaders/schedule-check.ts";

const shape: SnapshotShape = {
  workers: 1,
  sourceRows: 1,
  destinationRows: 0,
  histogramBuckets: 4,
  histogramPrecisionBits: 2,
  slotRows: 0,
  slotRowFields: 7,
};
const key = new Uint8Array(32).fill(7);
/** Slots 1,000 to 20,999. */
const schedule = buildSchedule(1000n, [{ key, slots: [0, 19_999] }]);
const second = 1_000_000_000n;

function snapshot(counts: Partial<VerdictCounts>, highestSlot = 0n): RelaySnapshot {
  const layout = layoutOf(shape);
  const words = new BigUint64Array(layout.words);
  verdictNames.forEach((name, i) => {
    words[layout.sources + i] = counts[name] ?? 0n;
  });
  const rows = { sources: [{ id: 0, name: "a", tier: "t", isForwarded: true }], destinations: [] };
  const decoded = decodeSnapshot(words, shape, rows, 0n);
  return {
    ...decoded,
    workers: decoded.workers.map((worker) => ({ ...worker, highest_slot: highestSlot })),
  };
}

describe("ScheduleCheck", () => {
  it("is silent while the schedule matches the traffic", () => {
    const watch = new ScheduleCheck(schedule);
    expect(watch.update(snapshot({}), 0n)).toEqual([]);
    expect(watch.update(snapshot({ first: 500n, unknown_leader: 500n }, 11_999n), 0n)).toEqual([]);
  });

  it("warns once a minute if most packets have unknown leaders", () => {
    const watch = new ScheduleCheck(schedule);
    const [text = ""] = watch.update(snapshot({ first: 10n, unknown_leader: 90n }), 0n);
    expect(text).toContain("90 of the last 100 packets");
    expect(text).toContain("slots 1000 to 20999");
    expect(watch.update(snapshot({ first: 10n, unknown_leader: 900n }), 59n * second)).toEqual([]);
    expect(
      watch.update(snapshot({ first: 10n, unknown_leader: 1900n }), 60n * second),
    ).toHaveLength(1);
  });

  it("counts since the last check, without packets of unknown sources", () => {
    const watch = new ScheduleCheck(schedule);
    watch.update(snapshot({ unknown_leader: 5000n }), 0n);
    expect(watch.update(snapshot({ unknown_leader: 5000n, first: 100n }), 99n * second)).toEqual(
      [],
    );
    const strangers = { unknown_source: 9000n, first: 110n, unknown_leader: 5100n };
    expect(watch.update(snapshot(strangers), 200n * second)).toHaveLength(1);
  });

  it("warns before the schedule ends, and after its end", () => {
    const watch = new ScheduleCheck(schedule);
    expect(watch.update(snapshot({}, 11_998n), 0n)).toEqual([]);
    expect(watch.update(snapshot({}, 12_000n), 0n)[0]).toContain("8999 slots are left");
    expect(watch.update(snapshot({}, 20_999n), 60n * second)[0]).toContain("it has ended");
    watch.replace(buildSchedule(1000n, [{ key, slots: [0, 99_999] }]));
    expect(watch.update(snapshot({}, 21_000n), 61n * second)).toEqual([]);
  });
});
