// Leader context: the current and the next leader. Pure.
//
// Called for every submission: by the plan for routes that reach certain leaders only, and for
// submissions that avoid some leaders.

import { pubkeyOf } from "../../core/primitives.ts";
import { windowSlots } from "../../core/solana-constants.ts";
import { type LeaderSchedule, leaderOf } from "./schedule.ts";

/** null: unknown. Identities in base58. */
export interface LeaderContext {
  readonly slot: bigint | null;
  /** Leader of this slot. */
  readonly current: string | null;
  /** Leader of the next window, even if it is the same. */
  readonly next: string | null;
}

/** Cached by the arrays of the schedule, because base58 takes microseconds and leaders are few. */
const texts = new WeakMap<Uint8Array, string>();

function textOf(key: Uint8Array | null): string | null {
  if (!key) return null;
  const known = texts.get(key);
  if (known !== undefined) return known;
  const text = pubkeyOf(key);
  texts.set(key, text);
  return text;
}

/** Leader of the slot, in base58; null: unknown. */
export function leaderNameAt(schedule: LeaderSchedule | undefined, slot: bigint): string | null {
  return schedule ? textOf(leaderOf(schedule, slot)) : null;
}

export function leaderContextOf(
  schedule: LeaderSchedule | undefined,
  slot: bigint | null,
): LeaderContext {
  if (!schedule || slot === null) return { slot, current: null, next: null };
  const nextWindow = (slot / windowSlots + 1n) * windowSlots;
  return {
    slot,
    current: leaderNameAt(schedule, slot),
    next: leaderNameAt(schedule, nextWindow),
  };
}
