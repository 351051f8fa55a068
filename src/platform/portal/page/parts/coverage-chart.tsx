// How much of each slot reached the relay: one column a slot, newest at the right.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { CoverageView } from "../../types.ts";
import { useWidth } from "../hooks.ts";
import { count, percent } from "../units.ts";
import { Readout } from "./readout.tsx";
import { Numbers, Rows, Table } from "./rows.tsx";

type Slot = CoverageView["slots"][number];

const height = 132;
const plot = { top: 8, bottom: 20, left: 40 } as const;
const columnMax = 22;

/** Below it a column is drawn as incomplete. */
const whole = 0.999;

function toldOf(slot: Slot): string {
  const share = slot.share === null ? "its length is not known yet" : `${percent(slot.share)} seen`;
  const counts = `${count(slot.data)} data and ${count(slot.code)} code shreds`;
  return `Slot ${slot.slot}: ${share}, ${counts} within ${count(Math.round(slot.spanMs))} ms.`;
}

function summaryOf(slots: readonly Slot[]): string {
  const known = slots.flatMap(({ share }) => (share === null ? [] : [share]));
  if (known.length === 0) return "No slot's length is known yet.";
  const complete = known.filter((share) => share >= whole).length;
  const mean = known.reduce((sum, share) => sum + share, 0) / known.length;
  return `${complete} of ${known.length} slots complete, ${percent(mean)} of all shreds seen.`;
}

function classOf({ share }: Slot): string {
  if (share === null) return "column unknown";
  return share >= whole ? "column" : "column partial";
}

interface ColumnsProps {
  readonly slots: readonly Slot[];
  readonly width: number;
  readonly at: number | null;
}

function Columns({ slots, width, at }: ColumnsProps): JSX.Element {
  const bottom = height - plot.bottom;
  const room = bottom - plot.top;
  const step = Math.min(columnMax, (width - plot.left) / Math.max(1, slots.length));
  return (
    <>
      {[0, 0.5, 1].map((share) => (
        <g key={share}>
          <path class="grid" d={`M${plot.left} ${bottom - room * share}H${width}`} />
          <text class="label" x={plot.left - 6} y={bottom - room * share + 4} text-anchor="end">
            {`${share * 100} %`}
          </text>
        </g>
      ))}
      {slots.map((slot, i) => {
        const tall = Math.max(2, room * (slot.share ?? 1));
        return (
          <rect
            key={slot.slot}
            class={i === at ? `${classOf(slot)} at` : classOf(slot)}
            x={(plot.left + i * step).toFixed(1)}
            y={(bottom - tall).toFixed(1)}
            width={Math.max(1, step - 2).toFixed(1)}
            height={tall.toFixed(1)}
          />
        );
      })}
    </>
  );
}

export function CoverageChart({ slots }: { readonly slots: readonly Slot[] }): JSX.Element {
  const [frame, width] = useWidth();
  const [at, setAt] = useState<number | null>(null);
  const pointed = at === null ? undefined : slots[at];
  const first = slots[0]?.slot;
  const last = slots.at(-1)?.slot;
  const step = Math.min(columnMax, (width - plot.left) / Math.max(1, slots.length));
  const pointAt = (share: number) =>
    Math.min(slots.length - 1, Math.max(0, Math.floor((share * width - plot.left) / step)));
  return (
    <>
      <Readout
        label="Coverage, slot by slot"
        points={slots.length}
        at={at}
        onAt={setAt}
        told={pointed ? toldOf(pointed) : summaryOf(slots)}
        pointAt={pointAt}
        frame={frame}
      >
        <svg width={width} height={height} aria-hidden="true">
          <Columns slots={slots} width={width} at={at} />
          <text class="label" x={plot.left} y={height - 4}>
            {first === undefined ? "" : `slot ${first}`}
          </text>
          <text
            class="label"
            x={Math.min(width, plot.left + step * slots.length)}
            y={height - 4}
            text-anchor="end"
          >
            {last === undefined ? "" : `${last}`}
          </text>
        </svg>
      </Readout>
      <Numbers>{() => <CoverageTable slots={slots} />}</Numbers>
    </>
  );
}

function CoverageTable({ slots }: { readonly slots: readonly Slot[] }): JSX.Element {
  const columns = [
    { name: "Slot" },
    { name: "Seen", isNumber: true },
    { name: "Data seen", isNumber: true },
    { name: "Data shreds", isNumber: true },
    { name: "Code shreds", isNumber: true },
    { name: "Within", isNumber: true },
  ];
  const share = (value: number | null) => (value === null ? "not known" : percent(value));
  return (
    <Table caption="Coverage of the newest slots" columns={columns}>
      <Rows
        items={slots.toReversed()}
        keyOf={({ slot }) => String(slot)}
        draw={(slot) => (
          <tr>
            <th scope="row" class="number">
              {slot.slot}
            </th>
            <td class="number right">{share(slot.share)}</td>
            <td class="number right">{share(slot.dataShare)}</td>
            <td class="number right">{count(slot.data)}</td>
            <td class="number right">{count(slot.code)}</td>
            <td class="number right">{count(Math.round(slot.spanMs))} ms</td>
          </tr>
        )}
      />
    </Table>
  );
}
