// Metrics of accounts: API keys, tips, registrations, tiers, destinations, nonces, alternative partners.
//
// Keys, tiers and destinations come from the database and are the same on every node; the others belong
// to this node.

import type { TipSnapshot } from "../../tips/tip-types.ts";
import { counters, gauge, gauges, type Metric, renamed } from "./types.ts";

/** Registered tips, and the tiers and destinations that they pay for. */
export interface ShredSaleFacts {
  /** Registrations on this node that wait for the landing of their tip. */
  readonly pending: number;
  /** Since this node started: "pending", "counted", or the reason of a rejection. */
  readonly registered: Iterable<readonly [outcome: string, count: number]>;
  /** Settled by this node as the tier leader since it started: "counted", or the reason of a drop. */
  readonly settled: Iterable<readonly [outcome: string, count: number]>;
  /** Accounts by tier. */
  readonly tiers: Iterable<readonly [tier: string, accounts: number]>;
  readonly inGrace: number;
  readonly isLeader: boolean;
  /** Destinations of accounts in all regions. */
  readonly destinations: Iterable<readonly [region: string, state: string, count: number]>;
  /** Destinations in this region that are verified and not paused, and whose account has a tier. */
  readonly served: number;
}

export interface AccountFacts {
  readonly keys: Iterable<readonly [state: string, count: number]>;
  /** Accounts with at least one active API key. */
  readonly accounts: number;
  readonly landedTips: number;
  readonly tipFloor: TipSnapshot;
  /** null: tip registration is off. */
  readonly shreds: ShredSaleFacts | null;
  /** null: solana.rpc is not configured. */
  readonly nonces: {
    readonly managed: number;
    readonly creating: number;
    readonly inUse: number;
    readonly fundingLamports: bigint | null;
  } | null;
  readonly trackerMembers: number;
  /** Slots until the next window of a member; null: unknown. */
  readonly trackerSlotsAhead: bigint | null;
}

const keysAndTips: readonly Metric<AccountFacts>[] = [
  gauges("shredway_api_keys", ["state"], "API keys by state.", ({ keys }, add) => {
    for (const [state, count] of keys) add([state], count);
  }),
  gauge(
    "shredway_accounts",
    "Accounts with at least one active API key.",
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
    "Percentiles of landed tips, as returned by /tip_floor.",
    ({ tipFloor }, add) => {
      for (const [name, lamports] of Object.entries(tipFloor.percentiles)) {
        add([name.replace("p", "")], lamports);
      }
    },
  ),
  gauge(
    "shredway_tip_floor_stale",
    "1: no tip landed in the last window, so /tip_floor returns an older snapshot. 0: the snapshot is current.",
    ({ tipFloor }) => (tipFloor.isStale ? 1 : 0),
  ),
];

const shredSales: readonly Metric<AccountFacts>[] = [
  gauge(
    "shredway_registrations_pending",
    "Registered tips that have not landed yet.",
    ({ shreds }) => shreds?.pending ?? null,
  ),
  counters(
    "shredway_registrations_total",
    ["outcome"],
    "Entries of /shred-pay by outcome: pending, counted, or the reason of the rejection.",
    ({ shreds }, add) => {
      for (const [outcome, count] of shreds?.registered ?? []) add([outcome], count);
    },
  ),
  counters(
    "shredway_registrations_settled_total",
    ["outcome"],
    "Pending registrations that this node settled as the tier leader: counted, or the reason of the drop.",
    ({ shreds }, add) => {
      for (const [outcome, count] of shreds?.settled ?? []) add([outcome], count);
    },
  ),
  gauges("shredway_tier_accounts", ["tier"], "Accounts by tier.", ({ shreds }, add) => {
    for (const [tier, count] of shreds?.tiers ?? []) add([tier], count);
  }),
  gauge(
    "shredway_tier_accounts_in_grace",
    "Accounts in their grace period: below the threshold of their tier, not yet downgraded.",
    ({ shreds }) => shreds?.inGrace ?? null,
  ),
  renamed(
    "shredway_tier_keeper",
    gauge(
      "shredway_tier_leader",
      "1: this node is the tier leader: it counts tips and changes tiers. 0: it is a follower.",
      ({ shreds }) => shreds && (shreds.isLeader ? 1 : 0),
    ),
  ),
  gauges(
    "shredway_account_destinations",
    ["region", "state"],
    "Destinations of accounts by region and state.",
    ({ shreds }, add) => {
      for (const [region, state, count] of shreds?.destinations ?? []) add([region, state], count);
    },
  ),
  renamed(
    "shredway_account_destinations_covered",
    gauge(
      "shredway_account_destinations_served",
      "Destinations of accounts that receive shreds from this node.",
      ({ shreds }) => shreds?.served ?? null,
    ),
  ),
];

const noncesAndPartners: readonly Metric<AccountFacts>[] = [
  gauge(
    "shredway_nonces_managed",
    "Managed nonce accounts that are ready for use.",
    ({ nonces }) => nonces?.managed ?? null,
  ),
  renamed(
    "shredway_nonces_in_making",
    gauge(
      "shredway_nonces_creating",
      "Managed nonce accounts whose creation is in progress.",
      ({ nonces }) => nonces?.creating ?? null,
    ),
  ),
  gauge(
    "shredway_nonces_in_use",
    "Nonce accounts whose current value is cached.",
    ({ nonces }) => nonces?.inUse ?? null,
  ),
  gauge(
    "shredway_nonces_funding_lamports",
    "Balance of the key of nonces.fundingKeyFile when a nonce account was last created.",
    ({ nonces }) => nonces?.fundingLamports ?? null,
  ),
  gauge(
    "shredway_tracker_members",
    "Alternative partners in the tracker's list.",
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
