// Transaction timeline as a drawing: one row for the service, one for each route and one for the
// chain. Every event is a mark at its time after receipt.
//
// Pure. The axis is logarithmic from 0.1 ms: the service's steps take microseconds and the
// chain's hundreds of milliseconds, and both must be visible.

import type { StatusEvent } from "./call-readers.ts";
import { decadeTicks, type Extent, logarithmic, type Scale } from "./scale.ts";

export interface Mark {
  readonly event: StatusEvent;
  /** 0 (receipt) to 1 (end). */
  readonly place: number;
}

interface TimelineRow {
  readonly name: string;
  readonly marks: readonly Mark[];
}

export interface Drawing {
  readonly rows: readonly TimelineRow[];
  readonly ticks: readonly { readonly offsetMs: number; readonly place: number }[];
}

const serviceRow = "gateway";
const chainRow = "chain";

/** Earlier events are drawn at the start. */
const leastMs = 0.1;

const chainKinds: readonly string[] = ["seen", "withdrawn", "landed", "landed_failed"];

function rowOf({ route, kind }: Pick<StatusEvent, "route" | "kind">): string {
  return route ?? (chainKinds.includes(kind) ? chainRow : serviceRow);
}

function extentOf(events: readonly StatusEvent[]): Extent {
  const last = Math.max(leastMs, ...events.map(({ offsetMs }) => offsetMs));
  return [leastMs, Math.max(last, leastMs * 10)];
}

/** Share of the axis for the receipt, left of the first decade. */
const receiptShare = 0.04;

export function drawingOf(events: readonly StatusEvent[]): Drawing {
  const extent = extentOf(events);
  const scale: Scale = logarithmic(extent, [receiptShare, 1]);
  const placeOf = (offsetMs: number) => (offsetMs <= 0 ? 0 : scale(offsetMs));
  const routes = events.flatMap(({ route }) => (route === null ? [] : [route]));
  const names = [...new Set([serviceRow, ...routes, chainRow])];
  const rows = names.map((name) => ({
    name,
    marks: events
      .filter((event) => rowOf(event) === name)
      .map((event) => ({ event, place: placeOf(event.offsetMs) })),
  }));
  const ticks = decadeTicks([extent[0], 10 ** Math.floor(Math.log10(extent[1]) + 1e-9)]);
  return {
    rows: rows.filter(({ marks }) => marks.length > 0),
    ticks: ticks.map((offsetMs) => ({ offsetMs, place: placeOf(offsetMs) })),
  };
}

type Outcome = "good" | "bad" | "open" | "neutral";

/** Returns the colour class of a state or event. The word is always shown next to the colour. */
export function outcomeOf(state: string): Outcome {
  if (
    ["landed", "acknowledged", "seen", "counted", "active", "up", "reached", "subscribed"].includes(
      state,
    )
  )
    return "good";
  if (
    [
      "landed_failed",
      "rejected",
      "refused",
      "failed",
      "failing",
      "dropped",
      "down",
      "unreachable",
      "unusable",
    ].includes(state)
  ) {
    return "bad";
  }
  return [
    "open",
    "pending",
    "unproved",
    "expiring",
    "paused",
    "held",
    "auction_lost",
    "withdrawn",
    "silent",
    "failing",
  ].includes(state)
    ? "open"
    : "neutral";
}

/** Returns an event of the tier history for display. */
export function tierEventText(kind: string): string {
  return kind === "tip_claimed"
    ? "tip claimed by its payer for another account"
    : displayText(kind);
}

/** Returns a state for display: "landed_failed" becomes words. */
export function displayText(state: string): string {
  return state === "unproved" ? "unverified" : state.replaceAll("_", " ");
}
