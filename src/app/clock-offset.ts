// Clock offset: the difference between the wall clocks of this node and of the shared database.
//
// Called by node-directory.ts and database-inspection.ts. Times of registrations and of statistics are
// wrong on a node whose clock is wrong, and all nodes can compare theirs with the same server.

import type { Clock } from "../core/clock.ts";

/** Smaller differences are not reported. */
const offsetMaxMs = 1000;

/** Positive: the clock of this node is ahead. 0 within the uncertainty of the measurement. */
export async function measureClockOffset(
  clock: Pick<Clock, "nowNs" | "monotonicNs">,
  databaseTimeMs: () => Promise<number>,
): Promise<number> {
  const beganNs = clock.monotonicNs();
  const thereMs = await databaseTimeMs();
  const tookMs = Number(clock.monotonicNs() - beganNs) / 1e6;
  const offsetMs = Number(clock.nowNs()) / 1e6 - tookMs / 2 - thereMs;
  return Math.abs(offsetMs) <= tookMs / 2 ? 0 : offsetMs;
}

/** null: the clocks agree. */
export function clockProblem(offsetMs: number): string | null {
  if (Math.abs(offsetMs) <= offsetMaxMs) return null;
  const seconds = (Math.abs(offsetMs) / 1000).toFixed(1);
  const direction = offsetMs > 0 ? "ahead of" : "behind";
  return (
    `the clock of this node is ${seconds} s ${direction} the clock of the database; times of tips and ` +
    "statistics are wrong on one of them: run chronyc tracking on both machines"
  );
}

/** Keeps a reported offset while new measurements differ little, so that its text stays the same. */
export function steadyOffset(reportedMs: number, measuredMs: number): number {
  if (Math.abs(measuredMs) <= offsetMaxMs) return 0;
  return Math.abs(measuredMs - reportedMs) < offsetMaxMs ? reportedMs : measuredMs;
}
