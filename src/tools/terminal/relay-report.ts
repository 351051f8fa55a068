// Relay counters as text: reasons of refusals, and totals for the log. Pure.
//
// Used by start (statistics line), the sandbox and listen. data-plane/report.ts compares two
// snapshots.

import { failedTotal, type NamedCount, refusals } from "../../relay/data-plane/report.ts";
import type { RelaySnapshot, VerdictCounts } from "../../relay/data-plane/snapshot.ts";
import { formatCount } from "./formatting.ts";

/** "root_mismatch 52, signature_invalid 51"; empty if nothing was refused. */
export function refusalText(verdicts: VerdictCounts): string {
  return refusalTextOf(refusals(verdicts));
}

/** Like `refusalText`, for extracted counts. */
export function refusalTextOf(counts: readonly NamedCount[]): string {
  return counts.map(({ name, count }) => `${name} ${formatCount(count)}`).join(", ");
}

/**
 * Counts since the start, for the log. Every packet is in exactly one of `first`, `duplicate`,
 * `newTier`, `ownUse`, `firstForwardable`, `equivocation`, `equivocationExcess`, `challengesAnswered`,
 * `traces`, `heartbeats` and the reasons in `refused`; `received` is their sum. (The workers' own counter
 * also includes packets that are still being processed.)
 */
export function totalsOf(now: RelaySnapshot): Record<string, unknown> {
  const { verdicts } = now;
  return {
    received: Object.values(verdicts).reduce((total, count) => total + count, 0n),
    receiveDrops: now.receiveDrops,
    first: verdicts.first,
    duplicate: verdicts.duplicate,
    newTier: verdicts.new_tier,
    ownUse: verdicts.own_use,
    firstForwardable: verdicts.first_forwardable,
    equivocation: verdicts.equivocation,
    equivocationExcess: verdicts.equivocation_excess,
    challengesAnswered: verdicts.challenge,
    traces: verdicts.trace,
    heartbeats: verdicts.heartbeat,
    sent: now.destinations.reduce((total, each) => total + each.sent, 0n),
    recoveredSent: now.destinations.reduce((total, each) => total + each.recoveredSent, 0n),
    failed: now.destinations.reduce((total, each) => total + failedTotal(each), 0n),
    refused: Object.fromEntries(refusals(verdicts).map(({ name, count }) => [name, count])),
  };
}

/**
 * If clones are in use: the number of destinations by clone, and the reasons for sending by
 * socket.
 */
export function transmitFacts(now: RelaySnapshot): Record<string, unknown> {
  const states = Object.entries(now.nextHops).filter(([, count]) => count > 0n);
  if (states.length === 0) return {};
  const total = (count: (worker: RelaySnapshot["workers"][number]) => bigint) =>
    now.workers.reduce((sum, worker) => sum + count(worker), 0n);
  return {
    cloned: now.workers[0]?.cloned_destinations ?? 0n,
    nextHops: Object.fromEntries(states),
    cloneTriggers: total((worker) => worker.clone_triggers),
    cloneFallbacks: total((worker) => worker.clone_fallbacks),
  };
}
