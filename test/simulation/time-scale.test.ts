import { describe, expect, it } from "vitest";
import { durationText, TimeScale } from "./time-scale.ts";

describe("a scale of time", () => {
  it("is even while something happens, and cuts gaps of more than 4 s short", () => {
    const scale = new TimeScale([8_000, 400, 3_000, 600_000, 5_000, 601_000], 16);
    expect(scale.xOf(0)).toBe(16);
    expect(scale.xOf(400)).toBe(116);
    expect(scale.xOf(8_000)).toBe(2_016);
    expect(scale.xOf(600_000)).toBe(2_086);
    expect(scale.xOf(601_000)).toBe(2_336);
    expect(scale.cuts).toEqual([{ x: 2_051, forMs: 592_000 }]);
    expect(scale.pieces.map(({ beginMs, endMs }) => [beginMs, endMs])).toEqual([
      [0, 8_000],
      [600_000, 601_000],
    ]);
  });

  it("keeps the order of all times", () => {
    const times = Array.from({ length: 500 }, (_, i) => (i * 7_919) % 60_000);
    const scale = new TimeScale(times, 0);
    const places = times.toSorted((a, b) => a - b).map((atMs) => scale.xOf(atMs));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  });

  it("states durations in seconds and minutes", () => {
    expect([4_200, 119_000, 120_000, 3_540_000].map(durationText)).toEqual([
      "4 s",
      "119 s",
      "2 min",
      "59 min",
    ]);
  });
});
