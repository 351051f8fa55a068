// Plan: by which routes may this submission leave now, must it wait, or does nobody take it?
//
// Pure. Called by dispatch.ts before every attempt, so that a plan never outlives the leaders that it
// was made for. An option of the caller is never bent to find a route: what no route keeps is refused.
//
// - swqosOnly means partners of kind "swqos". Kind "tpu" is left out: whether this node's identity is
//   staked is not known here, and callers pay for a promise.
// - mevProtect asks for routes marked safe, and waits while a leader of the deny list is current or
//   next. With a deny list and no knowledge of the leaders it waits, too: nobody could say that the
//   next leader is not one of them.
// - revertProtection is kept by bundles (one transaction is a bundle of one) and by the alternative
//   partner's lane; every other way may land the transaction as failed.
// - Alternative partners are those of the policy, whatever a route reaches. They get what pays their
//   tip and their fee per compute unit, while one of them leads and in the last slot before.
// - sendIdeal uses SWQoS, bundles and the alternative partner; sendAlt the partner's lane, and only in a
//   partner's own slots: a caller pays for that auction. With fallback it uses the routes of
//   sendTransaction, too: at once when no partner leads or none would take it, else from the second
//   attempt on. Without, whatever comes in another slot is refused.

import { windowSlots } from "../../core/solana-constants.ts";
import { paysPerUnit, type UnitFeeFacts, unitFeeText } from "../../core/transactions/unit-fee.ts";
import type {
  LeaderContext,
  RouteCapabilities,
  RouteKind,
  SendMode,
  SubmitMethod,
  SubmitOptions,
} from "./types.ts";

export interface PlanTransaction extends UnitFeeFacts {
  readonly wire: Uint8Array;
  readonly tipLamports: bigint;
}

export interface PlanFacts {
  readonly method: SubmitMethod;
  readonly isBundle: boolean;
  readonly options: SubmitOptions;
  readonly transactions: readonly PlanTransaction[];
  /** Made so far. */
  readonly attempts: number;
}

export interface PlanRoute {
  readonly capabilities: RouteCapabilities;
  readonly isUp: boolean;
}

export interface PlanPolicy {
  /** Identities in base58. */
  readonly denyLeaders: ReadonlySet<string>;
  /** Of every parcel, whatever its route asks for. */
  readonly minimumTipLamports: bigint;
  /** Alternative partners in base58: nobody else is a partner, whatever a route reaches. */
  readonly partners: ReadonlySet<string>;
  /** Lamports per compute unit: least priority fee of what goes to alternative partners. */
  readonly partnerUnitLamports: bigint;
  /** First slot of a partner at or after `slot`, for refusals; null (or absent): not known. */
  readonly nextPartnerSlot?: (slot: bigint) => bigint | null;
}

interface PlanLeg<R extends PlanRoute> {
  readonly route: R;
  readonly mode: SendMode;
  readonly leader: string | null;
}

type HoldReason = "denied_leader" | "leader_unknown";

interface PlanRefusal {
  readonly kind: "refuse";
  readonly reason: "no_route" | "tip_too_low" | "priority_fee_too_low" | "non_partner_slot";
  /** What was expected and what came; does not begin with the reason. */
  readonly message: string;
}

export type Plan<R extends PlanRoute> =
  | { readonly kind: "send"; readonly legs: readonly PlanLeg<R>[] }
  | { readonly kind: "hold"; readonly reason: HoldReason }
  | PlanRefusal;

/** What cannot change while the route lives: its way for this submission, or why there is none. */
type Fit = { readonly mode: SendMode } | { readonly obstacle: string };

const idealKinds: ReadonlySet<RouteKind> = new Set(["swqos", "block-builder", "alt-partner"]);
const namesMax = 8;

function modeOf(facts: PlanFacts, kind: RouteKind): SendMode | null {
  const { isBundle, method, options, transactions } = facts;
  if (kind === "block-builder") {
    const asBundle = isBundle || options.revertProtection || method === "sendIdeal";
    return asBundle ? "bundle" : "transaction";
  }
  if (transactions.length > 1) return null;
  return options.revertProtection && kind !== "alt-partner" ? null : "transaction";
}

function isForPartnersOnly({ method, options }: PlanFacts): boolean {
  return method === "sendAlt" && !options.enableFallback;
}

function obstacleOf(facts: PlanFacts, route: RouteCapabilities): string | null {
  const { method, options, transactions } = facts;
  if (options.swqosOnly && route.kind !== "swqos") return "no SWQoS partner";
  if (options.mevProtect && !route.mevSafe) return "not safe from front-running";
  if (method === "sendIdeal" && !idealKinds.has(route.kind)) return "not for sendIdeal";
  if (isForPartnersOnly(facts) && route.kind !== "alt-partner") return "no alternative partner";
  let bytesMax = 0;
  for (const { wire } of transactions) bytesMax = Math.max(bytesMax, wire.length);
  return bytesMax > route.transactionBytesMax
    ? `at most ${route.transactionBytesMax} bytes, not ${bytesMax}`
    : null;
}

function fitOf(facts: PlanFacts, route: RouteCapabilities): Fit {
  const obstacle = obstacleOf(facts, route);
  if (obstacle !== null) return { obstacle };
  const mode = modeOf(facts, route.kind);
  if (mode === null) {
    const isMany = facts.transactions.length > 1;
    return { obstacle: isMany ? "takes no bundle" : "no protection from reverts" };
  }
  return route.modes.includes(mode) ? { mode } : { obstacle: `takes no ${mode}` };
}

function tipOf({ transactions }: PlanFacts): bigint {
  let lamports = 0n;
  for (const { tipLamports } of transactions) lamports += tipLamports;
  return lamports;
}

function minimumOf(route: RouteCapabilities, policy: PlanPolicy): bigint {
  const { minimumTipLamports } = route;
  return minimumTipLamports > policy.minimumTipLamports
    ? minimumTipLamports
    : policy.minimumTipLamports;
}

/** The first transaction that pays partners too little; undefined: `route` is no partner's, or none does. */
function underpaidFor(
  route: RouteCapabilities,
  { transactions }: PlanFacts,
  { partnerUnitLamports }: PlanPolicy,
): PlanTransaction | undefined {
  if (route.kind !== "alt-partner") return undefined;
  return transactions.find((one) => !paysPerUnit(one, partnerUnitLamports));
}

/** Whether tip and fees are enough for it. */
function isPaid(facts: PlanFacts, route: RouteCapabilities, policy: PlanPolicy): boolean {
  return tipOf(facts) >= minimumOf(route, policy) && !underpaidFor(route, facts, policy);
}

function isPartnerOf({ leaders }: RouteCapabilities, leader: string, policy: PlanPolicy): boolean {
  return policy.partners.has(leader) && (leaders === null || leaders.has(leader));
}

function reachesAnybody(route: RouteCapabilities, policy: PlanPolicy): boolean {
  if (route.kind !== "alt-partner") return true;
  for (const partner of policy.partners) if (isPartnerOf(route, partner, policy)) return true;
  return false;
}

function partnerFor(route: RouteCapabilities, leaders: LeaderContext, policy: PlanPolicy) {
  const { slot, current, next } = leaders;
  if (current !== null && isPartnerOf(route, current, policy)) return current;
  const isLastOfWindow = slot !== null && slot % windowSlots === windowSlots - 1n;
  const isNext = isLastOfWindow && next !== null && isPartnerOf(route, next, policy);
  return isNext ? next : undefined;
}

/** Whom a parcel on this route is for; undefined: it reaches nobody who leads now or soon. */
function leaderFor(route: RouteCapabilities, leaders: LeaderContext, policy: PlanPolicy) {
  if (route.kind === "alt-partner") return partnerFor(route, leaders, policy);
  const { current, next } = leaders;
  if (route.leaders === null) return current;
  if (current !== null && route.leaders.has(current)) return current;
  return next !== null && route.leaders.has(next) ? next : undefined;
}

/** Why a protected submission has to wait at present; null: it need not. */
export function holdReasonOf(leaders: LeaderContext, policy: PlanPolicy): HoldReason | null {
  const { denyLeaders } = policy;
  if (denyLeaders.size === 0) return null;
  const { current, next } = leaders;
  if ((current && denyLeaders.has(current)) || (next && denyLeaders.has(next))) {
    return "denied_leader";
  }
  return current === null || next === null ? "leader_unknown" : null;
}

/** Whether the route could take it at some time: when it is up and its leader's turn comes. */
export function couldTake(facts: PlanFacts, route: RouteCapabilities, policy: PlanPolicy): boolean {
  const fits = "mode" in fitOf(facts, route) && reachesAnybody(route, policy);
  return fits && isPaid(facts, route, policy);
}

function described(names: readonly string[]): string {
  if (names.length === 0) return "no route";
  const more = names.length - namesMax;
  return names.slice(0, namesMax).join("; ") + (more > 0 ? `; and ${more} more` : "");
}

function wantedText({ isBundle, options, transactions }: PlanFacts): string {
  const what =
    isBundle || transactions.length > 1
      ? `a bundle (transactions: ${transactions.length})`
      : "the transaction";
  const wants = [
    options.swqosOnly && "by SWQoS partners only",
    options.mevProtect && "safe from front-running",
    options.revertProtection && "protected from reverts",
  ].filter((want) => want !== false);
  return [what, ...wants].join(", ");
}

function tipRefusal(tip: bigint, tooDear: readonly RouteCapabilities[], policy: PlanPolicy) {
  const cheapest = tooDear.reduce((a, b) => (minimumOf(b, policy) < minimumOf(a, policy) ? b : a));
  const minimum = minimumOf(cheapest, policy);
  const message = `tip: expected at least ${minimum} lamports (route ${cheapest.name}), got ${tip} lamports`;
  return { kind: "refuse", reason: "tip_too_low", message } as const;
}

function refusalOf(
  facts: PlanFacts,
  routes: readonly PlanRoute[],
  policy: PlanPolicy,
): PlanRefusal {
  const tip = tipOf(facts);
  const obstacles: string[] = [];
  const tooDear: RouteCapabilities[] = [];
  let underpaid: PlanTransaction | undefined;
  let isPaidSomewhere = false;
  for (const { capabilities, isUp } of routes) {
    const fit = fitOf(facts, capabilities);
    const minimum = minimumOf(capabilities, policy);
    const tooCheap = underpaidFor(capabilities, facts, policy);
    const { name } = capabilities;
    if ("obstacle" in fit) {
      obstacles.push(`${name} (${fit.obstacle})`);
    } else if (tip < minimum) {
      tooDear.push(capabilities);
      obstacles.push(`${name} (minimum tip ${minimum} lamports, not ${tip})`);
    } else if (tooCheap) {
      underpaid ??= tooCheap;
      obstacles.push(`${name} (priority fee too low)`);
    } else {
      isPaidSomewhere = true;
      obstacles.push(`${name} (${isUp ? "its leader is not near" : "down"})`);
    }
  }
  if (!isPaidSomewhere && tooDear.length > 0) return tipRefusal(tip, tooDear, policy);
  if (!isPaidSomewhere && underpaid) {
    const message = unitFeeText(underpaid, policy.partnerUnitLamports);
    return { kind: "refuse", reason: "priority_fee_too_low", message };
  }
  const message = `routes: expected one that takes ${wantedText(facts)}, got ${described(obstacles)}`;
  return { kind: "refuse", reason: "no_route", message };
}

/** What would be refused in a partner's slot, too, is told first: the caller need not wait for one. */
function slotRefusalOf(
  refusal: PlanRefusal,
  { slot, current }: LeaderContext,
  { nextPartnerSlot }: PlanPolicy,
): PlanRefusal {
  if (refusal.reason !== "no_route") return refusal;
  const next = slot === null ? null : (nextPartnerSlot?.(slot) ?? null);
  const known = [
    current === null ? "leader not known" : `leader ${current}`,
    ...(next === null ? [] : [`next partner slot ${next}`]),
  ];
  const where = slot === null ? "slot not known" : `slot ${slot} (${known.join(", ")})`;
  const message = `${where}: received in a non-partner slot without fallback and is dropped`;
  return { kind: "refuse", reason: "non_partner_slot", message };
}

export function plan<R extends PlanRoute>(
  facts: PlanFacts,
  routes: readonly R[],
  leaders: LeaderContext,
  policy: PlanPolicy,
): Plan<R> {
  const { current } = leaders;
  const isPartnerSlot = current !== null && policy.partners.has(current);
  if (isForPartnersOnly(facts) && !isPartnerSlot) {
    return slotRefusalOf(refusalOf(facts, routes, policy), leaders, policy);
  }
  const legs: PlanLeg<R>[] = [];
  let couldGo = false;
  for (const route of routes) {
    const { capabilities } = route;
    const fit = fitOf(facts, capabilities);
    if ("obstacle" in fit || !isPaid(facts, capabilities, policy)) continue;
    couldGo ||= reachesAnybody(capabilities, policy);
    const leader = leaderFor(capabilities, leaders, policy);
    if (route.isUp && leader !== undefined) legs.push({ route, mode: fit.mode, leader });
  }
  const hold = facts.options.mevProtect && couldGo ? holdReasonOf(leaders, policy) : null;
  if (hold !== null) return { kind: "hold", reason: hold };
  const turn = legs.filter(({ route, leader }) => {
    return route.capabilities.kind === "alt-partner" && leader === current;
  });
  const isPartnersTurn = facts.method === "sendAlt" && facts.attempts === 0 && turn.length > 0;
  // Without fallback nobody is sent to before his own slot.
  if (isPartnersTurn || isForPartnersOnly(facts)) {
    return turn.length > 0 ? { kind: "send", legs: turn } : refusalOf(facts, routes, policy);
  }
  return legs.length > 0 ? { kind: "send", legs } : refusalOf(facts, routes, policy);
}
