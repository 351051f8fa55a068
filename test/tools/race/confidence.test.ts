// Intervals and verdicts: report real differences, no chance differences, and too few turns.

import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { confidenceOf } from "../../../src/tools/race/confidence.ts";
import { racePage } from "../../../src/tools/race/race-page.ts";
import { raceSvg } from "../../../src/tools/race/race-picture.ts";
import { type RaceReport, racePicture, raceReport } from "../../../src/tools/race/race-report.ts";
import { RaceSession } from "../../../src/tools/race/race-session.ts";
import type { ShredArrival } from "../../../src/tools/race/slot-arrivals.ts";
import { SlotCollector } from "../../../src/tools/race/slot-collector.ts";
import { pairOf, verdictOf } from "../../../src/tools/race/verdict.ts";

/**
 * Slots of 64 shreds; in each turn of four, the second feed is later by that turn's `shiftNs` on
 * average.
 */
function raceOf(
  slots: number,
  shiftOf: (turn: number, random: SeededRandom) => number,
  shreds = 64,
): RaceSession<ShredArrival> {
  const session = new RaceSession<ShredArrival>(
    { feeds: 2, settleNs: 1e8, graceNs: 1e9 },
    (options) => new SlotCollector(options),
  );
  const random = new SeededRandom(5);
  let shift = 0;
  for (let slot = 0; slot < slots; slot++) {
    if (slot % 4 === 0) shift = shiftOf(slot / 4, random);
    for (let leaf = 0; leaf < shreds; leaf++) {
      const at = slot * 4e8 + leaf * 1e5;
      const arrival = {
        slot: 1000 + slot,
        fecSetIndex: 0,
        index: leaf % 32,
        isCode: leaf >= 32,
        lastInSlot: leaf === 31,
        signature: slot,
      };
      session.note({ ...arrival, feed: 0, timeNs: at + random.below(100_000) });
      session.note({ ...arrival, feed: 1, timeNs: at + shift + random.below(100_000) });
    }
    session.advance(slot * 4e8);
  }
  session.finish(slots * 4e8 + 1e9);
  return session;
}

function reportOf(session: RaceSession<ShredArrival>, names = ["a", "b"]): RaceReport {
  const feed = { from: "", received: 1, refused: {}, kernelDrops: 0, traces: [] };
  return raceReport(
    session,
    {
      feeds: names.map((name) => ({ ...feed, name })),
      unit: "shred",
      seconds: 1,
      verified: true,
      settleNs: 1e8,
      resolutionNs: 1,
      lost: 0,
      notes: [],
    },
    true,
  );
}

describe("confidence", () => {
  it("reports a real difference, with the true value inside the interval", () => {
    const report = reportOf(raceOf(160, () => 50_000));
    const pair = pairOf(report, "a", "b");
    expect(pair?.significant).toBe(true);
    expect(pair?.medianInterval?.low).toBeLessThanOrEqual(52_000);
    expect(pair?.medianInterval?.high).toBeGreaterThanOrEqual(48_000);
    expect(pair?.medianInterval?.low).toBeGreaterThan(40_000);
    expect(verdictOf(report)[1]).toMatch(
      /^Of the 10,\d+ shreds that both delivered, a was first for 8\d\.\d %, ahead of b by (4|5)\d\.\d µs in the median \(.*\)\.$/,
    );
    expect(pairOf(report, "b", "a")?.advanceNs.p50).toBe(-(pair?.advanceNs.p50 ?? 0));
  });

  it("does not report a difference between turns as one between feeds", () => {
    const report = reportOf(raceOf(160, (_, random) => (random.below(2) === 0 ? 60_000 : -60_000)));
    expect(pairOf(report, "a", "b")?.significant).toBe(false);
    expect(verdictOf(report).join("\n")).toContain("no difference beyond chance");
  });

  it("reports that a race was too short", () => {
    const report = reportOf(raceOf(20, () => 50_000));
    expect(report.turns).toBeLessThan(8);
    expect(pairOf(report, "a", "b")?.significant).toBe(null);
    expect(verdictOf(report).join("\n")).toContain("the race is too short to exclude chance");
  });

  it("stays bounded and equally correct with many turns", () => {
    const session = raceOf(4 * 530, () => 50_000, 16);
    const groups = session.scores.groups.all();
    expect(groups.length).toBeLessThan(520);
    const confidence = confidenceOf(groups);
    const median = confidence.pairs?.[0]?.medianNs;
    expect(median?.low).toBeGreaterThan(45_000);
    expect(median?.high).toBeLessThan(55_000);
    expect(groups.reduce((total, { distinct }) => total + distinct, 0)).toBe(
      session.scores.distinct,
    );
  });
});

describe("a race session", () => {
  it("excludes slots that not every feed could receive completely", () => {
    const session = raceOf(50, () => 1000);
    // Slot 1000 was in progress when the feeds started; the race waited for the end.
    expect([session.scores.slots, session.edgeSlots]).toEqual([49, 1]);
  });
});

describe("pictures", () => {
  it("are self-contained and escape all names", () => {
    const session = raceOf(60, () => 50_000);
    const report = reportOf(session, ['<script>alert("a")</script>', "b&c"]);
    const svg = raceSvg(report, racePicture(session));
    const page = racePage(report, racePicture(session), verdictOf(report));
    for (const text of [svg, page]) {
      expect(text).not.toContain("<script");
      expect(text).toContain("b&amp;c");
      expect(text).not.toMatch(/NaN|undefined|Infinity|(href|src)=/);
    }
    expect(svg.match(/<path /g)?.length).toBe(2);
  });
});
