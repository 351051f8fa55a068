// Who leads now, and who leads next. Pure.
//
// Asked for every submission: by the plan for routes that reach certain leaders only, and for
// submissions that keep away from some.

import { pubkeyOf } from "../../core/primitives.ts";
import { windowSlots } from "../../core/solana-constants.ts";
import { type LeaderSchedule, leaderOf } from "./schedule.ts";

/** null: unknown. Identities in base58. */
export interface LeaderContext {
  readonly slot: bigint | null;
  /** Of this slot. */
  readonly current: string | null;
  /** Of the window after this one: also when it is the same leader again. */
  readonly next: string | null;
}

/** Base58 costs microseconds, and there are few leaders: by the arrays of the schedule. */
const texts = new WeakMap<Uint8Array, string>();

function textOf(key: Uint8Array | null): string | null {
  if (!key) return null;
  const known = texts.get(key);
  if (known !== undefined) return known;
  const text = pubkeyOf(key);
  texts.set(key, text);
  return text;
}

/** Who leads the slot, in base58; null: not known. */
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
