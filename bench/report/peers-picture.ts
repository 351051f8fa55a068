// The picture of the section "peers": latency to the last destination, p50 and p99, by program. Pure.
//
// Made from the stored tables; documents.ts writes it to docs/images/peers.svg.

import { escapeText, feedColours, pictureStyle } from "../../src/tools/report/svg.ts";
import type { StoredReport } from "./stored-report.ts";
import type { Table } from "./table.ts";

const width = 860;
const left = 220;
const right = 190;
const barHeight = 14;
const rowHeight = 20;
const titleHeight = 34;

interface Bar {
  readonly name: string;
  readonly cost: string;
  readonly p50: number;
  readonly p99: number;
  readonly isWhole: boolean;
}

function numberAt(text: string | undefined): number {
  return Number((text ?? "").replaceAll(",", ""));
}

function barsOf({ columns, rows }: Table): Bar[] {
  const at = (row: readonly string[], column: string) => row[columns.indexOf(column)];
  return rows
    .map((row) => ({
      name: row[0] ?? "",
      cost: at(row, "CPU ns per datagram") ?? "",
      p50: numberAt(at(row, "last p50")),
      p99: numberAt(at(row, "last p99")),
      isWhole: numberAt(at(row, "lost")) === 0,
    }))
    .filter(({ p50 }) => p50 > 0);
}

/** The picture in words. */
function summaryOf(groups: readonly { readonly title: string; readonly bars: Bar[] }[]): string {
  const lines = groups.map(({ title, bars }) => {
    const values = bars.map(({ name, p50, p99 }) => `${name} ${p50} and ${p99} µs`);
    return `${title}: ${values.join(", ")}.`;
  });
  return ["Latency to the last destination, p50 and p99.", ...lines].join(" ");
}

function ticksFor(bars: readonly Bar[]): number[] {
  const values = bars.flatMap(({ p50, p99 }) => [p50, p99]).filter((value) => value > 0);
  const first = Math.floor(Math.log10(Math.min(...values)));
  const last = Math.ceil(Math.log10(Math.max(...values)));
  return Array.from({ length: Math.max(1, last - first) + 1 }, (_, i) => 10 ** (first + i));
}

/** Undefined: the section was not measured. */
export function peersPicture({ sections }: StoredReport): string | undefined {
  const tables = sections.find(({ name }) => name === "peers")?.tables ?? [];
  const measured = tables.map((table) => ({ title: table.title, bars: barsOf(table) }));
  const groups = measured.filter(({ bars }) => bars.length > 0);
  const all = groups.flatMap(({ bars }) => bars);
  if (all.length === 0) return undefined;
  const ticks = ticksFor(all);
  const [first = 1, last = 10] = [ticks[0], ticks.at(-1)];
  const xOf = (us: number): number =>
    left +
    ((width - left - right) * Math.log(Math.max(us, first) / first)) / Math.log(last / first);
  const place = (value: number): string => value.toFixed(1);
  const height = 70 + groups.length * titleHeight + all.length * rowHeight;
  const names = [...new Set(all.map(({ name }) => name))];
  const parts = ticks.map((tick) => {
    const x = place(xOf(tick));
    const text = `${tick.toLocaleString("en-US")} µs`;
    return (
      `<line class="grid" x1="${x}" y1="52" x2="${x}" y2="${height - 10}"/>` +
      `<text class="soft" x="${x}" y="46" text-anchor="middle">${text}</text>`
    );
  });
  let y = 60;
  for (const { title, bars } of groups) {
    parts.push(`<text class="panel" x="12" y="${y + 18}">${escapeText(title)}</text>`);
    y += titleHeight;
    for (const bar of bars) {
      const colour = feedColours[names.indexOf(bar.name) % feedColours.length];
      const middle = y + barHeight / 2;
      const label = `${bar.cost} ns CPU${bar.isWhole ? "" : ", with losses"}`;
      parts.push(
        `<text x="${left - 8}" y="${y + 11}" text-anchor="end">${escapeText(bar.name)}</text>`,
        `<rect x="${left}" y="${y}" width="${place(xOf(bar.p50) - left)}" height="${barHeight}" fill="${colour}"/>`,
        `<line class="whisker" x1="${place(xOf(bar.p50))}" y1="${middle}" x2="${place(xOf(bar.p99))}" y2="${middle}"/>`,
        `<text class="soft" x="${width - right + 12}" y="${y + 11}">${escapeText(label)}</text>`,
      );
      y += rowHeight;
    }
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeText(summaryOf(groups))}">`,
    `<style>${pictureStyle}</style>`,
    `<rect class="ground" width="${width}" height="${height}"/>`,
    `<text class="title" x="12" y="24">Latency to the last destination: bar p50, line p99; processor time per datagram</text>`,
    ...parts,
    "</svg>",
    "",
  ].join("\n");
}
