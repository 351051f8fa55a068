// Picture of one feed as SVG: arrival times of FEC sets, and the completeness of each slot. Pure.

import type { LagHistogram } from "../../core/log-linear-histogram.ts";
import { cdfTicksNs, feedColours, label, pictureStyle, round, tickOf } from "../report/svg.ts";
import type { FeedTiming } from "./feed-timing.ts";

const width = 960;
const plot = { left: 64, right: 790, top: 92, bottom: 300 } as const;
const stripTop = 366;
const height = 420;
const columnsMax = 240;

function xOf(ns: number): number {
  const place = (Math.log10(Math.max(ns, 1e4)) - 4) / 5;
  return plot.left + Math.min(1, place) * (plot.right - plot.left);
}

function yOf(share: number): number {
  return plot.bottom - share * (plot.bottom - plot.top);
}

function curve(
  lags: LagHistogram,
  whole: number,
  { name, colour }: Record<string, string>,
): string[] {
  if (whole === 0) return [];
  const points = Array.from({ length: 121 }, (_, i) => 1e4 * 10 ** (i / 24));
  const shares = points.map((ns) => lags.countAtMost(ns) / whole);
  const path = points.map(
    (ns, i) => `${i === 0 ? "M" : "L"}${round(xOf(ns))} ${round(yOf(shares[i] ?? 0))}`,
  );
  const end = yOf(shares.at(-1) ?? 0);
  return [
    `<path d="${path.join("")}" fill="none" stroke="${colour}" stroke-width="2.2"/>`,
    label(
      plot.right + 10,
      end + (name === "complete set" ? 18 : 4),
      name ?? "",
      ` style="fill:${colour};font-weight:600"`,
    ),
  ];
}

function strip(timing: FeedTiming): string[] {
  const { recent } = timing;
  const columns = Math.min(columnsMax, recent.length);
  const cell = (plot.right - plot.left) / Math.max(1, columns);
  return Array.from({ length: columns }, (_, column) => {
    const begin = Math.floor((column * recent.length) / columns);
    const end = Math.max(begin + 1, Math.floor(((column + 1) * recent.length) / columns));
    const worst = Math.min(...recent.slice(begin, end).map(({ share }) => share));
    const opacity = Math.round(worst ** 4 * 100) / 100;
    return `<rect x="${round(plot.left + column * cell)}" y="${stripTop}" width="${round(cell)}" height="18" fill="${feedColours[0]}" fill-opacity="${opacity}"/>`;
  });
}

export function feedSvg(timing: FeedTiming, title: string, isVerified: boolean): string {
  const grid = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
    `<line class="grid" x1="${plot.left}" x2="${plot.right}" y1="${yOf(share)}" y2="${yOf(share)}"/>`,
    label(plot.left - 8, yOf(share) + 4, `${share * 100} %`, ' class="soft" text-anchor="end"'),
  ]);
  const ticks = cdfTicksNs.flatMap((ns) => [
    `<line class="grid" x1="${round(xOf(ns))}" x2="${round(xOf(ns))}" y1="${plot.top}" y2="${plot.bottom}"/>`,
    label(xOf(ns), plot.bottom + 16, tickOf(ns), ' class="soft" text-anchor="middle"'),
  ]);
  const state = isVerified ? "verified" : "NOT VERIFIED";
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="FEC sets of ${title}">`,
    `<style>${pictureStyle}</style>`,
    `<rect class="ground" width="${width}" height="${height}"/>`,
    label(plot.left, 34, title, ' class="title"'),
    label(
      plot.left,
      56,
      `${timing.slots} slots, ${timing.sets} FEC sets, ${state}`,
      isVerified ? ' class="soft"' : ' class="warn"',
    ),
    label(
      plot.left,
      plot.top - 12,
      "Share of FEC sets by the time since their first shred",
      ' class="panel"',
    ),
    ...grid,
    ...ticks,
    ...curve(timing.toRecoverable, timing.sets, {
      name: "recoverable",
      colour: feedColours[0] ?? "",
    }),
    ...curve(timing.toLast, timing.sets, { name: "last shred", colour: feedColours[1] ?? "" }),
    label(
      plot.left,
      stripTop - 14,
      "Coverage slot by slot (full colour: all of its shreds)",
      ' class="panel"',
    ),
    `<rect class="empty" x="${plot.left}" y="${stripTop}" width="${plot.right - plot.left}" height="18"/>`,
    ...strip(timing),
    "</svg>",
    "",
  ].join("\n");
}
