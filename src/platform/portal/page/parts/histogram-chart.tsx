// A latency histogram with its percentiles.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { HistogramView } from "../../types.ts";
import { type Bar, barsOf, extentOf } from "../histogram.ts";
import { useWidth } from "../hooks.ts";
import { type Extent, logarithmic, logTicks, type Scale } from "../scale.ts";
import { count, nanoseconds, percent, tickNanoseconds } from "../units.ts";
import { Empty } from "./basics.tsx";
import { Readout } from "./readout.tsx";
import { Numbers, Rows, Table } from "./rows.tsx";

const height = 148;
const top = 26;
const bottom = height - 20;
const labelGap = 64;

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

interface MarksProps {
  readonly histogram: HistogramView;
  readonly extent: Extent;
  readonly x: Scale;
  readonly width: number;
}

/** Percentiles that lie close together share the room above by stepping down. */
function Marks({ histogram, extent, x, width }: MarksProps): JSX.Element {
  const marks = percentilesOf(histogram).filter(
    ([name, ns]) => name !== "max" && ns >= extent[0] && ns <= extent[1],
  );
  let lastEnd = -1;
  return (
    <g>
      {marks.map(([name, ns]) => {
        const at = x(ns);
        const isFree = at > lastEnd;
        if (isFree) lastEnd = at + 30;
        return (
          <g key={name}>
            <path class="mark" d={`M${at.toFixed(1)} ${isFree ? 16 : top}V${bottom}`} />
            {isFree ? (
              <text class="label strong" x={Math.min(at, width - 14)} y={12} text-anchor="middle">
                {name}
              </text>
            ) : null}
          </g>
        );
      })}
    </g>
  );
}

interface HistogramChartProps {
  readonly histogram: HistogramView;
  readonly label: string;
}

export function HistogramChart({ histogram, label }: HistogramChartProps): JSX.Element {
  const [frame, width] = useWidth();
  const [at, setAt] = useState<number | null>(null);
  const bars = barsOf(histogram);
  const extent = extentOf(bars);
  if (!extent) return <Empty>Nothing was measured in the last minute.</Empty>;
  const x = logarithmic(extent, [8, Math.max(9, width - 8)]);
  const pointed = at === null ? undefined : bars[at];
  const told = pointed
    ? `${rangeText(pointed)}: ${count(pointed.count)} shreds, ${percent(pointed.share)}.`
    : percentilesOf(histogram)
        .map(([name, ns]) => `${name} ${nanoseconds(ns)}`)
        .join(" · ");
  const pointAt = (share: number) => {
    const found = bars.findIndex(({ toNs }) => x(toNs) >= share * width);
    return found === -1 ? bars.length - 1 : found;
  };
  return (
    <>
      <Readout
        label={label}
        points={bars.length}
        at={at}
        onAt={setAt}
        told={told}
        pointAt={pointAt}
        frame={frame}
      >
        <svg width={width} height={height} aria-hidden="true">
          <path class="grid" d={`M0 ${bottom}H${width}`} />
          {bars.map((bar, i) => {
            const tall = bar.count === 0 ? 0 : Math.max(1, (bottom - top) * bar.height);
            return (
              <rect
                key={bar.toNs}
                class={i === at ? "column at" : "column"}
                x={x(bar.fromNs).toFixed(1)}
                y={(bottom - tall).toFixed(1)}
                width={Math.max(1, x(bar.toNs) - x(bar.fromNs) - 1).toFixed(1)}
                height={tall.toFixed(1)}
              />
            );
          })}
          <Marks histogram={histogram} extent={extent} x={x} width={width} />
          {logTicks(extent, Math.max(2, Math.floor(width / labelGap))).map((tick) => (
            <text
              key={tick}
              class="label"
              x={Math.min(width - 22, Math.max(22, x(tick)))}
              y={height - 4}
              text-anchor="middle"
            >
              {tickNanoseconds(tick)}
            </text>
          ))}
        </svg>
      </Readout>
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
