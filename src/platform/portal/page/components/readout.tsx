// Chart readout: reads a chart point by point by pointer, touch and arrow keys.
//
// An invisible range input over the drawing provides keyboard control, focus and screen-reader
// output. The text below the chart describes the point under the cursor.

import type { ComponentChildren, JSX } from "preact";
import { useIsStale } from "../hooks.ts";

interface ReadoutProps {
  readonly label: string;
  /** Number of points. */
  readonly points: number;
  /** Null if no point is selected. */
  readonly at: number | null;
  readonly onAt: (at: number | null) => void;
  /** Text of the selected point, or of the whole chart. */
  readonly text: string;
  /** Returns the point nearest to a share of the width, 0 to 1. */
  readonly pointAt: (share: number) => number;
  readonly frame: (element: Element | null) => void;
  readonly children: ComponentChildren;
}

export function Readout(props: ReadoutProps): JSX.Element {
  const { label, points, at, onAt, text, pointAt, frame, children } = props;
  const isStale = useIsStale();
  const move = ({ clientX, currentTarget }: { clientX: number; currentTarget: HTMLElement }) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    if (points > 0 && width > 0) onAt(pointAt((clientX - left) / width));
  };
  return (
    <div class={isStale ? "chart stale" : "chart"}>
      <div
        class="frame"
        ref={frame}
        onPointerMove={move}
        onPointerDown={move}
        onPointerLeave={() => onAt(null)}
      >
        {children}
        <input
          type="range"
          class="cursor"
          aria-label={label}
          aria-valuetext={text}
          min={0}
          max={Math.max(0, points - 1)}
          value={at ?? points - 1}
          disabled={points === 0}
          onFocus={() => onAt(at ?? points - 1)}
          onBlur={() => onAt(null)}
          onInput={({ currentTarget }) => onAt(Number(currentTarget.value))}
        />
      </div>
      <p class="readout-text">
        {isStale ? <strong>Not live. </strong> : null}
        {text}
      </p>
    </div>
  );
}
