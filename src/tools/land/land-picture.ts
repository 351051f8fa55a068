// Picture of a landing benchmark: one self-contained SVG for light and dark pages, without scripts. Pure.
//
// Two panels: the share of all transactions that had landed by the time since sending, and the landed share of
// each sender with its interval.

import { percent } from "../report/number-text.ts";
import {
  escapeText,
  feedColours,
  label,
  pictureStyle,
  round,
  tickOf,
  wrapped,
} from "../report/svg.ts";
import type { LandReport, SenderReport } from "./land-report.ts";
import type { RoundRecord } from "./records.ts";

const width = 960;
const plot = { left: 64, right: 760, top: 92, bottom: 332 } as const;
const barsTop = 400;
const rowHeight = 26;
const labelWidth = 110;
const ticks = 5;

function colourOf(sender: number): string {
  return feedColours[sender % feedColours.length] ?? "#888888";
}

/** Times to landing of each sender, ascending. */
function timesOf(senders: number, rounds: readonly RoundRecord[]): number[][] {
  return Array.from({ length: senders }, (_, sender) =>
    rounds
      .flatMap(({ transactions }) => transactions[sender]?.end?.landing?.timeNs ?? [])
      .toSorted((a, b) => a - b),
  );
}

/** A round number not below the largest time. */
function axisEnd(times: readonly (readonly number[])[]): number {
  const largest = Math.max(1e6, ...times.map((each) => each.at(-1) ?? 0));
  const step = 10 ** Math.floor(Math.log10(largest));
  const factor = [1, 2, 5, 10].find((each) => each * step >= largest) ?? 10;
  return factor * step;
}

function yOf(share: number): number {
  return plot.bottom - share * (plot.bottom - plot.top);
}

function grid(endNs: number, xOf: (ns: number) => number): string[] {
  const shares = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
    `<line class="grid" x1="${plot.left}" x2="${plot.right}" y1="${round(yOf(share))}" y2="${round(yOf(share))}"/>`,
    label(plot.left - 8, yOf(share) + 4, `${share * 100} %`, ' class="soft" text-anchor="end"'),
  ]);
  const times = Array.from({ length: ticks + 1 }, (_, i) => (i * endNs) / ticks).flatMap((ns) => [
    `<line class="grid" x1="${round(xOf(ns))}" x2="${round(xOf(ns))}" y1="${plot.top}" y2="${plot.bottom}"/>`,
    label(
      xOf(ns),
      plot.bottom + 16,
      ns === 0 ? "0" : tickOf(ns),
      ' class="soft" text-anchor="middle"',
    ),
  ]);
  return [...shares, ...times];
}

function curvePanel({ senders }: LandReport, rounds: readonly RoundRecord[]): string[] {
  const times = timesOf(senders.length, rounds);
  const endNs = axisEnd(times);
  const xOf = (ns: number) => plot.left + Math.min(1, ns / endNs) * (plot.right - plot.left);
  const curves = senders.flatMap(({ name, sent }, number) => {
    const own = times[number] ?? [];
    if (sent === 0 || own.length === 0) return [];
    let path = `M${round(xOf(0))} ${round(yOf(0))}`;
    for (const [i, ns] of own.entries()) {
      path += `H${round(xOf(ns))}V${round(yOf((i + 1) / sent))}`;
    }
    const dash = number % 2 === 1 ? ' stroke-dasharray="7 3"' : "";
    return `<path d="${path}H${plot.right}" fill="none" stroke="${colourOf(number)}" stroke-width="2.2"${dash}><title>${escapeText(name)}</title></path>`;
  });
  return [
    label(
      plot.left,
      plot.top - 12,
      "Share of all transactions that had landed, by the time since sending",
      ' class="panel"',
    ),
    ...grid(endNs, xOf),
    ...curves,
    ...curveLabels(senders, times),
  ];
}

/** Names at the right end of the curves, moved apart if they would overlap. */
function curveLabels(senders: readonly SenderReport[], times: readonly (readonly number[])[]) {
  const ends = senders
    .map(({ name, sent }, number) => {
      const share = sent === 0 ? 0 : (times[number]?.length ?? 0) / sent;
      return { name, number, share, y: yOf(share) + 4 };
    })
    .toSorted((a, b) => a.y - b.y);
  let last = Number.NEGATIVE_INFINITY;
  return ends.map(({ name, number, share, y }) => {
    last = Math.max(y, last + 15);
    const style = ` style="fill:${colourOf(number)};font-weight:600"`;
    return label(plot.right + 10, last, `${name}  ${percent(share)}`, style);
  });
}

function barPanel({ senders }: LandReport): string[] {
  const left = plot.left + labelWidth;
  const x = (share: number) => left + share * (plot.right - left);
  const rows = senders.flatMap(({ name, landedShare: { value, interval } }, number) => {
    const y = barsTop + number * rowHeight;
    const whisker = interval
      ? [
          `<line class="whisker" x1="${round(x(interval.low))}" x2="${round(x(interval.high))}" y1="${y + 8}" y2="${y + 8}"/>`,
        ]
      : [];
    return [
      label(plot.left, y + 12, name),
      `<rect class="empty" x="${left}" y="${y}" width="${round(x(1) - left)}" height="16" rx="2"/>`,
      `<rect x="${left}" y="${y}" width="${round(x(value ?? 0) - left)}" height="16" rx="2" fill="${colourOf(number)}"/>`,
      ...whisker,
      label(plot.right + 10, y + 12, percent(value), ' class="soft"'),
    ];
  });
  const title = "Landed share (line: 95 % interval)";
  return [label(plot.left, barsTop - 14, title, ' class="panel"'), ...rows];
}

export function landSvg(
  report: LandReport,
  rounds: readonly RoundRecord[],
  verdict: readonly string[],
): string {
  const sentences = verdict.flatMap((sentence) => wrapped(sentence, 140));
  const verdictTop = barsTop + report.senders.length * rowHeight + 22;
  const height = verdictTop + sentences.length * 17 + 10;
  const names = report.senders.map(({ name }) => name).join(" against ");
  const under = `${report.rounds.complete} rounds, ${Math.round(report.seconds)} s, landings by ${report.observedBy === "shreds" ? "shreds" : "the node"}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeText(verdict.join(" "))}">`,
    `<style>${pictureStyle}</style>`,
    `<rect class="ground" width="${width}" height="${height}"/>`,
    label(plot.left, 34, names, ' class="title"'),
    label(plot.left, 56, under, ' class="soft"'),
    ...curvePanel(report, rounds),
    ...barPanel(report),
    ...sentences.map((line, i) => label(plot.left, verdictTop + i * 17, line)),
    "</svg>",
    "",
  ].join("\n");
}
