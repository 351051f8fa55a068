// Which leaders are connected with, and which of them get a transaction now. Pure.
//
// Asked by routes/tpu-route.ts for every transaction and every moment. A leader has windows of four
// slots; what comes in the second half of one may arrive too late for it, so that the leaders of the
// next windows get it as well.

import { windowSlots } from "../../core/solana-constants.ts";

const lateInWindow = 2n;

export interface UpcomingLeaders {
  /** The present one; null: not known. */
  slot(): bigint | null;
  /** Who leads it, in base58; null: not known. */
  leaderAt(slot: bigint): string | null;
}

/** Those who get a transaction now, the present leader first; empty: nobody is known. */
export function targetsOf(leaders: UpcomingLeaders, fanout: number): string[] {
  const slot = leaders.slot();
  if (slot === null) return [];
  const windows = slot % windowSlots >= lateInWindow ? fanout : 1;
  const targets = new Set<string>();
  for (let i = 0n; i < BigInt(windows); i++) {
    const at = i === 0n ? slot : (slot / windowSlots + i) * windowSlots;
    const leader = leaders.leaderAt(at);
    if (leader !== null) targets.add(leader);
  }
  return [...targets];
}

/** The leaders of this slot and the `slots` after it, each once, the nearest first. */
export function upcomingOf(leaders: UpcomingLeaders, slots: number): string[] {
  const slot = leaders.slot();
  if (slot === null) return [];
  const upcoming = new Set<string>();
  for (let at = slot; at <= slot + BigInt(slots); at++) {
    const leader = leaders.leaderAt(at);
    if (leader !== null) upcoming.add(leader);
  }
  return [...upcoming];
}
