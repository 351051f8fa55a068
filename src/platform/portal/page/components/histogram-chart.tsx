// A latency histogram with its percentiles.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import uPlot from "uplot";
import type { HistogramView } from "../../types.ts";
import { type ChartKind, columnBox, type Paint } from "../chart-drawing.ts";
import { type Bar, barsOf, extentOf } from "../histogram.ts";
import { logTicks } from "../scale.ts";
import { count, nanoseconds, percent, tickNanoseconds } from "../units.ts";
import { Empty } from "./basics.tsx";
import { Chart } from "./chart.tsx";
import { Numbers, Rows, Table } from "./rows.tsx";

/** Minimum distance between neighbouring labels, in CSS pixels. */
const labelGap = 64;
const markGap = 30;

interface Shown {
  readonly histogram: HistogramView;
  readonly bars: readonly Bar[];
}

function rangeText({ fromNs, toNs }: Bar): string {
  return `${nanoseconds(fromNs)} to ${nanoseconds(toNs)}`;
}

function percentilesOf(histogram: HistogramView): readonly (readonly [string, number])[] {
  const { p50Ns, p90Ns, p99Ns, maxNs } = histogram;
  const all = [
    ["p50", p50Ns],
    ["p90", p90Ns],
    ["p99", p99Ns],
    ["max", maxNs],
  ] as const;
  return all.flatMap(([name, ns]) => (ns === null ? [] : [[name, ns] as const]));
}

/** Percentiles that get a mark. */
function marksOf({ histogram, bars }: Shown): readonly (readonly [string, number])[] {
  const [from, to] = extentOf(bars) ?? [0, 0];
  return percentilesOf(histogram).filter(([name, ns]) => name !== "max" && ns >= from && ns <= to);
}

/** Returns "" for a name that would cover the one before it. */
function markNames(plot: uPlot, marks: readonly (readonly [string, number])[]): string[] {
  let free = Number.NEGATIVE_INFINITY;
  return marks.map(([name, ns]) => {
    const at = plot.valToPos(ns, "x");
    if (at < free) return "";
    free = at + markGap;
    return name;
  });
}

function latencyAxis(shown: () => Shown, paint: Paint): uPlot.Axis {
  return {
    ...paint.axis(null),
    size: 24,
    border: { show: true, stroke: () => paint.colour("line"), width: 1 },
    splits: (plot) => {
      const most = Math.floor(plot.width / labelGap);
      return logTicks(extentOf(shown().bars) ?? [1, 10], Math.max(2, most));
    },
    filter: (_, splits) => splits,
    values: (_, splits) => splits.map((ns) => tickNanoseconds(ns)),
  };
}

function percentileAxis(shown: () => Shown, paint: Paint): uPlot.Axis {
  const grid = { stroke: () => paint.colour("text"), dash: [3, 3] };
  return {
    ...paint.axis(grid),
    scale: "x",
    side: 0,
    size: 20,
    gap: 2,
    stroke: () => paint.colour("text"),
    splits: () => marksOf(shown()).map(([, ns]) => ns),
    filter: (_, splits) => splits,
    values: (plot) => markNames(plot, marksOf(shown())),
  };
}

const kind: ChartKind<Shown> = {
  height: 148,
  countOf: ({ bars }) => bars.length,
  // A step extends to the next x value; the last x value only ends the last bar.
  dataOf: ({ bars }) => [
    [...bars.map(({ fromNs }) => fromNs), bars.at(-1)?.toNs ?? 1],
    [...bars.map(({ height }) => height), bars.at(-1)?.height ?? 0],
  ],
  optionsOf: (shown, paint) => ({
    class: "columns",
    // Marks of the percentiles are drawn above the bars.
    layers: ["series", "axes"],
    padding: [0, 22, 0, 22],
    hasLine: false,
    scales: {
      x: { time: false, distr: 3, range: () => [...(extentOf(shown().bars) ?? [1, 10])] },
      y: { range: [0, 1] },
    },
    axes: [latencyAxis(shown, paint), percentileAxis(shown, paint)],
    series: [
      {
        ...(uPlot.paths.stepped && { paths: uPlot.paths.stepped({ align: 1 }) }),
        width: 0,
        fill: () => paint.colour("column"),
        points: { show: false },
      },
    ],
    points: {
      fill: () => "var(--text)",
      stroke: () => "transparent",
      bbox: (plot) => {
        const bar = shown().bars[plot.cursor.idxs?.[1] ?? 0];
        return columnBox(plot, { from: bar?.fromNs ?? 1, to: bar?.toNs ?? 1, y: bar?.height ?? 0 });
      },
    },
  }),
  indexAt: ({ bars }, value) => {
    const found = bars.findIndex(({ toNs }) => toNs >= value);
    return found === -1 ? bars.length - 1 : found;
  },
  textOf: ({ histogram, bars }, at) => {
    const pointed = at === null ? undefined : bars[at];
    if (pointed) {
      return `${rangeText(pointed)}: ${count(pointed.count)} shreds, ${percent(pointed.share)}.`;
    }
    return percentilesOf(histogram)
      .map(([name, ns]) => `${name} ${nanoseconds(ns)}`)
      .join(" · ");
  },
};

interface HistogramChartProps {
  readonly histogram: HistogramView;
  readonly label: string;
}

export function HistogramChart({ histogram, label }: HistogramChartProps): JSX.Element {
  const shown = useMemo(() => ({ histogram, bars: barsOf(histogram) }), [histogram]);
  const { bars } = shown;
  if (bars.length === 0) return <Empty>No measurements in the last minute.</Empty>;
  return (
    <>
      <Chart kind={kind} shown={shown} label={label} />
      <Numbers>{() => <HistogramTable bars={bars} label={label} />}</Numbers>
    </>
  );
}

interface HistogramTableProps {
  readonly bars: readonly Bar[];
  readonly label: string;
}

function HistogramTable({ bars, label }: HistogramTableProps): JSX.Element {
  const columns = [
    { name: "Latency" },
    { name: "Shreds", isNumber: true },
    { name: "Share", isNumber: true },
  ];
  return (
    <Table caption={label} columns={columns}>
      <Rows
        items={bars}
        keyOf={({ toNs }) => String(toNs)}
        draw={(bar) => (
          <tr>
            <th scope="row" class="number">
              {rangeText(bar)}
            </th>
            <td class="number right">{count(bar.count)}</td>
            <td class="number right">{percent(bar.share)}</td>
          </tr>
        )}
      />
    </Table>
  );
}
