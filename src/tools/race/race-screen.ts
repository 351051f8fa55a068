// Terminal output of `race`: a compact live screen, and the summary at the end. Pure.

import { formatLag } from "../report/number-text.ts";
import {
  formatClock,
  formatCount,
  formatShare,
  type Paint,
  table,
} from "../terminal/formatting.ts";
import type { FeedReport, LagNumbers, RacePicture, RaceReport } from "./race-report.ts";
import { pairOf } from "./verdict.ts";

const bars = " ▁▂▃▄▅▆▇█";
const curveColumns = 50;
/** Decades of lag on the curve's axis: 10 µs to 1 s. */
const curveDecades = 5;

export const traceTitle =
  "one-way delay of trace packets by region, with the difference of both clocks";

function share(value: number | null): string {
  return value === null ? "-" : formatShare(value);
}

function lag(ns: number | null): string {
  return ns === null ? "-" : `${ns > 0 ? "+" : ""}${formatLag(ns)}`;
}

function refusedText({ refused }: FeedReport): string {
  return Object.entries(refused)
    .map(([name, count]) => `${name} ${formatCount(count)}`)
    .join(", ");
}

function drops({ kernelDrops }: FeedReport): string {
  return kernelDrops === null ? "-" : formatCount(kernelDrops);
}

function head(report: RaceReport, paint: Paint): string {
  const { unit, slots, shreds, verified } = report;
  const state = verified ? paint.good("VERIFIED") : paint.note("NOT VERIFIED");
  return `${paint.bold("race")}  ${formatClock(report.seconds)}  ${state}  judged ${formatCount(shreds.distinct)} ${unit}s in ${slots.judged} slots; ${slots.underWay} slots in progress, ${slots.edge} excluded`;
}

function feedTable(report: RaceReport, paint: Paint): string[] {
  const rows = report.feeds.map((feed) => [
    feed.name,
    formatCount(feed.received),
    share(feed.coverage),
    share(feed.winShare),
    share(feed.soloShare),
    lag(feed.lagNs.p5),
    lag(feed.lagNs.p50),
    lag(feed.lagNs.p95),
    ...(report.unit === "shred" ? [share(feed.fecSets.winShare)] : []),
    drops(feed),
    refusedText(feed),
  ]);
  const [title = "", ...lines] = table(
    [
      { title: "FEED", width: 8 },
      { title: "RECEIVED", right: true, width: 10 },
      { title: "COVERAGE", right: true },
      { title: "FIRST", right: true, width: 6 },
      { title: "ALONE", right: true, width: 6 },
      { title: "LAG p5", right: true, width: 8 },
      { title: "p50", right: true, width: 8 },
      { title: "p95", right: true, width: 8 },
      ...(report.unit === "shred" ? [{ title: "SETS FIRST", right: true }] : []),
      { title: "DROPPED", right: true },
      { title: "REFUSED" },
    ],
    rows,
  );
  return [paint.bold(title), ...lines];
}

/**
 * Draws each feed's share of delivered shreds by time since the first arrival, one line of blocks
 * per feed.
 */
function curves(report: RaceReport, { cdf }: RacePicture, paint: Paint): string[] {
  const width = Math.max(...report.feeds.map(({ name }) => name.length));
  const lines = report.feeds.map(({ name }, feed) => {
    const points = cdf[feed] ?? [];
    const cells = Array.from({ length: curveColumns }, (_, column) => {
      const at = 1e4 * 10 ** ((column / (curveColumns - 1)) * curveDecades);
      const point = points.findLast(({ lagNs }) => lagNs <= at * 1.0001);
      return bars[Math.floor((point?.share ?? 0) * (bars.length - 1))] ?? " ";
    });
    return `${name.padEnd(width)}  ${cells.join("")}`;
  });
  const step = Math.floor((curveColumns - 1) / curveDecades);
  const ticks = ["10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s"];
  const axis = ticks.map((tick) => tick.padEnd(step)).join("");
  return [
    paint.dim(
      `share of all ${report.unit}s that a feed delivered, by the time since the first feed`,
    ),
    ...lines,
    paint.dim(`${" ".repeat(width + 2)}${axis}`.trimEnd()),
  ];
}

export function raceLines(report: RaceReport, picture: RacePicture, paint: Paint): string[] {
  const silent = report.feeds.filter(({ received }) => received === 0).map(({ name }) => name);
  const waiting = silent.length > 0 ? [paint.note(`waiting for ${silent.join(", ")}`)] : [];
  const traces = traceTable(report);
  return [
    head(report, paint),
    ...waiting,
    "",
    ...feedTable(report, paint),
    "",
    ...(report.shreds.distinct > 0 ? curves(report, picture, paint) : []),
    "",
    ...(traces.length > 0 ? [paint.dim(traceTitle), ...traces, ""] : []),
    paint.dim(
      `lag: relative to the best other feed, below 0 is ahead; a slot is judged after ${report.settleMs} ms without new ${report.unit}s. Press Ctrl-C to stop.`,
    ),
  ];
}

function lagTable(report: RaceReport, of: (feed: FeedReport) => LagNumbers): string[] {
  const rows = report.feeds.map((feed) => {
    const { count, min, p1, p5, p25, p50, p75, p95, p99, max } = of(feed);
    return [
      feed.name,
      formatCount(count),
      ...[min, p1, p5, p25, p50, p75, p95, p99, max].map((ns) => lag(ns)),
    ];
  });
  const titles = ["COUNT", "min", "p1", "p5", "p25", "p50", "p75", "p95", "p99", "max"];
  return table(
    [{ title: "FEED", width: 8 }, ...titles.map((title) => ({ title, right: true }))],
    rows,
  );
}

function completenessTable(report: RaceReport): string[] {
  const isByShreds = report.unit === "shred";
  const ofShreds = <T>(cells: readonly T[]): readonly T[] => (isByShreds ? cells : []);
  const rows = report.feeds.map((feed) => [
    feed.name,
    share(feed.coverage),
    ...ofShreds([share(feed.dataCoverage), share(feed.codeCoverage)]),
    formatCount(feed.losses.missed),
    formatCount(feed.losses.bursts),
    formatCount(feed.losses.longest),
    ...ofShreds([
      share(feed.fecSets.share),
      share(feed.fecSets.winShare),
      share(feed.slots.share),
      share(feed.slots.winShare),
    ]),
  ]);
  const right = true;
  return table(
    [
      { title: "FEED", width: 8 },
      { title: "COVERAGE", right },
      ...ofShreds([
        { title: "DATA", right },
        { title: "CODE", right },
      ]),
      { title: "MISSED", right },
      { title: "IN RUNS", right },
      { title: "LONGEST", right },
      ...ofShreds([
        { title: "SETS READY", right },
        { title: "FIRST", right },
        { title: "SLOTS READY", right },
        { title: "FIRST", right },
      ]),
    ],
    rows,
  );
}

function countTable(report: RaceReport): string[] {
  const rows = report.feeds.map((feed) => [
    feed.name,
    formatCount(feed.received),
    formatCount(feed.shreds),
    formatCount(feed.duplicates),
    formatCount(feed.late),
    formatCount(feed.conflicting),
    drops(feed),
    formatCount(Object.values(feed.refused).reduce((total, count) => total + count, 0)),
    refusedText(feed),
  ]);
  const right = true;
  return table(
    [
      { title: "FEED", width: 8 },
      { title: "RECEIVED", right },
      { title: report.unit === "shred" ? "SHREDS" : "TRANSACTIONS", right },
      { title: "DUPLICATES", right },
      { title: "LATE", right },
      { title: "CONFLICTING", right },
      { title: "DROPPED", right },
      { title: "REFUSED", right },
      { title: "REASONS" },
    ],
    rows,
  );
}

/** Empty without trace packets. */
function traceTable({ feeds }: RaceReport): string[] {
  const rows = feeds.flatMap(({ name, traces }) =>
    traces.map(({ region, delayNs: { count, min, p50, p95, p99, max } }) => [
      name,
      region,
      formatCount(count),
      ...[min, p50, p95, p99, max].map((ns) => (ns === null ? "-" : formatLag(ns))),
    ]),
  );
  const titles = ["PACKETS", "min", "p50", "p95", "p99", "max"];
  return rows.length === 0
    ? []
    : table(
        [
          { title: "FEED", width: 8 },
          { title: "REGION" },
          ...titles.map((title) => ({ title, right: true })),
        ],
        rows,
      );
}

function winTable(report: RaceReport): string[] {
  const rows = report.feeds.map((feed) => [
    feed.name,
    formatCount(feed.wins),
    formatCount(feed.ties),
    share(feed.winShare),
    feed.winShareInterval
      ? `${share(feed.winShareInterval.low)} to ${share(feed.winShareInterval.high)}`
      : "too short",
    share(feed.sharedWinShare),
    formatCount(feed.solo),
    share(feed.soloShare),
  ]);
  const right = true;
  return table(
    [
      { title: "FEED", width: 8 },
      { title: "FIRST", right },
      { title: "TIED", right },
      { title: "SHARE", right },
      { title: "95 % INTERVAL", right },
      { title: `OF COMMON ${report.unit === "shred" ? "SHREDS" : "TRANSACTIONS"}`, right },
      { title: "ALONE", right },
      { title: "SHARE", right },
    ],
    rows,
  );
}

/** Each cell has the row's median advance over the column, and its share of first arrivals. */
function matrix(report: RaceReport): string[] {
  const names = report.feeds.map(({ name }) => name);
  const rows = names.map((of) => [
    of,
    ...names.map((against) => {
      const pair = pairOf(report, of, against);
      if (!pair || pair.both === 0) return "-";
      return `${lag(pair.advanceNs.p50)} ${share(pair.winShare)}`;
    }),
  ]);
  return table(
    [{ title: "AHEAD OF", width: 8 }, ...names.map((title) => ({ title, right: true }))],
    rows,
  );
}

/** `verdict` has the sentences of verdict.ts. */
export function raceSummary(
  report: RaceReport,
  verdict: readonly string[],
  paint: Paint,
): string[] {
  const part = (title: string, lines: readonly string[]) => ["", paint.bold(title), ...lines];
  const isJudged = report.shreds.distinct > 0;
  const traces = traceTable(report);
  const setParts = [
    ...part(
      "lag of FEC sets until recovery was possible",
      lagTable(report, ({ fecSets }) => fecSets.lagNs),
    ),
    ...part(
      "lag of slots until recovery of every FEC set was possible",
      lagTable(report, ({ slots }) => slots.lagNs),
    ),
  ];
  const judged = [
    ...part("first arrivals", winTable(report)),
    ...part(
      `lag of ${report.unit}s relative to the best other feed (below 0: ahead)`,
      lagTable(report, ({ lagNs }) => lagNs),
    ),
    ...(report.unit === "shred" ? setParts : []),
    ...part("completeness", completenessTable(report)),
    ...part(
      `pairs: median advance of the row over the column, share of ${report.unit}s that the row delivered first`,
      matrix(report),
    ),
  ];
  return [
    head(report, paint),
    ...(isJudged ? judged : []),
    ...part(report.unit === "shred" ? "received packets" : "received", countTable(report)),
    ...(traces.length > 0 ? part(traceTitle, traces) : []),
    ...part(
      "verdict",
      verdict.map((sentence) => `  ${sentence}`),
    ),
  ];
}
