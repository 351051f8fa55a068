// Coverage chart: received share of each slot, one column per slot, newest at the right.

import type { JSX } from "preact";
import uPlot from "uplot";
import type { CoverageView } from "../../types.ts";
import { type ChartKind, columnBox, type Paint } from "../chart-drawing.ts";
import { count, percent } from "../units.ts";
import { Chart } from "./chart.tsx";
import { Numbers, Rows, Table } from "./rows.tsx";

type Slot = CoverageView["slots"][number];

/** The axis has space for this many columns, so that few slots do not become wide blocks. */
const slotsMin = 32;
/** Gap between neighbouring columns, in CSS pixels. */
const columnGap = 1;
const columnMax = 22;
/** Half the width of a nine-digit label, in CSS pixels. */
const labelHalf = 36;
const labelGap = 96;
const labelSteps = [1, 2, 4, 8, 16, 32, 64];

/** Columns below this share are drawn as incomplete. */
const whole = 0.999;

function pointText(slot: Slot): string {
  const share = slot.share === null ? "length not known yet" : `${percent(slot.share)} received`;
  const counts = `${count(slot.data)} data and ${count(slot.code)} code shreds`;
  return `Slot ${slot.slot}: ${share}, ${counts} within ${count(Math.round(slot.spanMs))} ms.`;
}

function summaryOf(slots: readonly Slot[]): string {
  const known = slots.flatMap(({ share }) => (share === null ? [] : [share]));
  if (known.length === 0) return "No slot length is known yet.";
  const complete = known.filter((share) => share >= whole).length;
  const mean = known.reduce((sum, share) => sum + share, 0) / known.length;
  return `${complete} of ${known.length} slots complete, ${percent(mean)} of all shreds received.`;
}

function colourOf({ share }: Slot, paint: Paint): string {
  if (share === null) return paint.colour("strong-line");
  return paint.colour(share >= whole ? "column" : "partial");
}

/** A slot whose length is not known yet has a column of full height. */
function heightOf({ share }: Slot): number {
  return Math.max(0.02, share ?? 1);
}

function slotAxis(shown: () => readonly Slot[], paint: Paint): uPlot.Axis {
  return {
    ...paint.axis(null),
    size: 22,
    splits: (plot) => {
      const width = plot.valToPos(1, "x") - plot.valToPos(0, "x");
      const step = labelSteps.find((each) => each * width >= labelGap) ?? 64;
      // Label every `step`th slot, not every `step`th column: labels then move with their
      // columns.
      return shown().flatMap(({ slot }, i) => (slot % step === 0 ? [i] : []));
    },
    // A label that would exceed the chart at the right is omitted.
    filter: (plot, splits) => {
      const right = plot.bbox.width / uPlot.pxRatio - labelHalf;
      return splits.map((i) => (plot.valToPos(i, "x") <= right ? i : null));
    },
    values: (_, splits) => splits.map((i: number | null) => shown()[i ?? -1]?.slot ?? null),
  };
}

function columnsOf(shown: () => readonly Slot[], paint: Paint): uPlot.Series {
  const fill: uPlot.Series.BarsPathBuilderFacet = {
    unit: 3,
    values: () => shown().map((slot) => colourOf(slot, paint)),
  };
  return {
    ...(uPlot.paths.bars && {
      paths: uPlot.paths.bars({ size: [1, columnMax], gap: columnGap, disp: { fill } }),
    }),
    width: 0,
    points: { show: false },
  };
}

const kind: ChartKind<readonly Slot[]> = {
  height: 136,
  countOf: (slots) => slots.length,
  dataOf: (slots) => [slots.map((_, i) => i), slots.map(heightOf)],
  optionsOf: (shown, paint) => ({
    class: "columns",
    padding: [8, 0, 0, 0],
    hasLine: false,
    scales: {
      x: { time: false, range: () => [-0.5, Math.max(slotsMin, shown().length) - 0.5] },
      y: { range: [0, 1] },
    },
    axes: [
      slotAxis(shown, paint),
      {
        ...paint.axis(),
        size: 46,
        splits: [0, 0.5, 1],
        values: (_, splits) => splits.map((share) => `${share * 100} %`),
      },
    ],
    series: [columnsOf(shown, paint)],
    points: {
      fill: () => "var(--text)",
      stroke: () => "transparent",
      bbox: (plot) => {
        const at = plot.cursor.idxs?.[1] ?? 0;
        const slot = shown()[at];
        return columnBox(plot, { from: at - 0.4, to: at + 0.4, y: slot ? heightOf(slot) : 0 });
      },
    },
  }),
  textOf: (slots, at) => {
    const pointed = at === null ? undefined : slots[at];
    return pointed ? pointText(pointed) : summaryOf(slots);
  },
};

export function CoverageChart({ slots }: { readonly slots: readonly Slot[] }): JSX.Element {
  return (
    <>
      <Chart kind={kind} shown={slots} label="Coverage, slot by slot" />
      <Numbers>{() => <CoverageTable slots={slots} />}</Numbers>
    </>
  );
}

function CoverageTable({ slots }: { readonly slots: readonly Slot[] }): JSX.Element {
  const columns = [
    { name: "Slot" },
    { name: "Seen", isNumber: true },
    { name: "Data received", isNumber: true },
    { name: "Data shreds", isNumber: true },
    { name: "Code shreds", isNumber: true },
    { name: "Within", isNumber: true },
  ];
  const share = (value: number | null) => (value === null ? "unknown" : percent(value));
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
