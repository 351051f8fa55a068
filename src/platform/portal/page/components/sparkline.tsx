// Sparkline: the last minute of a rate as a line without axes. The number is shown next to it.

import type { JSX } from "preact";
import { ratesMax } from "../rate-history.ts";
import { linear, linePath } from "../scale.ts";

const width = 96;
const height = 22;

export function Sparkline({ values }: { readonly values: readonly number[] }): JSX.Element {
  const x = linear([0, ratesMax - 1], [1, width - 1]);
  const y = linear([0, Math.max(1, ...values)], [height - 2, 2]);
  const start = ratesMax - values.length;
  return (
    <svg class="spark" width={width} height={height} aria-hidden="true">
      <path class="base" d={`M0 ${height - 1}h${width}`} />
      <path class="line" d={linePath(values.map((value, i) => [x(start + i), y(value)]))} />
    </svg>
  );
}

/** A share as a small bar. The number is shown next to it. */
export function ShareBar({ share }: { readonly share: number }): JSX.Element {
  return (
    <svg class="share" width={64} height={8} aria-hidden="true">
      <rect class="trough" width={64} height={8} rx={2} />
      <rect class="fill" width={64 * Math.min(1, Math.max(0, share))} height={8} rx={2} />
    </svg>
  );
}
