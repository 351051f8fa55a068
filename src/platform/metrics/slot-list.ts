// Metrics of slots and leaders: the current slot and the range of the leader schedule.

import { gauge, gauges, type Metric } from "./types.ts";

export interface SlotFacts {
  /** The slot clock; null: it has no measurement yet. */
  readonly now: {
    readonly slot: bigint;
    readonly source: string;
    readonly ageNs: bigint;
    readonly slotNs: bigint | null;
  } | null;
  readonly skipShare: { readonly skipped: number; readonly slots: number } | null;
  /** First and last slot of the active leader schedule; null: no schedule. */
  readonly schedule: { readonly first: bigint; readonly last: bigint } | null;
}

const seconds = (ns: bigint): number => Number(ns) / 1e9;

export const slotMetrics: readonly Metric<SlotFacts>[] = [
  gauge(
    "shredway_slot",
    "Current slot according to the slot clock.",
    ({ now }) => now?.slot ?? null,
  ),
  gauge(
    "shredway_slot_clock_known",
    "1: the current slot is known. 0: the slot clock has no measurement yet.",
    ({ now }) => (now ? 1 : 0),
  ),
  gauge(
    "shredway_slot_clock_age_seconds",
    "Time since the last observation that confirmed the slot clock.",
    ({ now }) => now && seconds(now.ageNs),
  ),
  gauges(
    "shredway_slot_clock_source",
    ["source"],
    "Source of the current slot: 1 for either shreds or rpc.",
    ({ now }, add) => {
      for (const source of ["shreds", "rpc"]) add([source], now?.source === source ? 1 : 0);
    },
  ),
  gauge("shredway_slot_length_seconds", "Measured duration of a slot.", ({ now }) =>
    now?.slotNs ? seconds(now.slotNs) : null,
  ),
  gauge(
    "shredway_slots_skipped_ratio",
    "Share of the last 256 slots without any shred.",
    ({ skipShare }) => (skipShare ? skipShare.skipped / skipShare.slots : null),
  ),
  gauge(
    "shredway_leader_schedule_in_force",
    "1: a leader schedule is active. 0: no leader schedule is loaded.",
    ({ schedule }) => (schedule ? 1 : 0),
  ),
  gauge(
    "shredway_leader_schedule_first_slot",
    "First slot of the leader schedule.",
    ({ schedule }) => schedule?.first ?? null,
  ),
  gauge(
    "shredway_leader_schedule_last_slot",
    "Last slot of the leader schedule.",
    ({ schedule }) => schedule?.last ?? null,
  ),
];
