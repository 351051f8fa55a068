// One uPlot chart on the page: created for a kind of chart, fed with new values, resized, pointed at.
//
// Called by parts/chart.tsx. uPlot draws on a canvas, which knows nothing of style sheets: colours are
// read from the style sheet's variables whenever the chart is drawn, and the chart is drawn again when
// the colour scheme changes. uPlot's own pointer handling is off; parts/readout.tsx replaces it.

import uPlot from "uplot";
import { watchColours } from "./theme.ts";

type PlotOptions = Pick<uPlot.Options, "axes" | "class" | "padding" | "scales"> & {
  /** Without the entry of the x values. */
  readonly series: uPlot.Series[];
  /** What is drawn first, what above it; if undefined, the axes first. */
  readonly layers?: readonly ("axes" | "series")[];
  /** What is highlighted at the point under the cursor. */
  readonly points: uPlot.Cursor.Points;
  /** Whether a vertical line crosses the point under the cursor. */
  readonly hasLine: boolean;
};

/** What all charts of one kind share; `T` is what one of them shows. */
export interface ChartKind<T> {
  /** In CSS pixels, with axes. */
  readonly height: number;
  /** How many points the cursor can stand on. */
  readonly countOf: (shown: T) => number;
  /** The x values in ascending order, then one array of y values for each series. */
  readonly dataOf: (shown: T) => uPlot.AlignedData;
  /** Called once for each drawing; `shown` returns what is shown at that moment. */
  readonly optionsOf: (shown: () => T, paint: Paint) => PlotOptions;
  /** The point at a value of the x axis; if undefined, the nearest x value. */
  readonly indexAt?: (shown: T, value: number) => number;
  /** The point at `at` in words; null: a summary of all points. */
  readonly textOf: (shown: T, at: number | null) => string;
}

/** Colours and letters of the style sheet. */
export class Paint {
  readonly #host: HTMLElement;
  readonly font: string;

  constructor(host: HTMLElement) {
    this.#host = host;
    this.font = `12px ${getComputedStyle(host).fontFamily}`;
  }

  /** The present value of a colour variable, as a canvas takes it. */
  colour(name: string): string {
    const { style } = this.#host;
    style.color = `var(--${name})`;
    const { color } = getComputedStyle(this.#host);
    style.color = "";
    return color;
  }

  /** What axes of all charts have in common: muted labels, no ticks, and a grid unless `grid` is null. */
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

/** A column of a bar chart, in CSS pixels of the plotting area. */
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
        // Not the point that is nearest in pixels: on logarithmic axes that may be another one.
        dataIdx: () => this.#at ?? 0,
        drag: { x: false, y: false, setScale: false },
        bind: unbound,
      },
    };
    // uPlot declares the names of its layers as an enum without values: texts fit no other way.
    return Object.assign(completed, { drawOrder: layers });
  }

  /** Draws new values at once. */
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

  /** Null: nothing is pointed at. */
  point(at: number | null): void {
    this.#at = at;
    const value = at === null ? undefined : this.#plot.data[0]?.[at];
    const left = value === undefined ? -10 : Math.max(0, this.#plot.valToPos(value, "x"));
    this.#plot.setCursor({ left, top: value === undefined ? -10 : 0 }, false);
  }

  /** The point at a share of the chart's width, 0 to 1. */
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
