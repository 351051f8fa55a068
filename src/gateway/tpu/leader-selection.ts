// Selects the leaders to connect with and the leaders that get a transaction. Pure.
//
// routes/tpu-route.ts calls it for every transaction and periodically. A leader's window has four
// slots. A transaction sent in the second half may arrive too late, so the leaders of the next
// windows get it as well.

import { windowSlots } from "../../core/solana-constants.ts";

const lateInWindow = 2n;

export interface UpcomingLeaders {
  /** The current slot; null: unknown. */
  slot(): bigint | null;
  /** The leader of a slot in base58; null: unknown. */
  leaderAt(slot: bigint): string | null;
}

/** Leaders that get a transaction now, the current one first; empty: none is known. */
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

/** Leaders of this slot and the next `slots` slots, each once, nearest first. */
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
