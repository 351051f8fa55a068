// Current state of a race for its user: screen, lines or JSON, once a second.
//
// Also defines the input and output of both kinds of races (race-live.ts, race-captures.ts).

import { formatLag } from "../report/number-text.ts";
import { toJson } from "../terminal/formatting.ts";
import type { Terminal } from "../terminal/terminal.ts";
import {
  type AnyRaceSession,
  type RaceFacts,
  type RaceReport,
  racePicture,
  raceReport,
} from "./race-report.ts";
import { raceLines } from "./race-screen.ts";
import type { ShredTable } from "./shred-table.ts";

export interface RacePlan {
  readonly settleNs: number;
  readonly seconds: number | undefined;
  readonly shredVersion: number;
  readonly json: boolean;
  readonly table: ShredTable | undefined;
}

export interface RaceResult {
  readonly session: AnyRaceSession;
  readonly facts: RaceFacts;
}

/** Prints the current state in the selected format. */
export function showRace(
  raced: RaceResult,
  { json, terminal }: { readonly json: boolean; readonly terminal: Terminal },
): void {
  const report: RaceReport = raceReport(raced.session, raced.facts, false);
  if (json) terminal.line(toJson({ final: false, ...report }));
  else if (terminal.isLive)
    terminal.redraw(raceLines(report, racePicture(raced.session), terminal.paint));
  else terminal.line(liveLine(report));
}

function liveLine({ unit, seconds, feeds, shreds, slots, verified }: RaceReport): string {
  const shares = feeds.map(({ name, winShare, coverage }) =>
    winShare === null || coverage === null
      ? `${name} -`
      : `${name} first ${(winShare * 100).toFixed(1)} %, coverage ${(coverage * 100).toFixed(1)} %`,
  );
  const delays = feeds.flatMap(({ name, traces }) =>
    traces.map(
      ({ region, delayNs: { p50 } }) =>
        `${name} trace packets from ${region} ${p50 === null ? "-" : formatLag(p50)}`,
    ),
  );
  return [
    `${Math.round(seconds)} s`,
    `${shreds.distinct} ${unit}s in ${slots.judged} slots judged`,
    ...shares,
    ...delays,
    verified ? "verified" : "NOT VERIFIED",
  ].join("  ");
}
