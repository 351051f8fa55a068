// A chart that can be read point by point: by pointer, by touch, and by the arrow keys.
//
// Over the drawing lies a range input that nobody sees: it brings keys, focus and what screen readers
// say. What is under the cursor is told below the chart.

import type { ComponentChildren, JSX } from "preact";

interface ReadoutProps {
  readonly label: string;
  /** How many points there are. */
  readonly points: number;
  /** Null: nothing is pointed at. */
  readonly at: number | null;
  readonly onAt: (at: number | null) => void;
  /** Of the point under the cursor, or of the whole. */
  readonly told: string;
  /** The nearest point to a share of the width, 0 to 1. */
  readonly pointAt: (share: number) => number;
  readonly frame: (element: Element | null) => void;
  readonly children: ComponentChildren;
}

export function Readout(props: ReadoutProps): JSX.Element {
  const { label, points, at, onAt, told, pointAt, frame, children } = props;
  const move = ({ clientX, currentTarget }: { clientX: number; currentTarget: HTMLElement }) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    if (points > 0 && width > 0) onAt(pointAt((clientX - left) / width));
  };
  return (
    <div class="chart">
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
          aria-valuetext={told}
          min={0}
          max={Math.max(0, points - 1)}
          value={at ?? points - 1}
          disabled={points === 0}
          onFocus={() => onAt(at ?? points - 1)}
          onBlur={() => onAt(null)}
          onInput={({ currentTarget }) => onAt(Number(currentTarget.value))}
        />
      </div>
      <p class="told">{told}</p>
    </div>
  );
}
