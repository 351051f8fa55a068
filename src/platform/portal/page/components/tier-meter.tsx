// Tier meter: registered tips of the window against the thresholds, as one bar.

import type { JSX } from "preact";
import type { TierView } from "../../types.ts";
import { useWidth } from "../hooks.ts";
import { linear } from "../scale.ts";
import { sol } from "../units.ts";

const height = 46;
const barTop = 6;
const barHeight = 14;
/** Average width of a character of a label, in CSS pixels. */
const labelCharacterWidth = 5.8;

export function TierMeter({ tier }: { readonly tier: TierView }): JSX.Element {
  const [frame, width] = useWidth();
  const { sumLamports, thresholds } = tier;
  const top = thresholds.at(-1)?.thresholdLamports ?? 0;
  // The bar extends beyond the last threshold, so that it does not look full when reached.
  const end = Math.max(top * 1.2, sumLamports);
  const scale = linear([0, end], [0, width]);
  const label = `${sol(sumLamports)} of ${sol(top)}`;
  return (
    <div class="meter" ref={frame}>
      <meter
        class="hidden"
        aria-label={`Registered tips of ${tier.windowHours} hours`}
        max={end}
        value={sumLamports}
        aria-valuetext={label}
      >
        {label}
      </meter>
      <svg width={width} height={height} aria-hidden="true">
        <rect class="trough" y={barTop} width={width} height={barHeight} rx={3} />
        <rect class="fill" y={barTop} width={scale(sumLamports)} height={barHeight} rx={3} />
        {thresholds.map(({ tier: name, thresholdLamports }) => {
          const x = Math.min(width - 1, scale(thresholdLamports));
          const text = `${name} · ${sol(thresholdLamports)}`;
          // Centered below its mark, and moved only as far as the label would leave the frame.
          const half = (text.length * labelCharacterWidth) / 2;
          const labelX = Math.max(half, Math.min(x, width - half));
          return (
            <g key={name}>
              <path class="tick" d={`M${x} ${barTop - 4}v${barHeight + 8}`} />
              <text class="label" x={labelX} y={height - 4} text-anchor="middle">
                {text}
              </text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
