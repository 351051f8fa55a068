// HTML page of a race: verdict, picture and tables in one self-contained file without scripts.
// Pure.

import { formatLag, percent } from "../report/number-text.ts";
import { reportPage, section } from "../report/page.ts";
import { raceSvg } from "./race-picture.ts";
import type { FeedReport, LagNumbers, RacePicture, RaceReport } from "./race-report.ts";
import { traceTitle } from "./race-screen.ts";
import { pairOf } from "./verdict.ts";

function lag(ns: number | null): string {
  return ns === null ? "-" : formatLag(ns);
}

function count(value: number | null): string {
  return value === null ? "-" : value.toLocaleString("en-US");
}

function lagSection(
  title: string,
  report: RaceReport,
  of: (feed: FeedReport) => LagNumbers,
): string {
  const rows = report.feeds.map((feed) => {
    const { count: number, min, p1, p5, p25, p50, p75, p95, p99, max } = of(feed);
    return [feed.name, count(number), ...[min, p1, p5, p25, p50, p75, p95, p99, max].map(lag)];
  });
  const heads = ["feed", "count", "min", "p1", "p5", "p25", "p50", "p75", "p95", "p99", "max"];
  return section(title, heads, rows);
}

function pairSection(report: RaceReport): string {
  const names = report.feeds.map(({ name }) => name);
  const rows = names.map((of) => [
    of,
    ...names.map((against) => {
      const pair = pairOf(report, of, against);
      return pair && pair.both > 0
        ? `${lag(pair.advanceNs.p50)}, ${percent(pair.winShare, 2)}`
        : "-";
    }),
  ]);
  return section(
    `Pairs: median advance of the row over the column, share of ${report.unit}s that the row delivered first`,
    ["ahead of", ...names],
    rows,
  );
}

function firstArrivalsSection({ unit, feeds }: RaceReport): string {
  const rows = feeds.map((feed) => [
    feed.name,
    count(feed.wins),
    count(feed.ties),
    percent(feed.winShare, 2),
    feed.winShareInterval
      ? `${percent(feed.winShareInterval.low, 2)} to ${percent(feed.winShareInterval.high, 2)}`
      : "too short",
    percent(feed.sharedWinShare, 2),
    count(feed.solo),
    percent(feed.soloShare, 2),
  ]);
  const heads = [
    "feed",
    "first",
    "tied",
    "share",
    "95 % interval",
    `of common ${unit}s`,
    "alone",
    "share",
  ];
  return section("First arrivals", heads, rows);
}

function completenessSection({ unit, feeds }: RaceReport): string {
  const ofShreds = (cells: readonly string[]): readonly string[] => (unit === "shred" ? cells : []);
  const rows = feeds.map((feed) => [
    feed.name,
    percent(feed.coverage, 2),
    ...ofShreds([percent(feed.dataCoverage, 2), percent(feed.codeCoverage, 2)]),
    count(feed.losses.missed),
    count(feed.losses.bursts),
    count(feed.losses.longest),
    ...ofShreds([percent(feed.fecSets.share, 2), percent(feed.slots.share, 2)]),
  ]);
  const heads = [
    "feed",
    "coverage",
    ...ofShreds(["data", "code"]),
    "missed",
    "in runs",
    "longest run",
    ...ofShreds(["sets ready", "slots ready"]),
  ];
  return section("Completeness", heads, rows);
}

function receivedSection({ unit, feeds }: RaceReport): string {
  const rows = feeds.map((feed) => [
    feed.name,
    feed.from,
    count(feed.received),
    count(feed.shreds),
    count(feed.duplicates),
    count(feed.late),
    count(feed.conflicting),
    count(feed.kernelDrops),
    Object.entries(feed.refused)
      .map(([reason, number]) => `${reason} ${count(number)}`)
      .join(", "),
  ]);
  const heads = [
    "feed",
    "from",
    "received",
    `${unit}s`,
    "duplicates",
    "late",
    "conflicting",
    "dropped by the kernel",
    "refused",
  ];
  return section(unit === "shred" ? "Received packets" : "Received", heads, rows);
}

/** Empty without trace packets. */
function traceSection({ feeds }: RaceReport): string {
  const rows = feeds.flatMap(({ name, traces }) =>
    traces.map(({ region, delayNs: { count: number, min, p50, p95, p99, max } }) => [
      `${name} ${region}`,
      count(number),
      ...[min, p50, p95, p99, max].map(lag),
    ]),
  );
  if (rows.length === 0) return "";
  const title = `${traceTitle.charAt(0).toUpperCase()}${traceTitle.slice(1)}`;
  return section(title, ["feed and region", "packets", "min", "p50", "p95", "p99", "max"], rows);
}

/** Empty in a race by transactions. */
function recoverySections(report: RaceReport): string {
  if (report.unit !== "shred") return "";
  const sets = "Lag of FEC sets until recovery was possible";
  const slots = "Lag of slots until recovery of every FEC set was possible";
  return `${lagSection(sets, report, ({ fecSets }) => fecSets.lagNs)}
${lagSection(slots, report, (feed) => feed.slots.lagNs)}`;
}

export function racePage(
  report: RaceReport,
  picture: RacePicture,
  verdict: readonly string[],
): string {
  const names = report.feeds.map(({ name }) => name).join(" against ");
  return reportPage({
    title: `Race: ${names}`,
    heading: names,
    verdict,
    body: [
      raceSvg(report, picture),
      firstArrivalsSection(report),
      lagSection(
        `Lag of ${report.unit}s relative to the best other feed (below 0: ahead)`,
        report,
        ({ lagNs }) => lagNs,
      ),
      recoverySections(report),
      completenessSection(report),
      pairSection(report),
      receivedSection(report),
      traceSection(report),
      `<p>${count(report.slots.judged)} slots judged, ${count(report.slots.edge)} excluded; settling time ${report.settleMs} ms; clock resolution ${report.resolutionNs} ns; intervals from ${count(report.turns)} turns of leaders.</p>`,
    ],
  });
}
