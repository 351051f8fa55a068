// Readiness: whether this node should receive traffic, and the reason if it should not. Pure.
//
// operations.ts uses it for /health/ready and the metrics. A problem is critical if it makes this
// node useless while another node may work, so that a load balancer moves its callers. Problems
// that all nodes share (PostgreSQL, the chain) are not critical, because the nodes still answer
// from memory.

import { counted } from "../core/counted.ts";
import { unusableKeysSummary } from "../gateway/accounts/unusable-keys.ts";
import type { RouteSnapshot } from "../gateway/submission/types.ts";
import type { Check } from "../platform/metrics/pages.ts";
import type { DestinationDiscovery } from "../relay/destination-discovery.ts";
import { coverageText, coveredSlots, type LeaderSchedule } from "../relay/leaders/schedule.ts";
import { type SubscriberStatus, subscribersText } from "../relay/shredstream/subscriber-status.ts";
import {
  type SubscriptionStatus,
  subscriptionText,
} from "../relay/shredstream/subscription-status.ts";

export interface ReadinessFacts {
  readonly phase: "starting" | "running" | "draining";
  /** Parts of the configuration that cannot work, one sentence each. */
  readonly unworkableParts: readonly string[];
  /** null: the data plane does not answer. */
  readonly lastShredNs: bigint | null | "unanswered";
  /** Why the relay drops most of the traffic; null: it does not. */
  readonly trafficProblem: string | null;
  /** Subscriptions of sources of kind "shredstream". */
  readonly subscriptions: readonly SubscriptionStatus[];
  /** null: the section shredstream is absent. */
  readonly subscribers: SubscriberStatus | null;
  /** null: no destination is discovered. */
  readonly discovery: ReturnType<DestinationDiscovery["status"]>;
  /** Multicast groups; absent: no source has any. `problem`: why some do not deliver; null: all do. */
  readonly groups?: { readonly count: number; readonly problem: string | null };
  readonly isAuthenticated: boolean;
  readonly schedule: LeaderSchedule | undefined;
  /** null: not known. */
  readonly slot: bigint | null;
  readonly nowNs: bigint;
  /** null: the service has no gateway. */
  readonly gateway: {
    readonly routes: readonly Pick<RouteSnapshot, "name" | "health">[];
    readonly keysInForce: number;
    /** Stored keys that this version cannot use, one sentence each. */
    readonly unusableKeys: readonly string[];
    /** TLS certificates that have expired, and changed files that cannot be used. */
    readonly certificateProblems: readonly string[];
    /** Whether the process of the QUIC ingress runs; null: no section `quic`. */
    readonly quicIsUp: boolean | null;
    /** Differences from the other nodes on the database; null: it is not shared. */
    readonly nodeDifferences: readonly string[] | null;
    readonly store: {
      readonly isReachable: boolean | null;
      readonly isWriteFailing: boolean;
      readonly isOnFile: boolean;
    };
  } | null;
}

/** Shreds normally arrive every few milliseconds. */
const silentNs = 10_000_000_000n;

function check(name: string, critical: boolean, problem: string | null, detail: string): Check {
  return { name, ok: problem === null, critical, detail: problem ?? detail };
}

function phaseCheck({ phase }: ReadinessFacts): Check {
  const problem = phase === "running" ? null : `service phase: ${phase}`;
  return check("running", true, problem, "the service is running");
}

/** The other parts work, so it is not critical. */
function configuration({ unworkableParts: parts }: ReadinessFacts): Check[] {
  return parts.length === 0 ? [] : [check("configuration", false, parts.join("; "), "")];
}

function dataPlane({ lastShredNs }: ReadinessFacts): Check {
  const problem = lastShredNs === "unanswered" ? "the relay's workers are closed" : null;
  return check("data_plane", true, problem, "the relay's workers respond");
}

function shreds({ lastShredNs, trafficProblem, nowNs }: ReadinessFacts): Check {
  if (trafficProblem !== null) return check("shreds", false, trafficProblem, "");
  const last = lastShredNs === "unanswered" ? null : lastShredNs;
  const ageNs = last === null ? null : nowNs - last;
  const age =
    ageNs === null ? "" : `the last new shred arrived ${Number(ageNs / 100_000_000n) / 10} s ago`;
  if (ageNs === null) return check("shreds", false, "no shred has arrived yet", "");
  return check("shreds", false, ageNs > silentNs ? age : null, age);
}

/** Other sources may still deliver, so it is not critical. */
function subscriptionChecks({ subscriptions }: ReadinessFacts): Check[] {
  if (subscriptions.length === 0) return [];
  const failing = subscriptions.filter(({ state }) => state !== "subscribed");
  const problem = failing.length === 0 ? null : failing.map(subscriptionText).join("; ");
  return [check("shredstream", false, problem, subscriptions.map(subscriptionText).join("; "))];
}

/** The previous certificate stays in force, so it is not critical. */
function subscriberChecks({ subscribers }: ReadinessFacts): Check[] {
  if (subscribers === null) return [];
  return [check("subscribers", false, subscribers.problem, subscribersText(subscribers))];
}

/** The last good answer stays in force, so it is not critical. */
function discoveryChecks({ discovery }: ReadinessFacts): Check[] {
  if (discovery === null) return [];
  const { host, destinations, problem } = discovery;
  return [
    check("discovery", false, problem, `${counted(destinations, "destination")} from ${host}`),
  ];
}

function multicast(groups: NonNullable<ReadinessFacts["groups"]>): Check {
  return check("multicast", false, groups.problem, `${groups.count} groups are joined`);
}

/** Without a leader schedule, every shred is dropped. */
function leaderSchedule({ isAuthenticated, schedule, slot }: ReadinessFacts): Check {
  const name = "leader_schedule";
  if (!isAuthenticated) return check(name, false, null, "not required: authentication is off");
  if (!schedule) return check(name, true, "no leader schedule yet: every shred is dropped", "");
  const text = coverageText(schedule);
  const { first, last } = coveredSlots(schedule);
  const isOutside = slot !== null && (slot < first || slot > last);
  return check(name, true, isOutside ? `${text}, the current slot is ${slot}` : null, text);
}

function slotClock({ slot }: ReadinessFacts): Check {
  const problem = slot === null ? "the current slot is unknown" : null;
  return check("slot_clock", false, problem, `slot ${slot}`);
}

type GatewayReadiness = NonNullable<ReadinessFacts["gateway"]>;

/**
 * An empty list of routes is valid: tips and tracker need no route. A route that was not tried yet accepts
 * submissions; its first probe ends within its time-out.
 */
function routes({ routes: all }: GatewayReadiness): Check {
  if (all.length === 0) return check("routes", false, "no route is configured", "");
  const countOf = (state: RouteSnapshot["health"]) =>
    all.filter(({ health }) => health === state).length;
  const [up, unknown] = [countOf("up"), countOf("unknown")];
  const failing = all.filter(({ health }) => health === "failing").map(({ name }) => name);
  const untried = unknown > 0 ? `; not tried yet: ${unknown}` : "";
  const failed =
    failing.length > 0 ? `; reachable, but the last requests failed: ${failing.join(", ")}` : "";
  const text = `${up} of ${all.length} are up${untried}${failed}`;
  // Only a request shows whether a failing route has recovered, so this node must stay in use.
  return check("routes", failing.length === 0, up + unknown === 0 ? text : null, text);
}

function databaseProblem({ isReachable, isWriteFailing }: GatewayReadiness["store"]) {
  if (isWriteFailing) return "the last write failed: submissions and changes are refused";
  return isReachable === false ? "the last query failed or is unanswered" : null;
}

function database({ store }: GatewayReadiness): Check {
  const text = store.isReachable === null ? "not queried yet" : "the last query succeeded";
  return check("database", store.isOnFile, databaseProblem(store), text);
}

function keys({ keysInForce, unusableKeys }: GatewayReadiness): Check {
  const none = keysInForce === 0 ? "no valid API key: every call is rejected" : "";
  const problems = [none, unusableKeysSummary(unusableKeys)].filter((text) => text !== "");
  const problem = problems.length > 0 ? problems.join("; ") : null;
  return check("api_keys", false, problem, `valid API keys: ${keysInForce}`);
}

/** The other listeners work, so it is not critical. */
function certificates({ certificateProblems: problems }: GatewayReadiness): Check[] {
  return problems.length === 0 ? [] : [check("certificates", false, problems.join("; "), "")];
}

/** The process starts again by itself, and HTTP continues, so it is not critical. */
function quic({ quicIsUp }: GatewayReadiness): Check[] {
  if (quicIsUp === null) return [];
  const problem = quicIsUp ? null : "the process of the QUIC ingress waits for its restart";
  return [check("quic", false, problem, "the process of the QUIC ingress runs")];
}

function nodes({ nodeDifferences }: GatewayReadiness): Check[] {
  if (nodeDifferences === null) return [];
  const problem = nodeDifferences.length > 0 ? nodeDifferences.join("; ") : null;
  return [check("nodes", false, problem, "all running nodes are configured alike")];
}

function gatewayChecks(gateway: GatewayReadiness): Check[] {
  return [
    routes(gateway),
    database(gateway),
    keys(gateway),
    ...certificates(gateway),
    ...quic(gateway),
    ...nodes(gateway),
  ];
}

export function checksOf(facts: ReadinessFacts): Check[] {
  const { gateway } = facts;
  return [
    phaseCheck(facts),
    ...configuration(facts),
    dataPlane(facts),
    leaderSchedule(facts),
    slotClock(facts),
    shreds(facts),
    ...subscriptionChecks(facts),
    ...subscriberChecks(facts),
    ...discoveryChecks(facts),
    ...(facts.groups ? [multicast(facts.groups)] : []),
    ...(gateway ? gatewayChecks(gateway) : []),
  ];
}
