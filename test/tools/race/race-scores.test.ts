// Race scores against a naive model, for arbitrary arrivals.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RaceScores } from "../../../src/tools/race/race-scores.ts";
import type { ShredArrival } from "../../../src/tools/race/slot-arrivals.ts";
import { SlotCollector } from "../../../src/tools/race/slot-collector.ts";
import { type ReferenceShred, referenceFeeds, referencePercentile } from "./naive-scores.ts";

const feeds = 3;

const shredArbitrary = fc.record({
  set: fc.integer({ min: 0, max: 2 }),
  leaf: fc.integer({ min: 0, max: 63 }),
  times: fc.array(fc.option(fc.integer({ min: 0, max: 1500 }), { freq: 3 }), {
    minLength: feeds,
    maxLength: feeds,
  }),
});

function arrivalsOf(
  shreds: readonly { set: number; leaf: number; times: (number | null)[] }[],
): ShredArrival[] {
  return shreds.flatMap(({ set, leaf, times }) =>
    times.flatMap((timeNs, feed) =>
      timeNs === null
        ? []
        : [
            {
              feed,
              timeNs,
              slot: 40,
              fecSetIndex: set * 32,
              index: set * 32 + (leaf % 32),
              isCode: leaf >= 32,
              lastInSlot: false,
              signature: set,
            },
          ],
    ),
  );
}

function scored(arrivals: readonly ShredArrival[]): RaceScores {
  const scores = new RaceScores(feeds);
  const collector = new SlotCollector({
    feeds,
    settleNs: 1000,
    onSettled: (slot) => scores.add(slot),
  });
  for (const arrival of arrivals) collector.note({ ...arrival });
  collector.settle(1e9);
  return scores;
}

describe("RaceScores", () => {
  it("agrees with a naive model for any arrivals in any order", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(shredArbitrary, {
          selector: ({ set, leaf }) => set * 64 + leaf,
          minLength: 1,
          maxLength: 190,
        }),
        fc.infiniteStream(fc.nat()),
        (shreds, keys) => {
          const arrivals = arrivalsOf(shreds)
            .map((arrival) => ({ arrival, key: keys.next().value ?? 0 }))
            .toSorted((a, b) => a.key - b.key)
            .map(({ arrival }) => arrival);
          const scores = scored(arrivals);
          const model: ReferenceShred[] = shreds
            .filter(({ times }) => times.some((time) => time !== null))
            .map(({ set, leaf, times }) => ({ set, isData: leaf < 32, times }));
          expect(scores.distinct).toBe(model.length);
          for (const [number, expected] of referenceFeeds(feeds, model).entries()) {
            const feed = scores.feeds[number];
            expect({
              distinct: (feed?.data ?? 0) + (feed?.code ?? 0),
              wins: feed?.wins,
              ties: feed?.ties,
              solo: feed?.solo,
              sharedWins: feed?.sharedWins,
              setWins: feed?.fecSets.wins,
              lags: [0, 1, 5, 25, 50, 75, 95, 99, 100].map((p) => feed?.lag.percentile(p)),
              setLag: feed?.fecSets.lag.percentile(50),
            }).toEqual({
              distinct: expected.distinct,
              wins: expected.wins,
              ties: expected.ties,
              solo: expected.solo,
              sharedWins: expected.sharedWins,
              setWins: expected.setWins,
              lags: [0, 1, 5, 25, 50, 75, 95, 99, 100].map((p) =>
                referencePercentile(expected.lags, p),
              ),
              setLag: referencePercentile(expected.setLags, 50),
            });
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it("finds the runs of missed shreds", () => {
    const all = Array.from({ length: 64 }, (_, leaf) => ({ set: 0, leaf }));
    const scores = scored(
      arrivalsOf(
        all.map(({ set, leaf }) => ({
          set,
          leaf,
          times: [leaf, leaf >= 10 && leaf < 20 ? null : leaf + 1, leaf % 32 === 0 ? null : 5],
        })),
      ),
    );
    const [, second, third] = scores.feeds;
    expect([second?.missed.count, second?.missed.longest, second?.missed.inBursts]).toEqual([
      1, 10, 10,
    ]);
    expect([third?.missed.count, third?.missed.longest, third?.missed.inBursts]).toEqual([2, 1, 0]);
  });
});

describe("SlotCollector", () => {
  const arrival = (timeNs: number, index: number, feed = 0): ShredArrival => ({
    feed,
    timeNs,
    slot: 7,
    fecSetIndex: 0,
    index,
    isCode: false,
    lastInSlot: false,
    signature: 1,
  });

  it("waits the settling time after the last new shred and counts later ones as late", () => {
    const settled: number[] = [];
    const collector = new SlotCollector({
      feeds: 2,
      settleNs: 1000,
      onSettled: ({ slot }) => settled.push(slot),
    });
    collector.note(arrival(0, 0));
    collector.note(arrival(900, 1));
    collector.note(arrival(1500, 0, 1)); // known from the other feed, so not new
    collector.settle(1899);
    expect(settled).toEqual([]);
    collector.settle(1900);
    expect(settled).toEqual([7]);
    collector.note(arrival(1950, 1, 1));
    expect(collector.counts[1]).toMatchObject({ arrivals: 2, late: 1, repeats: 0 });
  });

  it("counts duplicates and other signatures by feed", () => {
    const collector = new SlotCollector({ feeds: 2, settleNs: 1000, onSettled: () => undefined });
    collector.note(arrival(0, 0));
    collector.note(arrival(1, 0));
    collector.note({ ...arrival(2, 1, 1), signature: 2 });
    expect(collector.counts[0]).toMatchObject({ arrivals: 2, repeats: 1, conflicting: 0 });
    expect(collector.counts[1]).toMatchObject({ arrivals: 1, repeats: 0, conflicting: 1 });
  });

  it("stays within its bounds if every shred is of another slot", () => {
    const collector = new SlotCollector({ feeds: 2, settleNs: 1000, onSettled: () => undefined });
    for (let slot = 0; slot < 3000; slot++) collector.note({ ...arrival(slot, 0), slot });
    expect(collector.open.length).toBe(1024);
    expect(collector.counts[0]?.beyond).toBe(3000 - 1024);
  });
});
