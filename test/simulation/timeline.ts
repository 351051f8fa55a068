// Timeline: one run of the simulation as an HTML page that needs nothing else.
//
// One lane for each participant, time from left to right. A mark is a line of the trace; it links to the
// line in the table below the drawing.

import { durationText, TimeScale } from "./time-scale.ts";

const laneHeight = 26;
const labelWidth = 120;
const margin = 16;
const packetsHeight = 48;

interface TimelineOptions {
  readonly title: string;
  /** Lines of the trace of one run, in their order. */
  readonly lines: readonly string[];
  /** Message of the violated invariant; undefined: all hold. */
  readonly violation?: string | undefined;
}

interface Mark {
  readonly atMs: number;
  readonly text: string;
  readonly lane: string;
  /** The scenario caused it; otherwise it follows from what happened before. */
  readonly isEvent: boolean;
}

interface Packets {
  readonly atMs: number;
  readonly arrived: number;
  readonly left: number;
}

/** Lanes above those of the customers, in this order. */
const firstLanes = ["violation", "service", "slots", "surroundings", "sources", "destinations"];

/** `json`: an event of scenario.ts. */
function laneOfEvent(json: string): string {
  const customer = /"customer":(\d+)/.exec(json)?.[1];
  if (customer !== undefined) return `customer ${customer}`;
  if (json.includes('"source":')) return "sources";
  if (json.startsWith('{"kind":"slot"')) return "slots";
  return json.startsWith('{"kind":"crash"') ? "service" : "surroundings";
}

function laneOfText(text: string): string {
  const customer = /^customer[- ](\d+)/.exec(text)?.[1];
  if (customer !== undefined) return `customer ${customer}`;
  if (text.startsWith("service ")) return "service";
  return text.startsWith("challenge ") ? "destinations" : "log";
}

/** Reads `<ms>  <text>`, where the text of an event ends with its JSON. A line without a time has that of the line before. */
function markOf(line: string, beforeMs: number): Mark {
  const parts = /^ *(?:(\d+\.\d+) {2})?\s*(.*)$/s.exec(line);
  const atMs = parts?.[1] === undefined ? beforeMs : Number(parts[1]);
  const text = parts?.[2] ?? line;
  const json = /^\d+ ms {2}#\d+ {2}(\{.*\})$/s.exec(text)?.[1];
  if (json === undefined) return { atMs, text, lane: laneOfText(text), isEvent: false };
  return { atMs, text: text.replace(/^\d+ ms {2}/, ""), lane: laneOfEvent(json), isEvent: true };
}

function read(lines: readonly string[]): { marks: Mark[]; packets: Packets[] } {
  const marks: Mark[] = [];
  const packets: Packets[] = [];
  let atMs = 0;
  for (const line of lines) {
    const mark = markOf(line, atMs);
    ({ atMs } = mark);
    const counts = /^(\d+) packets arrive, (\d+) leave$/.exec(mark.text);
    if (counts) packets.push({ atMs, arrived: Number(counts[1]), left: Number(counts[2]) });
    else marks.push(mark);
  }
  return { marks, packets };
}

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};
const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => escapes[sign] ?? sign);

/** A lane of packets per step: arrivals upwards, departures downwards. */
function drawPackets(packets: readonly Packets[], top: number, scale: TimeScale): string {
  const most = Math.max(1, ...packets.map(({ arrived, left }) => Math.max(arrived, left)));
  const middle = top + packetsHeight / 2;
  const pixelsPerPacket = (packetsHeight / 2 - 2) / most;
  return packets
    .map(({ atMs, arrived, left }) => {
      const up = arrived * pixelsPerPacket;
      const x = scale.xOf(atMs).toFixed(1);
      return (
        `<g><title>${atMs} ms: ${arrived} packets arrive, ${left} leave</title>` +
        `<rect class="in" x="${x}" y="${(middle - up).toFixed(1)}" width="4" height="${up.toFixed(1)}"/>` +
        `<rect class="out" x="${x}" y="${middle}" width="4" height="${(left * pixelsPerPacket).toFixed(1)}"/></g>`
      );
    })
    .join("");
}

function drawMark(mark: Mark, number: number, { x, y }: { x: number; y: number }): string {
  const shape = mark.isEvent
    ? `<path d="M${x} ${y - 7}l6 12h-12z"/>`
    : `<circle cx="${x}" cy="${y}" r="4"/>`;
  const kind = mark.lane === "violation" ? "violation" : mark.isEvent ? "event" : "result";
  return `<a href="#line-${number}" class="${kind}"><title>${mark.atMs} ms: ${escaped(mark.text)}</title>${shape}</a>`;
}

function lanesOf(marks: readonly Mark[]): string[] {
  const found = new Set(marks.map(({ lane }) => lane));
  const customers = [...found].filter((lane) => lane.startsWith("customer ")).toSorted();
  return [...firstLanes, ...customers, "log"].filter((lane) => found.has(lane));
}

/** A line for each second, and a band for each gap that is cut short. */
function drawAxis(scale: TimeScale, height: number): string {
  const seconds = scale.pieces.flatMap(({ beginMs, endMs }) => {
    const first = Math.ceil(beginMs / 1000);
    return Array.from({ length: Math.floor(endMs / 1000) - first + 1 }, (_, i) => first + i);
  });
  const lines = seconds.map((second) => {
    const x = scale.xOf(second * 1000).toFixed(1);
    return `<path class="grid" d="M${x} 16V${height}"/><text x="${x}" y="12">${second} s</text>`;
  });
  const cuts = scale.cuts.map(
    ({ x, forMs }) =>
      `<rect class="cut" x="${(x - 15).toFixed(1)}" y="0" width="30" height="${height}"/>` +
      `<text class="cut-text" x="${x.toFixed(1)}" y="12">${durationText(forMs)}</text>`,
  );
  return [...lines, ...cuts].join("");
}

const style = `
body { font: 14px/1.4 system-ui, sans-serif; margin: 16px; color: #1d2733; background: #fff }
h1 { font-size: 18px } .bad { color: #b3261e; font-weight: 600 }
.drawing { overflow-x: auto; display: flex; border: 1px solid #d5dbe2 }
svg text { font: 11px system-ui, sans-serif; fill: #52606d }
.cut { fill: #f1f3f6 } svg .cut-text { text-anchor: middle }
.grid { stroke: #e6eaef } .lane { stroke: #d5dbe2 }
.event { fill: #1f5fbf } .result { fill: #2e8540 } .violation { fill: #b3261e }
.in { fill: #8fb4e3 } .out { fill: #8fcfa0 }
svg { flex: none } .labels { position: sticky; left: 0; background: #fff } .labels text { font-weight: 600 }
table { border-collapse: collapse; margin-top: 16px } td { padding: 1px 10px 1px 0; vertical-align: top }
td:first-child { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
td:last-child { font-family: ui-monospace, monospace; font-size: 12px; overflow-wrap: anywhere }
tr:target { background: #fff3c4 } tr.event td:last-child { font-weight: 600 }
`;

/** Returns the page. */
export function timelineOf({ title, lines, violation }: TimelineOptions): string {
  const { marks, packets } = read(lines);
  const endMs = Math.max(0, ...marks.map(({ atMs }) => atMs), ...packets.map(({ atMs }) => atMs));
  if (violation !== undefined)
    marks.push({ atMs: endMs, text: violation, lane: "violation", isEvent: false });
  const lanes = lanesOf(marks);
  const topOf = new Map(lanes.map((lane, i) => [lane, 20 + i * laneHeight]));
  const packetsTop = 20 + lanes.length * laneHeight;
  const height = packetsTop + packetsHeight;
  const times = [...marks, ...packets].map(({ atMs }) => atMs);
  const scale = new TimeScale(times, margin);
  const width = scale.xOf(endMs) + 40;
  const drawn = marks
    .map((mark, i) => {
      const x = Number(scale.xOf(mark.atMs).toFixed(1));
      return drawMark(mark, i, { x, y: (topOf.get(mark.lane) ?? 0) + laneHeight / 2 });
    })
    .join("");
  const rowsOfLanes = [...topOf, ["packets", packetsTop] as const];
  const borders = rowsOfLanes.map(([, y]) => `<path class="lane" d="M0 ${y}H${width}"/>`).join("");
  const labels = rowsOfLanes.map(
    ([lane, y]) => `<text x="6" y="${y + 17}">${escaped(lane)}</text>`,
  );
  const rows = marks
    .map(
      ({ atMs, lane, text, isEvent }, i) =>
        `<tr id="line-${i}"${isEvent ? ' class="event"' : ""}><td>${atMs} ms</td>` +
        `<td>${escaped(lane)}</td><td>${escaped(text)}</td></tr>`,
    )
    .join("\n");
  const verdict =
    violation === undefined
      ? "All invariants hold."
      : `<span class="bad">Violated: ${escaped(violation)}</span>`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${escaped(title)}</title><style>${style}</style></head>
<body><h1>${escaped(title)}</h1>
<p>${verdict}</p>
<p>Triangles are events of the scenario, circles are what followed from them. Bars are packets per step: arrivals
above the line, departures below. Each mark leads to its line in the table. A gray band is a time in which nothing
happens.</p>
<div class="drawing"><svg class="labels" width="${labelWidth}" height="${height}">${labels.join("")}</svg>
<svg width="${width}" height="${height}" role="img" aria-label="${escaped(title)}">
${drawAxis(scale, height)}
${borders}
${drawn}${drawPackets(packets, packetsTop, scale)}
</svg></div>
<table>
${rows}
</table></body></html>
`;
}
