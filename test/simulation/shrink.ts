// Shrinking: the shortest list of events, of those tried, that still violates the same invariant.
//
// Events are independent of each other (scenario.ts), so that any part of a scenario is one, too.

import type { RunResult } from "./run-result.ts";
import type { ScenarioEvent } from "./scenario.ts";
import { World, type WorldOptions } from "./world.ts";

/** Runs of one shrinking. */
const runsMax = 400;

export interface Shrunk {
  readonly events: readonly ScenarioEvent[];
  readonly result: RunResult;
  readonly runs: number;
}

interface ShrinkOptions {
  readonly seed: number;
  readonly events: readonly ScenarioEvent[];
  readonly folder: string;
  /** The result of these events, with a violation. */
  readonly result: RunResult;
  readonly tamper?: WorldOptions["tamper"];
}

/** Removes halves, quarters, … and single events, as long as the same invariant is violated. */
export async function shrink({ seed, folder, tamper, ...found }: ShrinkOptions): Promise<Shrunk> {
  const invariant = found.result.violation?.invariant;
  let { result } = found;
  let events = found.events.filter(({ atMs }) => atMs <= result.simulatedMs);
  let runs = 0;
  const attempt = async (candidate: readonly ScenarioEvent[]): Promise<boolean> => {
    runs++;
    const next = await new World({ seed, events: candidate, folder, tamper }).run();
    if (next.violation?.invariant !== invariant) return false;
    result = next;
    events = [...candidate];
    return true;
  };
  /** Returns whether any part of this size could be removed. */
  const removeParts = async (size: number): Promise<boolean> => {
    const before = events.length;
    let at = 0;
    while (at < events.length) {
      if (runs >= runsMax) return false;
      const isRemoved = await attempt(events.toSpliced(at, size));
      if (!isRemoved) at += size;
    }
    return events.length < before;
  };
  let size = Math.ceil(events.length / 2);
  for (; size > 1; size = Math.ceil(size / 2)) await removeParts(size);
  while (await removeParts(1));
  return { events, result, runs };
}
