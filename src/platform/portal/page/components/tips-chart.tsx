// Tips chart: percentiles of landed tips over a day or a week, one line each, on a logarithmic SOL axis.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import type { TipPoint } from "../../types.ts";
import type { ChartKind, Paint } from "../chart-drawing.ts";
import { logExtent, logTicks } from "../scale.ts";
import { clock, day, ms, stamp } from "../times.ts";
import { isAlone, type ShownTips, withGaps } from "../tip-gaps.ts";
import { count, sol, solDigits } from "../units.ts";
import { Chart } from "./chart.tsx";
import { type Column, cellClass, Numbers, Rows, Table } from "./rows.tsx";

export const percentiles = ["p25", "p50", "p75", "p95", "p99"] as const;
type Percentile = (typeof percentiles)[number];

const hourMs = 60 * 60_000;
/** Minimum distance between labels at the right end of the lines, in CSS pixels. */
const endLabelGap = 13;
const ticksMax = 8;

function pointText(point: ShownTips): string {
  const at = stamp(ms(point.time));
  if (point.isGap) return `${at}: no values.`;
  if (!hasTips(point)) return `${at}: no tip landed.`;
  const values = percentiles.map((name) => `${name} ${sol(point[name])}`).join(" · ");
  return `${at}: ${values} (${count(point.count)} tips).`;
}

/** False for points without tips; they are not drawn. */
function hasTips({ count: tips }: TipPoint): boolean {
  return tips > 0;
}

/** Positions of the labels at the line ends, without overlap. */
function spread(places: readonly number[]): number[] {
  let free = Number.POSITIVE_INFINITY;
  return places.map((place) => {
    const y = Math.min(place, free);
    free = y - endLabelGap;
    return y;
  });
}

/** Labels are at full hours UTC: every step divides a day. Midnights of a week show the day. */
function hourAxis(paint: Paint): uPlot.Axis {
  return {
    ...paint.axis(null),
    size: 24,
    space: 48,
    incrs: [1, 2, 3, 4, 6, 12, 24, 48].map((hours) => hours * hourMs),
    values: (plot, splits) => {
      const { min = 0, max = 0 } = plot.scales["x"] ?? {};
      const isLong = (max ?? 0) - (min ?? 0) > 36 * hourMs;
      return splits.map((at) => (isLong && at % (24 * hourMs) === 0 ? day(at) : clock(at)));
    },
  };
}

function solAxis(paint: Paint): uPlot.Axis {
  return {
    ...paint.axis(),
    size: 84,
    splits: (_plot, _axis, from, to) => logTicks([from, to], ticksMax),
    filter: (_, splits) => splits,
    values: (_, splits) => splits.map((lamports) => solDigits(lamports)),
  };
}

/** Names of the lines at their right ends. */
function nameAxis(shown: () => readonly ShownTips[], paint: Paint): uPlot.Axis {
  return {
    ...paint.axis(null),
    scale: "y",
    side: 1,
    size: 36,
    stroke: () => paint.colour("text"),
    splits: (plot) => {
      const newest = shown().findLast(hasTips);
      if (!newest) return [];
      const places = percentiles.map((name) => plot.valToPos(newest[name], "y"));
      return spread(places).map((place) => plot.posToVal(place, "y"));
    },
    filter: (_, splits) => splits,
    values: (_, splits) => percentiles.slice(0, splits.length),
  };
}

function lineOf(name: Percentile, shown: () => readonly ShownTips[], paint: Paint): uPlot.Series {
  const stroke = () => paint.colour(name);
  const filter = () => shown().flatMap((_, i) => (isAlone(shown(), i) ? [i] : []));
  return { stroke, width: 1.75, points: { show: true, filter, size: 6, fill: stroke, width: 0 } };
}

const kind: ChartKind<readonly ShownTips[]> = {
  height: 260,
  countOf: (points) => points.length,
  dataOf: (points) => [
    points.map(({ time }) => ms(time)),
    ...percentiles.map((name) => points.map((point) => (hasTips(point) ? point[name] : null))),
  ],
  optionsOf: (shown, paint) => ({
    padding: [10, 0, 0, 0],
    hasLine: true,
    scales: {
      x: { time: false, range: (_, first, last) => [Math.min(first, last - hourMs), last] },
      // Tips of 0 are drawn at the bottom.
      y: {
        distr: 3,
        range: (_, least, most) => [...logExtent([least, most])],
        clamp: (_plot, _value, min) => min,
      },
    },
    axes: [hourAxis(paint), solAxis(paint), nameAxis(shown, paint)],
    series: percentiles.map((name) => lineOf(name, shown, paint)),
    points: {
      size: 7,
      fill: (_, series) => `var(--${percentiles[series - 1] ?? "text"})`,
      stroke: () => "transparent",
    },
  }),
  textOf: (points, at) => {
    const pointed = points[at ?? points.length - 1];
    return pointed ? pointText(pointed) : "";
  },
};

export function TipsChart({ points }: { readonly points: readonly TipPoint[] }): JSX.Element {
  const shown = useMemo(() => withGaps(points), [points]);
  return (
    <>
      <Chart kind={kind} shown={shown} label="Percentiles of landed tips, every 15 minutes" />
      <Numbers>{() => <TipsTable points={points} />}</Numbers>
    </>
  );
}

function TipsTable({ points }: { readonly points: readonly TipPoint[] }): JSX.Element {
  const columns: readonly Column[] = [
    { name: "Refreshed" },
    ...percentiles.map((name) => ({ name: `${name}, SOL`, isNumber: true })),
    { name: "Tips", isNumber: true },
  ];
  return (
    <Table caption="Percentiles of landed tips" columns={columns}>
      <Rows
        items={points.toReversed()}
        keyOf={({ time }) => time}
        draw={(point) => (
          <tr>
            <th scope="row" class="number">
              {stamp(ms(point.time))}
            </th>
            {percentiles.map((name) => (
              <td key={name} class={cellClass({ isNumber: true })}>
                {hasTips(point) ? solDigits(point[name]) : "–"}
              </td>
            ))}
            <td class={cellClass({ isNumber: true })}>{count(point.count)}</td>
          </tr>
        )}
      />
    </Table>
  );
}
