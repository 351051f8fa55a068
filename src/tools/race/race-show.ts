// A running race as its user wants to see it: screen, lines or JSON, once a second.
//
// And what the two kinds of races (race-live.ts, race-captures.ts) take and give.

import { toJson } from "../terminal/output.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { raceLines } from "./race-screen.ts";
import type { RaceSession } from "./race-session.ts";
import type { ShredTable } from "./race-table.ts";
import { type RaceFacts, type RaceReport, racePicture, raceReport } from "./report.ts";

export interface RacePlan {
  readonly settleNs: number;
  readonly seconds: number | undefined;
  readonly shredVersion: number;
  readonly json: boolean;
  readonly table: ShredTable | undefined;
}

export interface Raced {
  readonly session: RaceSession;
  readonly facts: RaceFacts;
}

/** The present state, as the user wants to see it. */
export function showRace(
  raced: Raced,
  { json, terminal }: { readonly json: boolean; readonly terminal: Terminal },
): void {
  const report: RaceReport = raceReport(raced.session, raced.facts, false);
  if (json) terminal.line(toJson({ final: false, ...report }));
  else if (terminal.isLive)
    terminal.redraw(raceLines(report, racePicture(raced.session), terminal.paint));
  else terminal.line(liveLine(report));
}

function liveLine({ seconds, feeds, shreds, slots, verified }: RaceReport): string {
  const shares = feeds.map(({ name, winShare, coverage }) =>
    winShare === null || coverage === null
      ? `${name} -`
      : `${name} first ${(winShare * 100).toFixed(1)} % of all, has ${(coverage * 100).toFixed(1)} %`,
  );
  return [
    `${Math.round(seconds)} s`,
    `${shreds.distinct} shreds in ${slots.judged} slots judged`,
    ...shares,
    verified ? "verified" : "NOT VERIFIED",
  ].join("  ");
}
