// Positions on charts, and the drawing of a timeline.

import { describe, expect, it } from "vitest";
import type { StatusEvent } from "../../../../src/platform/portal/page/call-readers.ts";
import { barsOf, extentOf } from "../../../../src/platform/portal/page/histogram.ts";
import {
  decadeTicks,
  linear,
  linePath,
  logarithmic,
  logExtent,
  logTicks,
} from "../../../../src/platform/portal/page/scale.ts";
import {
  displayText,
  drawingOf,
  outcomeOf,
} from "../../../../src/platform/portal/page/timeline.ts";

describe("scales", () => {
  it("map their domain to their range and clamp values outside", () => {
    const up = linear([10, 20], [0, 100]);
    expect([10, 15, 20, 0, 30].map(up)).toEqual([0, 50, 100, 0, 100]);
    const down = logarithmic([1, 100], [200, 0]);
    expect([1, 10, 100, 0, -3, 1000].map((value) => Math.round(down(value)))).toEqual([
      200, 100, 0, 200, 200, 0,
    ]);
  });

  it("map a domain of one value to the middle", () => {
    expect(linear([5, 5], [0, 100])(5)).toBe(50);
    expect(logarithmic([5, 5], [0, 100])(5)).toBe(50);
    expect(linear([0, 1], [0, 100])(Number.NaN)).toBe(0);
  });

  it("find round ends that enclose all values", () => {
    expect(logExtent([10_000, 9_000_000])).toEqual([10_000, 10_000_000]);
    expect(logExtent([10_081, 10_324])).toEqual([10_000, 20_000]);
    expect(logExtent([0, 0])).toEqual([1, 10]);
    expect(logExtent([1000, 1000])).toEqual([1000, 2000]);
    expect(logExtent([25_000])).toEqual([20_000, 50_000]);
    expect(decadeTicks([10, 10_000])).toEqual([10, 100, 1000, 10_000]);
  });

  it("have round labels inside their extent", () => {
    expect(logTicks([900, 60_000], 20)).toEqual([1000, 2000, 5000, 10_000, 20_000, 50_000]);
    expect(logTicks([900, 60_000], 3)).toEqual([1000, 10_000]);
    expect(logTicks([2500, 4000], 3)).toEqual([]);
  });

  it("interrupt the line at gaps", () => {
    expect(linePath([[0, 1], [2, 3], null, [4, 5]])).toBe("M0.0 1.0L2.0 3.0M4.0 5.0");
  });
});

describe("a histogram", () => {
  const buckets = [
    { upToNs: 100, count: 0 },
    { upToNs: 150, count: 10 },
    { upToNs: 200, count: 0 },
    { upToNs: 300, count: 30 },
    { upToNs: 400, count: 0 },
  ];

  it("is drawn from the first to the last bucket with a count", () => {
    const bars = barsOf({ buckets });
    expect(bars.map(({ fromNs, toNs }) => [fromNs, toNs])).toEqual([
      [100, 150],
      [150, 200],
      [200, 300],
    ]);
    expect(bars.map(({ share }) => share)).toEqual([0.25, 0, 0.75]);
    expect(bars.map(({ height }) => height)).toEqual([1 / 3, 0, 1]);
    expect(extentOf(bars)).toEqual([100, 300]);
  });

  it("is empty without counts and has a margin around a single bucket", () => {
    expect(barsOf({ buckets: [] })).toEqual([]);
    expect(barsOf({ buckets: [{ upToNs: 100, count: 0 }] })).toEqual([]);
    expect(extentOf([])).toBeNull();
    const single = barsOf({ buckets: [{ upToNs: 100, count: 3 }] });
    expect(single).toHaveLength(1);
    expect(extentOf(single)).toEqual([37.5, 200]);
  });
});

describe("a timeline", () => {
  const event = (kind: string, offsetMs: number, route: string | null = null): StatusEvent => ({
    kind,
    at: "2026-11-21T12:00:00.000Z",
    offsetMs,
    method: null,
    tipLamports: null,
    priorityFeeLamports: null,
    route,
    attempt: route === null ? null : 1,
    bytes: null,
    slot: null,
    leader: null,
    reason: null,
  });

  it("has a row for the gateway, for each route in order, and for the chain", () => {
    const { rows, ticks } = drawingOf([
      event("received", 0),
      event("queued", 0.2, "swqos"),
      event("queued", 0.3, "tpu"),
      event("sent", 0.4, "swqos"),
      event("seen", 400),
      event("landed", 1000),
    ]);
    expect(rows.map(({ name }) => name)).toEqual(["gateway", "swqos", "tpu", "chain"]);
    const places = rows.map(({ marks }) => marks.map(({ place }) => place));
    expect(places[0]).toEqual([0]);
    expect(places[3]?.[1]).toBe(1);
    expect(places.flat().every((place) => place >= 0 && place <= 1)).toBe(true);
    const [queued = 0, sent = 0] = places[1] ?? [];
    expect(queued).toBeGreaterThan(0);
    expect(sent).toBeGreaterThan(queued);
    expect(ticks.map(({ offsetMs }) => offsetMs)).toEqual([0.1, 1, 10, 100, 1000]);
  });

  it("has an axis even with a single event", () => {
    const { rows, ticks } = drawingOf([event("received", 0)]);
    expect(rows).toHaveLength(1);
    expect(ticks.map(({ offsetMs }) => offsetMs)).toEqual([0.1, 1]);
  });

  it("maps each outcome to its colour class", () => {
    expect(["landed", "landed_failed", "open", "expired"].map(outcomeOf)).toEqual([
      "good",
      "bad",
      "open",
      "neutral",
    ]);
    expect(displayText("landed_failed")).toBe("landed failed");
    expect(displayText("unproved")).toBe("unverified");
  });
});
