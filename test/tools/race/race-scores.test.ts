// The numbers of a race against a naive model, on arrivals of any kind.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RaceScores } from "../../../src/tools/race/race-scores.ts";
import type { ShredArrival } from "../../../src/tools/race/slot-arrivals.ts";
import { SlotCollector } from "../../../src/tools/race/slot-collector.ts";
import { type NaiveShred, naiveFeeds, naivePercentile } from "./naive.ts";

const feeds = 3;

const shredArbitrary = fc.record({
  set: fc.integer({ min: 0, max: 2 }),
  leaf: fc.integer({ min: 0, max: 63 }),
  times: fc.array(fc.option(fc.integer({ min: 0, max: 1500 }), { freq: 3 }), {
    minLength: feeds,
    maxLength: feeds,
  }),
});

function sightsOf(
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

function tallied(sights: readonly ShredArrival[]): RaceScores {
  const tally = new RaceScores(feeds);
  const book = new SlotCollector({ feeds, settleNs: 1000, onSettled: (slot) => tally.add(slot) });
  for (const sight of sights) book.note({ ...sight });
  book.settle(1e9);
  return tally;
}

describe("Tally", () => {
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
          const sights = sightsOf(shreds)
            .map((sight) => ({ sight, key: keys.next().value ?? 0 }))
            .toSorted((a, b) => a.key - b.key)
            .map(({ sight }) => sight);
          const tally = tallied(sights);
          const model: NaiveShred[] = shreds
            .filter(({ times }) => times.some((time) => time !== null))
            .map(({ set, leaf, times }) => ({ set, isData: leaf < 32, times }));
          expect(tally.distinct).toBe(model.length);
          for (const [number, expected] of naiveFeeds(feeds, model).entries()) {
            const feed = tally.feeds[number];
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
                naivePercentile(expected.lags, p),
              ),
              setLag: naivePercentile(expected.setLags, 50),
            });
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it("finds the runs of shreds that a feed missed", () => {
    const all = Array.from({ length: 64 }, (_, leaf) => ({ set: 0, leaf }));
    const tally = tallied(
      sightsOf(
        all.map(({ set, leaf }) => ({
          set,
          leaf,
          times: [leaf, leaf >= 10 && leaf < 20 ? null : leaf + 1, leaf % 32 === 0 ? null : 5],
        })),
      ),
    );
    const [, second, third] = tally.feeds;
    expect([second?.missed.count, second?.missed.longest, second?.missed.inBursts]).toEqual([
      1, 10, 10,
    ]);
    expect([third?.missed.count, third?.missed.longest, third?.missed.inBursts]).toEqual([2, 1, 0]);
  });
});

describe("SlotCollector", () => {
  const sight = (timeNs: number, index: number, feed = 0): ShredArrival => ({
    feed,
    timeNs,
    slot: 7,
    fecSetIndex: 0,
    index,
    isCode: false,
    lastInSlot: false,
    signature: 1,
  });

  it("waits the settling time after the last new shred, and counts later arrivals as late", () => {
    const settled: number[] = [];
    const book = new SlotCollector({
      feeds: 2,
      settleNs: 1000,
      onSettled: ({ slot }) => settled.push(slot),
    });
    book.note(sight(0, 0));
    book.note(sight(900, 1));
    book.note(sight(1500, 0, 1)); // known from the other feed: nothing new
    book.settle(1899);
    expect(settled).toEqual([]);
    book.settle(1900);
    expect(settled).toEqual([7]);
    book.note(sight(1950, 1, 1));
    expect(book.counts[1]).toMatchObject({ arrivals: 2, late: 1, again: 0 });
  });

  it("counts duplicates and other signatures by feed", () => {
    const book = new SlotCollector({ feeds: 2, settleNs: 1000, onSettled: () => undefined });
    book.note(sight(0, 0));
    book.note(sight(1, 0));
    book.note({ ...sight(2, 1, 1), signature: 2 });
    expect(book.counts[0]).toMatchObject({ arrivals: 2, again: 1, conflicting: 0 });
    expect(book.counts[1]).toMatchObject({ arrivals: 1, again: 0, conflicting: 1 });
  });

  it("stays within its bounds if every shred is of another slot", () => {
    const book = new SlotCollector({ feeds: 2, settleNs: 1000, onSettled: () => undefined });
    for (let slot = 0; slot < 3000; slot++) book.note({ ...sight(slot, 0), slot });
    expect(book.open.length).toBe(1024);
    expect(book.counts[0]?.beyond).toBe(3000 - 1024);
  });
});
