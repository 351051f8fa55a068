// Verdict of a race in sentences that claim no more than the numbers show. Pure.

import { counted } from "../../core/counted.ts";
import { formatLag, grouped, percent } from "../report/number-text.ts";
import { challengeReason } from "./challenge-counts.ts";
import type { FeedReport, PairReport, RaceReport, RaceUnit } from "./race-report.ts";

function byWins({ feeds }: RaceReport): FeedReport[] {
  return feeds.toSorted((a, b) => (b.winShare ?? 0) - (a.winShare ?? 0));
}

/** Returns the pair from the perspective of one of its feeds, as `a`. */
function fromPerspective(pair: PairReport, name: string): PairReport {
  if (pair.a === name) return pair;
  const { winShareInterval, medianInterval, advanceNs } = pair;
  const flip = (ns: number | null) => (ns === null ? null : ns === 0 ? 0 : -ns);
  return {
    ...pair,
    a: pair.b,
    b: pair.a,
    aFirst: pair.bFirst,
    bFirst: pair.aFirst,
    winShare: pair.winShare === null ? null : 1 - pair.winShare,
    winShareInterval: winShareInterval && {
      low: 1 - winShareInterval.high,
      high: 1 - winShareInterval.low,
    },
    medianInterval: medianInterval && {
      low: flip(medianInterval.high) ?? 0,
      high: flip(medianInterval.low) ?? 0,
    },
    advanceNs: {
      count: advanceNs.count,
      min: flip(advanceNs.max),
      p1: flip(advanceNs.p99),
      p5: flip(advanceNs.p95),
      p25: flip(advanceNs.p75),
      p50: flip(advanceNs.p50),
      p75: flip(advanceNs.p25),
      p95: flip(advanceNs.p5),
      p99: flip(advanceNs.p1),
      max: flip(advanceNs.min),
    },
  };
}

/** Returns the pair from the perspective of `of`; undefined if it does not exist. */
export function pairOf(report: RaceReport, of: string, against: string): PairReport | undefined {
  const pair = report.pairs.find(
    ({ a, b }) => (a === of && b === against) || (a === against && b === of),
  );
  return pair && fromPerspective(pair, of);
}

function pairSentence(pair: PairReport, unit: RaceUnit): string {
  if (pair.both === 0) return `${pair.a} and ${pair.b} have no ${unit}s in common.`;
  const median = pair.advanceNs.p50 ?? 0;
  const { medianInterval: between } = pair;
  const range = between ? ` (${formatLag(between.low)} to ${formatLag(between.high)})` : "";
  const side = median === 0 ? "equal to" : median > 0 ? "ahead of" : "behind";
  const by = median === 0 ? "" : ` by ${formatLag(Math.abs(median))}`;
  const middle = `Of the ${grouped(pair.both)} ${unit}s that both delivered, ${pair.a} was first for ${percent(pair.winShare ?? 0)}, ${side} ${pair.b}${by} in the median`;
  if (pair.significant === null) return `${middle}; the race is too short to exclude chance.`;
  return pair.significant
    ? `${middle}${range}.`
    : `${middle}${range}: no difference beyond chance.`;
}

function withoutShreds({ name, refused }: FeedReport, unit: RaceUnit): string {
  const challenges = refused[challengeReason] ?? 0;
  return challenges === 0
    ? `${name} delivered no valid ${unit}s; see REFUSED.`
    : `${name} received ${counted(challenges, "ownership challenge")} and no ${unit}s: the destination is not verified or is paused. Run shredway race or shredway listen with --prove, which answers challenges, until its shreds arrive.`;
}

function warnings(report: RaceReport): string[] {
  const { unit } = report;
  const silent = report.feeds.filter(({ received }) => received === 0).map(({ name }) => name);
  const withoutValidShreds = report.feeds
    .filter(({ received, shreds }) => received > 0 && shreds === 0)
    .map((feed) => withoutShreds(feed, unit));
  const dropped = report.feeds.filter(({ kernelDrops }) => (kernelDrops ?? 0) > 0);
  const late = report.feeds.filter((feed) => feed.late > lateShareMax * feed.shreds);
  return [
    ...silent.map((name) => `${name} delivered ${unit === "shred" ? "no packets" : "nothing"}.`),
    ...withoutValidShreds,
    ...dropped.map(
      ({ name, kernelDrops }) =>
        `THIS MACHINE LOST ${grouped(kernelDrops ?? 0)} packets of ${name}. The race is unfair to it; use a larger receive buffer (--buffer-mb).`,
    ),
    ...late.map(
      ({ name, late: count, shreds }) =>
        `${percent(count / shreds)} of the ${unit}s of ${name} arrived after their slots were judged; use --settle with more than ${report.settleMs} ms.`,
    ),
    ...(report.lost > 0
      ? [
          `THIS MACHINE LOST ${grouped(report.lost)} ${unit}s because it was too slow to record them.`,
        ]
      : []),
    ...(report.verified
      ? []
      : [
          unit === "transaction"
            ? "NOT VERIFIED: no leader signs what a stream sends; it may have won with forgeries."
            : "NOT VERIFIED: no leader schedule; a feed may have won with forgeries (--leaders FILE).",
        ]),
  ];
}

/** If a feed's share of late shreds is above this, the settling time was too short for it. */
const lateShareMax = 0.001;

/** Returns one sentence per line; the first one is the result. */
export function verdictOf(report: RaceReport): string[] {
  const [winner, ...others] = byWins(report);
  if (!winner || report.shreds.distinct === 0) {
    const why =
      report.slots.edge > 0
        ? `every slot is excluded (${report.slots.edge}); run the race longer`
        : `no ${report.unit}s received`;
    return [`No result: ${why}.`, ...warnings(report), ...report.notes];
  }
  const between = winner.winShareInterval;
  const range = between ? ` (${percent(between.low)} to ${percent(between.high)})` : "";
  const first = `${winner.name} was first for ${percent(winner.winShare ?? 0)}${range} of ${grouped(report.shreds.distinct)} ${report.unit}s in ${report.slots.judged} slots.`;
  const pairs = others.flatMap(({ name }) => pairOf(report, winner.name, name) ?? []);
  const alone = report.feeds
    .filter(({ solo }) => solo > 0)
    .map(({ name, soloShare }) => `${name} alone delivered ${percent(soloShare ?? 0, 2)}.`);
  return [
    first,
    ...pairs.map((pair) => pairSentence(pair, report.unit)),
    ...alone,
    ...warnings(report),
    ...report.notes,
  ];
}
