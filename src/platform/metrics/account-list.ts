// Metrics of accounts: keys, tips, registrations, tiers, destinations, nonces, and who the partners are.
//
// Of this node, but for what the database holds for all of them: keys, tiers, destinations.

import type { TipSnapshot } from "../../tips/tip-types.ts";
import { counters, gauge, gauges, type Metric } from "./types.ts";

/** From tips for shreds to the shreds they buy. */
export interface ShredSaleFacts {
  /** Registrations whose landing is awaited here. */
  readonly pending: number;
  /** Since the start, on this node: "pending", "counted", or the reason of a refusal. */
  readonly registered: Iterable<readonly [outcome: string, count: number]>;
  /** Since the start, by this node as the leader: "counted", or the reason of a drop. */
  readonly settled: Iterable<readonly [outcome: string, count: number]>;
  /** Accounts by tier. */
  readonly tiers: Iterable<readonly [tier: string, accounts: number]>;
  readonly inGrace: number;
  readonly isLeader: boolean;
  /** Of accounts, in all regions. */
  readonly destinations: Iterable<readonly [region: string, state: string, count: number]>;
  /** Of this region: proved, not paused, and their account has a tier. */
  readonly covered: number;
}

export interface AccountFacts {
  readonly keys: Iterable<readonly [state: string, count: number]>;
  /** With at least one key in force. */
  readonly accounts: number;
  readonly landedTips: number;
  readonly tipFloor: TipSnapshot;
  /** null: no tips for shreds are registered here. */
  readonly shreds: ShredSaleFacts | null;
  /** null: no node is configured. */
  readonly nonces: {
    readonly managed: number;
    readonly making: number;
    readonly inUse: number;
  } | null;
  readonly trackerMembers: number;
  /** Of the next window of a member; null: not known. */
  readonly trackerSlotsAhead: bigint | null;
}

const keysAndTips: readonly Metric<AccountFacts>[] = [
  gauges("shredway_api_keys", ["state"], "API keys by state.", ({ keys }, add) => {
    for (const [state, count] of keys) add([state], count);
  }),
  gauge(
    "shredway_accounts",
    "Accounts with at least one API key in force.",
    ({ accounts }) => accounts,
  ),
  gauge(
    "shredway_tips_landed_window",
    "Tips that landed in the last 15 minutes.",
    ({ landedTips }) => landedTips,
  ),
  gauges(
    "shredway_tip_floor_lamports",
    ["percentile"],
    "Percentiles of landed tips as /tip_floor tells them.",
    ({ tipFloor }, add) => {
      for (const [name, lamports] of Object.entries(tipFloor.percentiles)) {
        add([name.replace("p", "")], lamports);
      }
    },
  ),
  gauge(
    "shredway_tip_floor_stale",
    "1: no tip landed in the window of the last snapshot, an older one is told. 0: it is current.",
    ({ tipFloor }) => (tipFloor.isStale ? 1 : 0),
  ),
];

const shredSales: readonly Metric<AccountFacts>[] = [
  gauge(
    "shredway_registrations_pending",
    "Registered tips whose landing is awaited.",
    ({ shreds }) => shreds?.pending ?? null,
  ),
  counters(
    "shredway_registrations_total",
    ["outcome"],
    "Entries of /shred-pay: pending or counted when they were taken, else the reason of the refusal.",
    ({ shreds }, add) => {
      for (const [outcome, count] of shreds?.registered ?? []) add([outcome], count);
    },
  ),
  counters(
    "shredway_registrations_settled_total",
    ["outcome"],
    "Pending registrations that this node settled as the keeper: counted, or dropped and why.",
    ({ shreds }, add) => {
      for (const [outcome, count] of shreds?.settled ?? []) add([outcome], count);
    },
  ),
  gauges("shredway_tier_accounts", ["tier"], "Accounts by tier.", ({ shreds }, add) => {
    for (const [tier, count] of shreds?.tiers ?? []) add([tier], count);
  }),
  gauge(
    "shredway_tier_accounts_in_grace",
    "Accounts below the threshold of their tier whose grace runs.",
    ({ shreds }) => shreds?.inGrace ?? null,
  ),
  gauge(
    "shredway_tier_keeper",
    "1: this node counts tips and keeps the tiers. 0: another one does.",
    ({ shreds }) => shreds && (shreds.isLeader ? 1 : 0),
  ),
  gauges(
    "shredway_account_destinations",
    ["region", "state"],
    "Destinations of accounts by region and state.",
    ({ shreds }, add) => {
      for (const [region, state, count] of shreds?.destinations ?? []) add([region, state], count);
    },
  ),
  gauge(
    "shredway_account_destinations_covered",
    "Destinations of accounts that get shreds from this node.",
    ({ shreds }) => shreds?.covered ?? null,
  ),
];

const noncesAndPartners: readonly Metric<AccountFacts>[] = [
  gauge(
    "shredway_nonces_managed",
    "Nonce accounts that are kept for API keys and ready.",
    ({ nonces }) => nonces?.managed ?? null,
  ),
  gauge(
    "shredway_nonces_in_making",
    "Nonce accounts for API keys that are being made.",
    ({ nonces }) => nonces?.making ?? null,
  ),
  gauge(
    "shredway_nonces_in_use",
    "Nonce accounts whose values are kept in memory.",
    ({ nonces }) => nonces?.inUse ?? null,
  ),
  gauge(
    "shredway_tracker_members",
    "Alternative partners that are known.",
    ({ trackerMembers }) => trackerMembers,
  ),
  gauge(
    "shredway_tracker_next_slots",
    "Slots until an alternative partner leads; 0: one leads now.",
    ({ trackerSlotsAhead }) => trackerSlotsAhead,
  ),
];

export const accountMetrics: readonly Metric<AccountFacts>[] = [
  ...keysAndTips,
  ...shredSales,
  ...noncesAndPartners,
];
