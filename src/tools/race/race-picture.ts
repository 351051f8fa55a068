// Picture of a race: one self-contained SVG for light and dark pages, without scripts. Pure.
//
// Three panels: the share of shreds (or transactions) that each feed had delivered by the time since the first
// arrival; first arrivals with intervals; and each feed's coverage per slot.

import { formatLag, percent } from "../report/number-text.ts";
import {
  cdfTicksNs,
  escapeText,
  feedColours,
  label,
  pictureStyle,
  round,
  tickOf,
  wrapped,
} from "../report/svg.ts";
import type { CdfPoint, FeedReport, RacePicture, RaceReport } from "./race-report.ts";
import { verdictOf } from "./verdict.ts";

const width = 960;
const plot = { left: 64, right: 790, top: 92, bottom: 352 } as const;
const decades = { from: 4, to: 9 } as const;
const zeroWidth = 34;
const barsTop = 420;
const rowHeight = 26;
const stripColumns = 240;

function colourOf(feed: number): string {
  return feedColours[feed % feedColours.length] ?? "#888888";
}

/** Zero has its own position, left of the logarithmic axis. */
function xOf(lagNs: number): number {
  const begin = plot.left + zeroWidth;
  if (lagNs < 10 ** decades.from) return plot.left;
  const place = (Math.log10(lagNs) - decades.from) / (decades.to - decades.from);
  return begin + Math.min(1, place) * (plot.right - begin);
}

function yOf(share: number): number {
  return plot.bottom - share * (plot.bottom - plot.top);
}

function curvePanel(report: RaceReport, picture: RacePicture): string[] {
  const shares = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
    `<line class="grid" x1="${plot.left}" x2="${plot.right}" y1="${round(yOf(share))}" y2="${round(yOf(share))}"/>`,
    label(plot.left - 8, yOf(share) + 4, `${share * 100} %`, ' class="soft" text-anchor="end"'),
  ]);
  const lags = [0, ...cdfTicksNs].flatMap((lagNs) => [
    `<line class="grid" x1="${round(xOf(lagNs))}" x2="${round(xOf(lagNs))}" y1="${plot.top}" y2="${plot.bottom}"/>`,
    label(
      xOf(lagNs),
      plot.bottom + 16,
      lagNs === 0 ? "first" : tickOf(lagNs),
      ' class="soft" text-anchor="middle"',
    ),
  ]);
  const curves = report.feeds.map((feed, number) => curve(feed, number, picture.cdf[number] ?? []));
  return [
    label(
      plot.left,
      plot.top - 12,
      `Share of all ${report.unit}s that a feed delivered, by the time since the first feed`,
      ' class="panel"',
    ),
    ...shares,
    ...lags,
    ...curves,
    ...curveLabels(report, picture),
  ];
}

function curve(feed: FeedReport, number: number, points: readonly CdfPoint[]): string {
  let path = "";
  for (const { lagNs, share } of points) {
    const at = `${round(xOf(lagNs))} ${round(yOf(share))}`;
    path += path === "" ? `M${at}` : `L${at}`;
  }
  const dash = number % 2 === 1 ? ' stroke-dasharray="7 3"' : "";
  return `<path d="${path}" fill="none" stroke="${colourOf(number)}" stroke-width="2.2"${dash}><title>${escapeText(feed.name)}</title></path>`;
}

/** Names at the right end of the curves, moved apart if they would overlap. */
function curveLabels(report: RaceReport, { cdf }: RacePicture): string[] {
  const ends = report.feeds
    .map((feed, number) => ({ feed, number, y: yOf(cdf[number]?.at(-1)?.share ?? 0) + 4 }))
    .toSorted((a, b) => a.y - b.y);
  let last = Number.NEGATIVE_INFINITY;
  return ends.map(({ feed, number, y }) => {
    last = Math.max(y, last + 15);
    const text = `${feed.name}  ${percent(feed.coverage)}`;
    return label(plot.right + 10, last, text, ` style="fill:${colourOf(number)};font-weight:600"`);
  });
}

function barPanel(report: RaceReport): string[] {
  const x = (share: number) => plot.left + 90 + share * (plot.right - plot.left - 90);
  const rows = report.feeds.flatMap((feed, number) => {
    const y = barsTop + number * rowHeight;
    const end = x(feed.winShare ?? 0);
    const between = feed.winShareInterval;
    const middle = y + 8;
    const whisker = between
      ? [
          `<line class="whisker" x1="${round(x(between.low))}" x2="${round(x(between.high))}" y1="${middle}" y2="${middle}"/>`,
        ]
      : [];
    const lag = feed.lagNs.p50;
    const median =
      lag === null ? "" : `, ${formatLag(Math.abs(lag))} ${lag < 0 ? "ahead" : "behind"}`;
    return [
      label(plot.left, y + 12, feed.name),
      `<rect class="empty" x="${x(0)}" y="${y}" width="${round(x(1) - x(0))}" height="16" rx="2"/>`,
      `<rect x="${x(0)}" y="${y}" width="${round(Math.max(0, end - x(0)))}" height="16" rx="2" fill="${colourOf(number)}"/>`,
      ...whisker,
      label(plot.right + 10, y + 12, `${percent(feed.winShare)}${median}`, ' class="soft"'),
    ];
  });
  return [
    label(
      plot.left,
      barsTop - 14,
      `First arrivals, share of all ${report.unit}s (line: 95 % interval), and median lag`,
      ' class="panel"',
    ),
    ...rows,
  ];
}

function stripPanel(report: RaceReport, { coverage }: RacePicture, top: number): string[] {
  const columns = Math.min(stripColumns, coverage.length);
  const left = plot.left + 90;
  const cell = (plot.right - left) / Math.max(1, columns);
  const rows = report.feeds.flatMap((feed, number) => {
    const y = top + number * rowHeight;
    const cells = Array.from({ length: columns }, (_, column) => {
      const begin = Math.floor((column * coverage.length) / columns);
      const end = Math.floor(((column + 1) * coverage.length) / columns);
      const part = coverage.slice(begin, Math.max(begin + 1, end));
      const worst = Math.min(
        ...part.map(({ delivered, distinct }) => (delivered[number] ?? 0) / distinct),
      );
      return `<rect x="${round(left + column * cell)}" y="${y}" width="${round(Math.max(0.5, cell - (cell > 4 ? 1 : 0)))}" height="16" fill="${colourOf(number)}" fill-opacity="${Math.round(worst ** 4 * 100) / 100}"/>`;
    });
    return [
      label(plot.left, y + 12, feed.name),
      `<rect class="empty" x="${left}" y="${y}" width="${round(plot.right - left)}" height="16"/>`,
      ...cells,
    ];
  });
  return [
    label(
      plot.left,
      top - 14,
      `Coverage per slot (full colour: all of the slot's ${report.unit}s; half of them: nearly empty)`,
      ' class="panel"',
    ),
    ...rows,
  ];
}

export function raceSvg(report: RaceReport, picture: RacePicture): string {
  const feeds = report.feeds.length;
  const stripTop = barsTop + feeds * rowHeight + 44;
  const verdict = verdictOf(report).flatMap((sentence) => wrapped(sentence, 140));
  const verdictTop = stripTop + feeds * rowHeight + 22;
  const height = verdictTop + verdict.length * 17 + 10;
  const names = report.feeds.map(({ name }) => name).join(" against ");
  const under = `${report.slots.judged} slots, ${report.shreds.distinct.toLocaleString("en-US")} ${report.unit}s, ${Math.round(report.seconds)} s`;
  const state = report.verified ? "verified" : "NOT VERIFIED";
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeText(verdict.join(" "))}">`,
    `<style>${pictureStyle}</style>`,
    `<rect class="ground" width="${width}" height="${height}"/>`,
    label(plot.left, 34, names, ' class="title"'),
    label(plot.left, 56, `${under}, ${state}`, report.verified ? ' class="soft"' : ' class="warn"'),
    ...curvePanel(report, picture),
    ...barPanel(report),
    ...stripPanel(report, picture, stripTop),
    ...verdict.map((line, i) => label(plot.left, verdictTop + i * 17, line)),
    "</svg>",
    "",
  ].join("\n");
}
