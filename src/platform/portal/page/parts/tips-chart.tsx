// Percentiles of landed tips over a day: one line each, on a logarithmic axis of SOL.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { TipPoint } from "../../types.ts";
import { useWidth } from "../hooks.ts";
import { hourTicks, linear, linePath, logarithmic, logExtent, logTicks } from "../scale.ts";
import { clock, ms, stamp } from "../times.ts";
import { count, sol, solDigits } from "../units.ts";
import { Readout } from "./readout.tsx";
import { type Column, cellClass, Numbers, Rows, Table } from "./rows.tsx";

export const percentiles = ["p25", "p50", "p75", "p95", "p99"] as const;

const height = 260;
const plot = { top: 10, bottom: 22, left: 78, right: 34 } as const;
const labelGap = 56;
/** Labels at the right end of the lines need so much. */
const endLabelGap = 13;
const ticksMax = 8;
const quarterMs = 15 * 60_000;

function toldOf(point: TipPoint): string {
  const values = percentiles.map((name) => `${name} ${sol(point[name])}`).join(" · ");
  const stale = point.isStale ? ", stale" : "";
  return `${stamp(ms(point.time))}: ${values} (${count(point.count)} tips${stale}).`;
}

/** Where nothing was counted there is nothing to draw. */
function hasTips({ count: tips }: TipPoint): boolean {
  return tips > 0;
}

interface PlotProps {
  readonly points: readonly TipPoint[];
  readonly width: number;
  readonly at: number | null;
}

/** From the first point to the last, an hour at least. */
function timeScale(points: readonly TipPoint[], width: number) {
  const lastMs = ms(points.at(-1)?.time ?? "");
  const firstMs = Math.min(ms(points[0]?.time ?? ""), lastMs - 4 * quarterMs);
  const right = Math.max(plot.left + 1, width - plot.right);
  return { firstMs, lastMs, x: linear([firstMs, lastMs], [plot.left, right]) };
}

/** Labels at the end of the lines, none above another. */
function spread(places: readonly number[]): number[] {
  let free = Number.POSITIVE_INFINITY;
  return places.map((place) => {
    const y = Math.min(place, free);
    free = y - endLabelGap;
    return y;
  });
}

function Plot({ points, width, at }: PlotProps): JSX.Element {
  const { firstMs, lastMs, x } = timeScale(points, width);
  const values = points.filter(hasTips).flatMap((point) => percentiles.map((name) => point[name]));
  const extent = logExtent(values);
  const bottom = height - plot.bottom;
  const y = logarithmic(extent, [bottom, plot.top]);
  const newest = points.findLast(hasTips);
  const ends = newest ? spread(percentiles.map((name) => y(newest[name]))) : [];
  const pointed = at === null ? undefined : points[at];
  const right = width - plot.right;
  return (
    <>
      {logTicks(extent, ticksMax).map((tick) => (
        <g key={tick}>
          <path class="grid" d={`M${plot.left} ${y(tick).toFixed(1)}H${right}`} />
          <text class="label" x={plot.left - 8} y={y(tick) + 4} text-anchor="end">
            {solDigits(tick)}
          </text>
        </g>
      ))}
      {hourTicks([firstMs, lastMs], width - plot.left, labelGap).map((tick) => (
        <text key={tick} class="label" x={x(tick)} y={height - 4} text-anchor="middle">
          {clock(tick)}
        </text>
      ))}
      {percentiles.map((name, i) => (
        <g key={name} class={name}>
          <path
            class="line"
            d={linePath(
              points.map((point) => (hasTips(point) ? [x(ms(point.time)), y(point[name])] : null)),
            )}
          />
          {points.length === 1 && newest ? (
            <circle class="dot" cx={x(ms(newest.time))} cy={y(newest[name])} r={3} />
          ) : null}
          {ends[i] === undefined ? null : (
            <text class="label strong" x={right + 5} y={ends[i] + 4}>
              {name}
            </text>
          )}
        </g>
      ))}
      {pointed ? (
        <g>
          <path class="mark" d={`M${x(ms(pointed.time)).toFixed(1)} ${plot.top}V${bottom}`} />
          {hasTips(pointed)
            ? percentiles.map((name) => (
                <g key={name} class={name}>
                  <circle class="dot" cx={x(ms(pointed.time))} cy={y(pointed[name])} r={3} />
                </g>
              ))
            : null}
        </g>
      ) : null}
    </>
  );
}

export function TipsChart({ points }: { readonly points: readonly TipPoint[] }): JSX.Element {
  const [frame, width] = useWidth();
  const [at, setAt] = useState<number | null>(null);
  const pointed = points[at ?? points.length - 1];
  const pointAt = (share: number) => {
    const { x } = timeScale(points, width);
    const distances = points.map(({ time }) => Math.abs(x(ms(time)) - share * width));
    return distances.indexOf(Math.min(...distances));
  };
  return (
    <>
      <Readout
        label="Percentiles of landed tips, quarter of an hour by quarter"
        points={points.length}
        at={at}
        onAt={setAt}
        told={pointed ? toldOf(pointed) : ""}
        pointAt={pointAt}
        frame={frame}
      >
        <svg width={width} height={height} aria-hidden="true">
          <Plot points={points} width={width} at={at} />
        </svg>
      </Readout>
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
                {solDigits(point[name])}
              </td>
            ))}
            <td class={cellClass({ isNumber: true })}>{count(point.count)}</td>
          </tr>
        )}
      />
    </Table>
  );
}
