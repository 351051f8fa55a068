// Timeline chart of one transaction: one row each for the gateway, every route and the chain.

import type { JSX } from "preact";
import type { StatusEvent } from "../call-readers.ts";
import { useWidth } from "../hooks.ts";
import { type Drawing, displayText, drawingOf, type Mark, outcomeOf } from "../timeline.ts";
import { offset } from "../units.ts";

const rowHeight = 30;
const axisHeight = 22;
const right = 14;

function titleOf({ event }: Mark): string {
  const { kind, route, attempt, offsetMs } = event;
  const onRoute = route === null ? "" : ` on ${route}`;
  const times = attempt === null ? "" : `, attempt ${attempt}`;
  return `${displayText(kind)}${onRoute}${times}: ${offset(offsetMs)}`;
}

interface TimelineRowsProps {
  readonly drawing: Drawing;
  readonly width: number;
  readonly left: number;
}

function TimelineRows({ drawing, width, left }: TimelineRowsProps): JSX.Element {
  const x = (place: number) => left + place * Math.max(1, width - left - right);
  return (
    <>
      {drawing.rows.map(({ name, marks }, i) => {
        const y = (i + 0.5) * rowHeight;
        const ends = marks.map(({ place }) => x(place));
        return (
          <g key={name}>
            <path class="grid" d={`M${left} ${y}H${width - right}`} />
            <path class="row-span" d={`M${Math.min(...ends)} ${y}H${Math.max(...ends)}`} />
            <text class="label strong" x={0} y={y + 4}>
              {name}
            </text>
            {marks.map((mark) => (
              <circle
                key={`${mark.event.kind}-${mark.event.attempt ?? 0}-${mark.event.offsetMs}`}
                class={`event ${outcomeOf(mark.event.kind)}`}
                cx={x(mark.place)}
                cy={y}
                r={5}
              >
                <title>{titleOf(mark)}</title>
              </circle>
            ))}
          </g>
        );
      })}
    </>
  );
}

const outcomes = ["neutral", "good", "bad", "open"] as const;

/** The events of the chart by the colour of their marks. */
function Legend({ events }: { readonly events: readonly StatusEvent[] }): JSX.Element {
  const kinds = [...new Set(events.map(({ kind }) => kind))];
  const groups = outcomes.map((outcome) => ({
    outcome,
    names: kinds.filter((kind) => outcomeOf(kind) === outcome).map(displayText),
  }));
  return (
    <ul class="legend">
      {groups
        .filter(({ names }) => names.length > 0)
        .map(({ outcome, names }) => (
          <li key={outcome}>
            <svg width={12} height={12} aria-hidden="true">
              <circle class={`event ${outcome}`} cx={6} cy={6} r={4} />
            </svg>
            {names.join(", ")}
          </li>
        ))}
    </ul>
  );
}

export function TimelineChart({
  events,
}: {
  readonly events: readonly StatusEvent[];
}): JSX.Element {
  const [frame, width] = useWidth();
  const drawing = drawingOf(events);
  const bottom = drawing.rows.length * rowHeight;
  const longest = Math.max(...drawing.rows.map(({ name }) => name.length));
  const left = Math.min(width * 0.34, longest * 7.5 + 16);
  const last = events.at(-1);
  const label = last
    ? `Timeline: ${events.length} events from the receipt to ${displayText(last.kind)}, ${offset(last.offsetMs)}. The table below lists them.`
    : "Timeline without events.";
  return (
    <div class="frame" ref={frame}>
      <svg width={width} height={bottom + axisHeight} role="img" aria-label={label}>
        {drawing.ticks.map(({ offsetMs, place }) => {
          const x = left + place * Math.max(1, width - left - right);
          return (
            <g key={offsetMs}>
              <path class="grid dotted" d={`M${x} 0V${bottom}`} />
              <text class="label" x={x} y={bottom + 15} text-anchor="middle">
                {offsetMs >= 1000 ? `${offsetMs / 1000} s` : `${offsetMs} ms`}
              </text>
            </g>
          );
        })}
        <TimelineRows drawing={drawing} width={width} left={left} />
      </svg>
      <Legend events={events} />
    </div>
  );
}
