// uPlot chart with a readout: describes the point under the cursor for pointer, keyboard and
// screen readers.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ChartDrawing, type ChartKind } from "../chart-drawing.ts";
import { useWidth } from "../hooks.ts";
import { Readout } from "./readout.tsx";

interface ChartProps<T> {
  /** Must keep its identity between renderings. */
  readonly kind: ChartKind<T>;
  readonly shown: T;
  readonly label: string;
}

export function Chart<T>({ kind, shown, label }: ChartProps<T>): JSX.Element {
  const [frame, width] = useWidth();
  const [at, setAt] = useState<number | null>(null);
  const host = useRef<HTMLDivElement>(null);
  const drawing = useRef<ChartDrawing<T> | null>(null);
  const hasWidth = width > 0;
  useEffect(() => {
    if (!host.current || !hasWidth) return undefined;
    const made = new ChartDrawing(host.current, { kind, shown, width });
    drawing.current = made;
    return () => {
      drawing.current = null;
      made.close();
    };
  }, [kind, hasWidth]);
  useEffect(() => drawing.current?.resize(width), [width]);
  useEffect(() => drawing.current?.show(shown), [shown]);
  useEffect(() => drawing.current?.point(at), [at]);
  return (
    <Readout
      label={label}
      points={kind.countOf(shown)}
      at={at}
      onAt={setAt}
      text={kind.textOf(shown, at)}
      pointAt={(share) => drawing.current?.indexAt(share) ?? 0}
      frame={frame}
    >
      <div ref={host} aria-hidden="true" style={{ height: kind.height }} />
    </Readout>
  );
}
