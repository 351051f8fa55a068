// Metrics of slots and leaders: what slot it is, how far the leader schedule reaches, who the partners are.

import { gauge, gauges, type Metric } from "./types.ts";

export interface SlotFacts {
  /** By the slot clock; null: nothing is measured. */
  readonly now: {
    readonly slot: bigint;
    readonly source: string;
    readonly ageNs: bigint;
    readonly slotNs: bigint | null;
  } | null;
  readonly skipShare: { readonly skipped: number; readonly slots: number } | null;
  /** First and last slot that the schedule in force covers; null: there is none. */
  readonly schedule: { readonly first: bigint; readonly last: bigint } | null;
}

const seconds = (ns: bigint): number => Number(ns) / 1e9;

export const slotMetrics: readonly Metric<SlotFacts>[] = [
  gauge("shredway_slot", "The present slot by the slot clock.", ({ now }) => now?.slot ?? null),
  gauge(
    "shredway_slot_clock_known",
    "1: the present slot is known. 0: nothing was measured yet.",
    ({ now }) => (now ? 1 : 0),
  ),
  gauge(
    "shredway_slot_clock_age_seconds",
    "Since the last observation that confirmed the slot clock.",
    ({ now }) => now && seconds(now.ageNs),
  ),
  gauges(
    "shredway_slot_clock_source",
    ["source"],
    "Where the present slot is known from: 1 for one of shreds and rpc.",
    ({ now }, add) => {
      for (const source of ["shreds", "rpc"]) add([source], now?.source === source ? 1 : 0);
    },
  ),
  gauge("shredway_slot_length_seconds", "Measured length of a slot.", ({ now }) =>
    now?.slotNs ? seconds(now.slotNs) : null,
  ),
  gauge(
    "shredway_slots_skipped_ratio",
    "Share of the last 256 slots that passed without a shred.",
    ({ skipShare }) => (skipShare ? skipShare.skipped / skipShare.slots : null),
  ),
  gauge(
    "shredway_leader_schedule_in_force",
    "1: a leader schedule is in force. 0: there is none.",
    ({ schedule }) => (schedule ? 1 : 0),
  ),
  gauge(
    "shredway_leader_schedule_first_slot",
    "First slot that the leader schedule covers.",
    ({ schedule }) => schedule?.first ?? null,
  ),
  gauge(
    "shredway_leader_schedule_last_slot",
    "Last slot that the leader schedule covers.",
    ({ schedule }) => schedule?.last ?? null,
  ),
];
