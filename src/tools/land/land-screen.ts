// Terminal output of `land`: the cost before it, a compact live screen, and the summary. Pure.

import type { Interval } from "../report/bootstrap.ts";
import { formatLag, grouped, percent } from "../report/number-text.ts";
import { formatClock, formatCount, type Paint, table } from "../terminal/formatting.ts";
import type { LandReport, SenderReport } from "./land-report.ts";
import type { Estimate, Percentiles } from "./land-statistics.ts";
import { costOf, type LandPlan, publicAddress, roundCost } from "./plan.ts";

const lamportsPerSol = 1e9;
const right = true;

/** "12,000 lamports (0.000012 SOL)". */
export function amountText(lamports: bigint): string {
  const sol = (Number(lamports) / lamportsPerSol).toFixed(9).replace(/\.?0+$/, "");
  return `${grouped(Number(lamports))} lamports (${sol} SOL)`;
}

/** The transactions of the benchmark and their maximum cost. */
export function costLines(plan: LandPlan): string[] {
  const rows = plan.senders.map((sender) => {
    const { feeLamports, tipLamports, totalLamports } = costOf(plan, sender);
    const numbers = [feeLamports, tipLamports, totalLamports].map((each) => formatCount(each));
    return [sender.name, sender.dialect, publicAddress(sender), ...numbers];
  });
  const titles = ["FEE", "TIP", "LAMPORTS"].map((title) => ({ title, right }));
  const isShared = plan.nonceAccount !== null;
  const how = isShared ? "one nonce: exactly one of them can land" : "each lands by itself";
  return [
    `${plan.rounds} rounds of ${plan.senders.length} transactions, ${how}`,
    ...table([{ title: "SENDER" }, { title: "DIALECT" }, { title: "ADDRESS" }, ...titles], rows),
    `cost: at most ${amountText(roundCost(plan))} a round, ${amountText(roundCost(plan) * BigInt(plan.rounds))} in total`,
  ];
}

function time({ value }: Estimate): string {
  return value === null ? "-" : formatLag(value);
}

function plain({ value }: Estimate): string {
  return value === null ? "-" : String(value);
}

function dropsText({ drops }: SenderReport): string {
  return Object.entries(drops)
    .map(([reason, count]) => `${reason} ${formatCount(count)}`)
    .join(", ");
}

function head(report: LandReport, paint: Paint): string {
  const { rounds, budget, seconds } = report;
  const state = `${rounds.complete} of ${rounds.planned} rounds sent`;
  const money = `reserved ${grouped(Number(budget.reservedLamports))} of ${grouped(Number(budget.limitLamports))} lamports, spent ${grouped(Number(budget.spentLamports))}`;
  const by = report.observedBy === "shreds" ? "landings by shreds" : "landings by the node";
  return `${paint.bold("land")}  ${formatClock(seconds)}  ${state}; ${money}; ${by}`;
}

/** One line for outputs that are not a terminal. */
export function landLine(report: LandReport): string {
  const senders = report.senders.map(
    ({ name, landed, sent, timeNs }) =>
      `${name} landed ${landed} of ${sent}, p50 ${time(timeNs.p50)}`,
  );
  return [`${Math.round(report.seconds)} s`, ...senders].join("  ");
}

export function landLines(report: LandReport, paint: Paint): string[] {
  const rows = report.senders.map((sender) => [
    sender.name,
    formatCount(sender.sent),
    formatCount(sender.open),
    formatCount(sender.landed),
    percent(sender.landedShare.value),
    time(sender.responseNs.p50),
    time(sender.timeNs.p50),
    time(sender.timeNs.p90),
    plain(sender.slots.p50),
    dropsText(sender),
  ]);
  const titles = ["SENT", "OPEN", "LANDED", "SHARE", "RESPONSE", "TIME p50", "p90", "SLOTS"];
  const [title = "", ...lines] = table(
    [
      { title: "SENDER", width: 8 },
      ...titles.map((each) => ({ title: each, right, width: 8 })),
      { title: "DROPPED" },
    ],
    rows,
  );
  return [
    head(report, paint),
    "",
    paint.bold(title),
    ...lines,
    "",
    paint.dim("open: sent, without a final state yet. Press Ctrl-C to stop; --resume continues."),
  ];
}

type NumberText = (value: number) => string;

function range(interval: Interval | null, text: NumberText): string {
  return interval ? `${text(interval.low)} to ${text(interval.high)}` : "too few";
}

function percentileTable(
  report: LandReport,
  of: (sender: SenderReport) => Percentiles,
  text: NumberText,
): string[] {
  const cells = ({ value, interval }: Estimate) =>
    value === null ? ["-", ""] : [text(value), range(interval, text)];
  const rows = report.senders.map((sender) => {
    const { count, p50, p90, p99 } = of(sender);
    return [sender.name, formatCount(count), ...[p50, p90, p99].flatMap(cells)];
  });
  const titles = ["p50", "p90", "p99"].flatMap((title) => [
    { title, right },
    { title: "95 % INTERVAL" },
  ]);
  return table([{ title: "SENDER", width: 8 }, { title: "COUNT", right }, ...titles], rows);
}

function landedTable(report: LandReport): string[] {
  const rows = report.senders.map((sender) => [
    sender.name,
    formatCount(sender.sent),
    formatCount(sender.landed),
    percent(sender.landedShare.value),
    range(sender.landedShare.interval, percent),
    formatCount(sender.failed),
    dropsText(sender),
  ]);
  return table(
    [
      { title: "SENDER", width: 8 },
      { title: "SENT", right },
      { title: "LANDED", right },
      { title: "SHARE", right },
      { title: "95 % INTERVAL" },
      { title: "FAILED", right },
      { title: "DROPPED" },
    ],
    rows,
  );
}

function positionTable(report: LandReport): string[] {
  const rows = report.senders.map(({ name, position }) => [
    name,
    formatCount(position.count),
    position.index === null ? "-" : formatCount(position.index),
    percent(position.share),
    position.fecSet === null ? "-" : formatCount(position.fecSet),
  ]);
  return table(
    [
      { title: "SENDER", width: 8 },
      { title: "BLOCKS", right },
      { title: "INDEX", right },
      { title: "SHARE BEFORE IT", right },
      { title: "FEC SET", right },
    ],
    rows,
  );
}

function costTable(report: LandReport): string[] {
  const rows = report.senders.map(({ name, cost }) => [
    name,
    formatCount(cost.feesLamports),
    formatCount(cost.tipsLamports),
    formatCount(cost.totalLamports),
    cost.perLandingLamports === null ? "-" : formatCount(cost.perLandingLamports),
  ]);
  const titles = ["FEES", "TIPS", "LAMPORTS", "FOR EACH LANDING"];
  return table([{ title: "SENDER", width: 8 }, ...titles.map((title) => ({ title, right }))], rows);
}

/** `verdict` has the sentences of land-verdict.ts. */
export function landSummary(
  report: LandReport,
  verdict: readonly string[],
  paint: Paint,
): string[] {
  const part = (title: string, lines: readonly string[]) => ["", paint.bold(title), ...lines];
  const slots = (value: number) => String(value);
  return [
    head(report, paint),
    ...part(report.sameNonce ? "rounds won" : "landed", landedTable(report)),
    ...part(
      "time to landing",
      percentileTable(report, ({ timeNs }) => timeNs, formatLag),
    ),
    ...part(
      "slots to landing",
      percentileTable(report, (sender) => sender.slots, slots),
    ),
    ...part(
      "time to response",
      percentileTable(report, ({ responseNs }) => responseNs, formatLag),
    ),
    ...part("median position in the block", positionTable(report)),
    ...part("cost", costTable(report)),
    ...part(
      "verdict",
      verdict.map((sentence) => `  ${sentence}`),
    ),
  ];
}
