// HTML page of a landing benchmark: verdict, charts and tables in one self-contained file. Pure.

import { formatLag, grouped, percent } from "../report/number-text.ts";
import { reportPage, section } from "../report/page.ts";
import { landSvg } from "./land-picture.ts";
import type { LandReport, SenderReport } from "./land-report.ts";
import type { Estimate, Percentiles } from "./land-statistics.ts";
import type { RoundRecord } from "./records.ts";

type NumberText = (value: number) => string;

function withInterval({ value, interval }: Estimate, text: NumberText): string {
  if (value === null) return "-";
  const between = interval ? `${text(interval.low)} to ${text(interval.high)}` : "too few";
  return `${text(value)} (${between})`;
}

function percentileSection(
  title: string,
  report: LandReport,
  of: (sender: SenderReport) => Percentiles,
  text: NumberText,
): string {
  const rows = report.senders.map((sender) => {
    const { count, p50, p90, p99 } = of(sender);
    const cells = [p50, p90, p99].map((each) => withInterval(each, text));
    return [sender.name, grouped(count), ...cells];
  });
  return section(title, ["sender", "count", "p50", "p90", "p99"], rows);
}

function senderSection({ senders }: LandReport): string {
  const rows = senders.map((sender) => [
    sender.name,
    sender.dialect,
    sender.address,
    grouped(sender.sent),
    grouped(sender.landed),
    withInterval(sender.landedShare, percent),
    grouped(sender.failed),
    Object.entries(sender.drops)
      .map(([reason, count]) => `${reason} ${grouped(count)}`)
      .join(", "),
  ]);
  const heads = ["sender", "dialect", "address", "sent", "landed", "share", "failed", "dropped"];
  return section("Landed", heads, rows);
}

function positionSection({ senders }: LandReport): string {
  const rows = senders.map(({ name, position }) => [
    name,
    grouped(position.count),
    position.index === null ? "-" : grouped(position.index),
    percent(position.share),
    position.fecSet === null ? "-" : grouped(position.fecSet),
  ]);
  const heads = ["sender", "blocks", "transactions before it", "share of the block", "FEC set"];
  return section("Median position in the block", heads, rows);
}

function costSection({ senders }: LandReport): string {
  const text = (lamports: bigint | null) => (lamports === null ? "-" : grouped(Number(lamports)));
  const rows = senders.map(({ name, cost }) => [
    name,
    text(cost.feesLamports),
    text(cost.tipsLamports),
    text(cost.totalLamports),
    text(cost.perLandingLamports),
  ]);
  return section("Cost in lamports", ["sender", "fees", "tips", "total", "for each landing"], rows);
}

function pairSection({ pairs }: LandReport): string {
  const claim = (is: boolean | null) => (is === null ? "too few" : is ? "yes" : "no");
  const rows = pairs.map((pair) => [
    `${pair.a} against ${pair.b}`,
    grouped(pair.both),
    withInterval(pair.winShare, percent),
    withInterval(pair.advanceNs, formatLag),
    claim(pair.isTimeSignificant),
    withInterval(pair.landedDifference, (value) => (100 * value).toFixed(1)),
    claim(pair.isLandedSignificant),
  ]);
  const heads = [
    "pair",
    "both landed",
    "first before second",
    "median advance",
    "beyond chance",
    "landed more often, percentage points",
    "beyond chance",
  ];
  return section("Pairs, with intervals that hold together with 95 %", heads, rows);
}

export function landPage(
  report: LandReport,
  rounds: readonly RoundRecord[],
  verdict: readonly string[],
): string {
  const names = report.senders.map(({ name }) => name).join(" against ");
  const { budget, rounds: count } = report;
  const numbers = [
    `${grouped(count.complete)} of ${grouped(count.planned)} rounds, ${grouped(count.interrupted)} interrupted`,
    `resolution of times to landing ${formatLag(report.resolutionNs)}`,
    `intervals from ${grouped(report.turns)} turns of leaders`,
    `reserved ${grouped(Number(budget.reservedLamports))} of ${grouped(Number(budget.limitLamports))} lamports, spent ${grouped(Number(budget.spentLamports))}`,
  ];
  return reportPage({
    title: `Landing: ${names}`,
    heading: names,
    verdict,
    body: [
      landSvg(report, rounds, verdict),
      senderSection(report),
      percentileSection("Time to landing", report, ({ timeNs }) => timeNs, formatLag),
      percentileSection("Slots to landing", report, ({ slots }) => slots, String),
      percentileSection("Time to response", report, ({ responseNs }) => responseNs, formatLag),
      pairSection(report),
      positionSection(report),
      costSection(report),
      `<p>${numbers.join("; ")}.</p>`,
    ],
  });
}
