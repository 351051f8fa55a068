// The check that what the gateway holds in memory stays within its limits.

import type { PipelineSnapshot } from "../../../src/gateway/submission/pipeline.ts";
import type { RouteSnapshot } from "../../../src/gateway/submission/types.ts";
import { Violation } from "../relay-checks.ts";
import { leadersName } from "./partners.ts";

/** Transactions that wait for leaders. */
export const leaderQueueMax = 16;
/** The same for a partner, by default. */
const partnerQueueMax = 1_024;
/** Less than a run has, so that older ended transactions are read from the store. */
const fewEnded = 12;
const manyEnded = 50_000;

/** Whether only few ended transactions remain in memory: in a third of the runs. */
export function forgetsEnded(seed: number): boolean {
  return seed % 3 === 0;
}

/** Most ended transactions in memory. */
export function endedMaxOf(seed: number): number {
  return forgetsEnded(seed) ? fewEnded : manyEnded;
}

/** Called once in each slot. Throws Violation. */
export function checkMemory(
  seed: number,
  { ended }: PipelineSnapshot,
  routes: readonly RouteSnapshot[],
): void {
  const fail = (text: string): never => {
    throw new Violation("memory stays within its limits", text);
  };
  const endedMax = endedMaxOf(seed);
  if (ended > endedMax) fail(`${ended} ended transactions, at most ${endedMax} are expected`);
  for (const { name, queued } of routes) {
    const most = name === leadersName ? leaderQueueMax : partnerQueueMax;
    if (queued > most) fail(`${queued} transactions in the queue of ${name}, at most ${most}`);
  }
}
