// Chart drawing: one uPlot chart with its data, size and cursor.
//
// Used by components/chart.tsx. uPlot draws on a canvas, to which style sheets do not apply. Each
// drawing therefore reads colours from the style sheet's variables, and a change of the colour
// scheme redraws the chart. components/readout.tsx replaces uPlot's pointer handling.

import uPlot from "uplot";
import { watchColours } from "./theme.ts";

type PlotOptions = Pick<uPlot.Options, "axes" | "class" | "padding" | "scales"> & {
  /** Without the entry for the x values. */
  readonly series: uPlot.Series[];
  /** Drawing order; axes first if undefined. */
  readonly layers?: readonly ("axes" | "series")[];
  /** Highlight of the point under the cursor. */
  readonly points: uPlot.Cursor.Points;
  /** Whether a vertical line crosses the point under the cursor. */
  readonly hasLine: boolean;
};

/** Definition shared by all charts of one kind. `T` is the data of one chart. */
export interface ChartKind<T> {
  /** Height in CSS pixels, including axes. */
  readonly height: number;
  /** Number of points that the cursor can select. */
  readonly countOf: (shown: T) => number;
  /** The x values in ascending order, then one array of y values for each series. */
  readonly dataOf: (shown: T) => uPlot.AlignedData;
  /** Called once per drawing; `shown` returns the current data. */
  readonly optionsOf: (shown: () => T, paint: Paint) => PlotOptions;
  /** Returns the point at a value of the x axis; if undefined, the nearest x value is used. */
  readonly indexAt?: (shown: T, value: number) => number;
  /** Describes the point at `at`; for null, summarizes all points. */
  readonly textOf: (shown: T, at: number | null) => string;
}

/** Colours and font of the style sheet. */
export class Paint {
  readonly #host: HTMLElement;
  readonly font: string;

  constructor(host: HTMLElement) {
    this.#host = host;
    this.font = `12px ${getComputedStyle(host).fontFamily}`;
  }

  /** Returns the current value of a colour variable in a form that a canvas accepts. */
  colour(name: string): string {
    const { style } = this.#host;
    style.color = `var(--${name})`;
    const { color } = getComputedStyle(this.#host);
    style.color = "";
    return color;
  }

  /** Common axis style: muted labels, no ticks, and a grid unless `grid` is null. */
  axis(grid: uPlot.Axis.Grid | null = {}): uPlot.Axis {
    return {
      font: this.font,
      stroke: () => this.colour("muted"),
      gap: 6,
      ticks: { show: false },
      grid: grid ? { stroke: () => this.colour("line"), width: 1, ...grid } : { show: false },
    };
  }
}

/** Returns a column of a bar chart in CSS pixels of the plotting area. */
export function columnBox(
  plot: uPlot,
  { from, to, y }: { readonly from: number; readonly to: number; readonly y: number },
): uPlot.BBox {
  const left = plot.valToPos(from, "x");
  const top = plot.valToPos(y, "y");
  const bottom = plot.bbox.height / uPlot.pxRatio;
  return { left, top, width: Math.max(1, plot.valToPos(to, "x") - left), height: bottom - top };
}

interface Given<T> {
  readonly kind: ChartKind<T>;
  readonly shown: T;
  readonly width: number;
}

const ignored = () => null;
const unbound: uPlot.Cursor.Bind = {
  mousedown: ignored,
  mouseup: ignored,
  click: ignored,
  dblclick: ignored,
  mousemove: ignored,
  mouseleave: ignored,
  mouseenter: ignored,
};

export class ChartDrawing<T> {
  readonly #kind: ChartKind<T>;
  readonly #plot: uPlot;
  readonly #endWatch: () => void;
  #shown: T;
  #at: number | null = null;

  constructor(host: HTMLElement, { kind, shown, width }: Given<T>) {
    this.#kind = kind;
    this.#shown = shown;
    const options = kind.optionsOf(() => this.#shown, new Paint(host));
    this.#plot = new uPlot(this.#completed(options, width), kind.dataOf(shown), host);
    this.#endWatch = watchColours(() => this.#plot.redraw());
  }

  #completed(
    { series, points, hasLine, layers = ["axes", "series"], ...options }: PlotOptions,
    width: number,
  ): uPlot.Options {
    const completed: uPlot.Options = {
      ...options,
      width,
      height: this.#kind.height,
      legend: { show: false },
      series: [{}, ...series],
      cursor: {
        x: hasLine,
        y: false,
        points,
        // Do not use the point nearest in pixels: it can differ on logarithmic axes.
        dataIdx: () => this.#at ?? 0,
        drag: { x: false, y: false, setScale: false },
        bind: unbound,
      },
    };
    // uPlot declares its layer names as an enum without values, so a cast is necessary.
    return Object.assign(completed, { drawOrder: layers });
  }

  /** Draws new data immediately. */
  show(shown: T): void {
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#plot.batch(() => this.#plot.setData(this.#kind.dataOf(shown)));
    this.point(this.#at);
  }

  resize(width: number): void {
    if (width === this.#plot.width || width === 0) return;
    this.#plot.setSize({ width, height: this.#kind.height });
  }

  /** Selects a point; null selects none. */
  point(at: number | null): void {
    this.#at = at;
    const value = at === null ? undefined : this.#plot.data[0]?.[at];
    const left = value === undefined ? -10 : Math.max(0, this.#plot.valToPos(value, "x"));
    this.#plot.setCursor({ left, top: value === undefined ? -10 : 0 }, false);
  }

  /** Returns the point at a share of the chart's width, 0 to 1. */
  indexAt(share: number): number {
    const plotLeft = this.#plot.bbox.left / uPlot.pxRatio;
    const value = this.#plot.posToVal(share * this.#plot.width - plotLeft, "x");
    return this.#kind.indexAt?.(this.#shown, value) ?? this.#plot.valToIdx(value);
  }

  close(): void {
    this.#endWatch();
    this.#plot.destroy();
  }
}
