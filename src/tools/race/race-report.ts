// Race report: every number that `--json` prints and that screens and pictures show. Pure.
//
// Times are nanoseconds, negative if the feed was ahead. Shares are between 0 and 1. Missing
// values are null.

import type { LagHistogram } from "../../core/log-linear-histogram.ts";
import { type Interval, isOutside } from "../report/bootstrap.ts";
import { type Confidence, confidenceOf } from "./confidence.ts";
import type { FirstArrivalCounts } from "./feed-counters.ts";
import type { PairScore, SlotCoverageRow } from "./race-scores.ts";
import type { RaceSession } from "./race-session.ts";
import type { RegionLag } from "./trace-lags.ts";

/** Facts about a feed that its arrivals do not contain. */
export interface FeedFacts {
  readonly name: string;
  /** Address and sender, or the file. */
  readonly from: string;
  /** Datagrams of any kind. */
  readonly received: number;
  /** Datagrams that did not count as shreds, by reason. */
  readonly refused: Readonly<Record<string, number>>;
  /** Datagrams that the kernel dropped; null for captures. */
  readonly kernelDrops: number | null;
  /** Delays of block engines' trace packets, by region; empty for captures. */
  readonly traces: readonly RegionLag[];
}

/** The unit of comparison. */
export type RaceUnit = "shred" | "transaction";

/** A race of any unit. */
export type AnyRaceSession = Omit<RaceSession<never>, "note">;

export interface RaceFacts {
  readonly unit: RaceUnit;
  readonly feeds: readonly FeedFacts[];
  readonly seconds: number;
  readonly verified: boolean;
  readonly settleNs: number;
  /** Resolution of the clock that measured the times. */
  readonly resolutionNs: number;
  /** Shreds that were received but not recorded. */
  readonly lost: number;
  readonly notes: readonly string[];
}

export interface LagNumbers {
  readonly count: number;
  readonly min: number | null;
  readonly p1: number | null;
  readonly p5: number | null;
  readonly p25: number | null;
  readonly p50: number | null;
  readonly p75: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
  readonly max: number | null;
}

interface TraceReport {
  readonly region: string;
  /** One-way delay with the difference of both clocks. */
  readonly delayNs: LagNumbers;
}

export interface FeedReport extends Omit<FeedFacts, "traces"> {
  readonly traces: readonly TraceReport[];
  /** Accepted shreds of all slots; all other numbers cover the judged slots. */
  readonly shreds: number;
  readonly duplicates: number;
  readonly late: number;
  readonly conflicting: number;
  readonly beyond: number;
  readonly distinct: number;
  readonly coverage: number | null;
  readonly dataCoverage: number | null;
  readonly codeCoverage: number | null;
  readonly wins: number;
  readonly ties: number;
  /** Share of first arrivals among all shreds of any feed, with ties divided. */
  readonly winShare: number | null;
  readonly winShareInterval: Interval | null;
  /** The same among shreds that all feeds delivered. */
  readonly sharedWinShare: number | null;
  readonly solo: number;
  readonly soloShare: number | null;
  readonly lagNs: LagNumbers;
  readonly fecSets: FirstArrivalReport;
  readonly slots: FirstArrivalReport;
  readonly losses: {
    readonly missed: number;
    readonly bursts: number;
    readonly longest: number;
    readonly inLongBursts: number;
  };
}

/** Contest for the recovery of FEC sets, or of every set of a slot. */
interface FirstArrivalReport {
  readonly reached: number;
  readonly share: number | null;
  readonly wins: number;
  readonly winShare: number | null;
  readonly lagNs: LagNumbers;
}

export interface PairReport {
  readonly a: string;
  readonly b: string;
  readonly both: number;
  readonly aFirst: number;
  readonly bFirst: number;
  readonly ties: number;
  /** Share of `a`; a tie counts as half a win. */
  readonly winShare: number | null;
  readonly winShareInterval: Interval | null;
  /** Time by which `a` was earlier. */
  readonly advanceNs: LagNumbers;
  readonly medianInterval: Interval | null;
  /** Whether both intervals exclude chance; null with too few turns. */
  readonly significant: boolean | null;
}

export interface CdfPoint {
  readonly lagNs: number;
  /** Share of all shreds that the feed delivered within `lagNs` after the first feed. */
  readonly share: number;
}

/** In a race by transactions, the numbers of shreds are those of transactions, and there are no FEC sets. */
export interface RaceReport {
  readonly unit: RaceUnit;
  readonly seconds: number;
  readonly verified: boolean;
  readonly settleMs: number;
  readonly resolutionNs: number;
  readonly shreds: { readonly distinct: number; readonly data: number; readonly code: number };
  /** Shreds that all feeds delivered. */
  readonly shared: number;
  readonly fecSets: number;
  readonly slots: {
    readonly judged: number;
    readonly whole: number;
    readonly edge: number;
    readonly underWay: number;
  };
  readonly turns: number;
  readonly lost: number;
  readonly feeds: readonly FeedReport[];
  readonly pairs: readonly PairReport[];
  readonly notes: readonly string[];
}

/** Additional data of pictures; not part of `--json`. */
export interface RacePicture {
  readonly cdf: readonly (readonly CdfPoint[])[];
  readonly coverage: readonly SlotCoverageRow[];
}

function shareOf(part: number, context: number): number | null {
  return context === 0 ? null : part / context;
}

function lagNumbers(lag: LagHistogram): LagNumbers {
  return {
    count: lag.count,
    min: lag.percentile(0),
    p1: lag.percentile(1),
    p5: lag.percentile(5),
    p25: lag.percentile(25),
    p50: lag.percentile(50),
    p75: lag.percentile(75),
    p95: lag.percentile(95),
    p99: lag.percentile(99),
    max: lag.percentile(100),
  };
}

interface ReportContext {
  readonly session: AnyRaceSession;
  readonly facts: RaceFacts;
  readonly confidence: Confidence;
}

function feedReport(number: number, feed: FeedFacts, context: ReportContext): FeedReport {
  const { session, confidence } = context;
  const { scores, collector } = session;
  const own = scores.feeds[number];
  const counts = collector.counts[number];
  if (!own || !counts)
    throw new RangeError(`unknown feed number ${number}; expected a feed of the race`);
  const distinct = own.data + own.code;
  return {
    ...feed,
    traces: feed.traces.map(({ region, lag }) => ({ region, delayNs: lagNumbers(lag) })),
    shreds: counts.arrivals,
    duplicates: counts.repeats,
    late: counts.late,
    conflicting: counts.conflicting,
    beyond: counts.beyond,
    distinct,
    coverage: shareOf(distinct, scores.distinct),
    dataCoverage: shareOf(own.data, scores.distinctData),
    codeCoverage: shareOf(own.code, scores.distinctCode),
    wins: own.wins,
    ties: own.ties,
    winShare: shareOf(own.winSum, scores.distinct),
    winShareInterval: confidence.winShares?.[number] ?? null,
    sharedWinShare: shareOf(own.sharedWins + own.sharedTies / 2, scores.shared),
    solo: own.solo,
    soloShare: shareOf(own.solo, scores.distinct),
    lagNs: lagNumbers(own.lag),
    fecSets: firstArrivalReport(own.fecSets, scores.sets),
    slots: firstArrivalReport(own.slots, scores.wholeSlots),
    losses: {
      missed: scores.distinct - distinct,
      bursts: own.missed.count,
      longest: own.missed.longest,
      inLongBursts: own.missed.inBursts,
    },
  };
}

function firstArrivalReport(
  { reached, wins, lag }: FirstArrivalCounts,
  all: number,
): FirstArrivalReport {
  return {
    reached,
    share: shareOf(reached, all),
    wins,
    winShare: shareOf(wins, all),
    lagNs: lagNumbers(lag),
  };
}

function pairReport(
  number: number,
  pair: PairScore,
  { facts, confidence }: ReportContext,
): PairReport {
  const both = pair.aFirst + pair.bFirst + pair.ties;
  const intervals = confidence.pairs?.[number] ?? null;
  return {
    a: facts.feeds[pair.a]?.name ?? "",
    b: facts.feeds[pair.b]?.name ?? "",
    both,
    aFirst: pair.aFirst,
    bFirst: pair.bFirst,
    ties: pair.ties,
    winShare: shareOf(pair.aFirst + pair.ties / 2, both),
    winShareInterval: intervals?.winShare ?? null,
    advanceNs: lagNumbers(pair.advance),
    medianInterval: intervals?.medianNs ?? null,
    significant:
      intervals && isOutside(intervals.winShare, 0.5) && isOutside(intervals.medianNs, 0)
        ? true
        : intervals && false,
  };
}

/** `withIntervals` costs up to some hundred milliseconds, too much for a live screen. */
export function raceReport(
  session: AnyRaceSession,
  facts: RaceFacts,
  withIntervals: boolean,
): RaceReport {
  const { scores } = session;
  const groups = scores.groups.all();
  const none = { groups: groups.length, winShares: null, pairs: null };
  const context = { session, facts, confidence: withIntervals ? confidenceOf(groups) : none };
  return {
    unit: facts.unit,
    seconds: facts.seconds,
    verified: facts.verified,
    settleMs: facts.settleNs / 1e6,
    resolutionNs: facts.resolutionNs,
    shreds: { distinct: scores.distinct, data: scores.distinctData, code: scores.distinctCode },
    shared: scores.shared,
    fecSets: scores.sets,
    slots: {
      judged: scores.slots,
      whole: scores.wholeSlots,
      edge: session.edgeSlots,
      underWay: session.collector.open.length,
    },
    turns: context.confidence.groups,
    lost: facts.lost,
    feeds: facts.feeds.map((feed, number) => feedReport(number, feed, context)),
    pairs: scores.pairs.map((pair, number) => pairReport(number, pair, context)),
    notes: [...lateStartNotes(session, facts), ...facts.notes],
  };
}

function lateStartNotes({ lateStarts }: AnyRaceSession, { feeds }: RaceFacts): string[] {
  return lateStarts.map(({ feed, firstNs }) => {
    const name = feeds[feed]?.name ?? "";
    return `${name} started after ${(firstNs / 1e9).toFixed(1)} s; the comparison begins there.`;
  });
}

/** Lags at which the distribution is drawn: 10 µs to 1 s, logarithmically spaced. */
const cdfLagsNs: readonly number[] = [
  0,
  ...Array.from({ length: 121 }, (_, i) => 1e4 * 10 ** (i / 24)),
];

export function racePicture({ scores }: AnyRaceSession): RacePicture {
  const cdf = scores.feeds.map((feed) =>
    cdfLagsNs.map((lagNs) => ({
      lagNs,
      share:
        scores.distinct === 0 ? 0 : (feed.lag.countAtMost(lagNs) + feed.solo) / scores.distinct,
    })),
  );
  return { cdf, coverage: scores.coverage };
}
