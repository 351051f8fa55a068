// Plan: chooses the routes for one attempt of a submission, or decides to wait or to refuse it.
//
// Pure. dispatch.ts calls it before every attempt, so that a plan never outlives the leaders that it was
// made for. The caller's options are never weakened to find a route: if no route fulfils them, the
// submission is refused.
//
// - swqosOnly means partners of kind "swqos". Kind "tpu" is excluded, because it is not known whether this
//   node's identity has stake.
// - mevProtect uses routes marked as safe, and waits while a leader of the deny list is current or next. It
//   also waits while there is a deny list and the leaders are not known.
// - revertProtection is provided by bundles (a single transaction becomes a bundle of one) and by
//   alternative partners; every other route may land the transaction as failed.
// - Alternative partners are those of the policy, whatever leaders a route reaches. They get transactions
//   that pay their tip and their fee per compute unit, while one of them leads and in the slot before.
// - sendIdeal uses SWQoS, bundles and alternative partners. sendAlt uses alternative partners, in their own
//   slots only. With fallback it also uses the routes of sendTransaction: at once if no partner leads or
//   accepts it, else from the second attempt on, which partner-auctions.ts makes due. Without fallback it is
//   refused in other slots.

import { type ErrorDetails, ShredwayError } from "../../core/errors.ts";
import { windowSlots } from "../../core/solana-constants.ts";
import { messageContentOf } from "../../core/transactions/message-content.ts";
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
  /** Attempts so far. */
  readonly attempts: number;
  /**
   * Names of the routes that took it before. Their minimums no longer apply: a reload may have raised them,
   * and the submission was accepted.
   */
  readonly takenBy?: readonly string[];
}

export interface PlanRoute {
  readonly capabilities: RouteCapabilities;
  readonly isUp: boolean;
}

export interface PlanPolicy {
  /** Identities in base58. */
  readonly denyLeaders: ReadonlySet<string>;
  /** Smallest tip of every attempt, whatever its route asks for. */
  readonly minimumTipLamports: bigint;
  /** Identities of the alternative partners in base58. */
  readonly partners: ReadonlySet<string>;
  /** Smallest priority fee for alternative partners, in lamports per compute unit. */
  readonly partnerUnitLamports: bigint;
  /** First slot of a partner at or after `slot`, for error messages; null or absent: not known. */
  readonly nextPartnerSlot?: (slot: bigint) => bigint | null;
  /** Tip addresses in base58, for error messages; absent: not known. */
  readonly tipAddresses?: readonly string[];
}

interface RouteChoice<R extends PlanRoute> {
  readonly route: R;
  readonly mode: SendMode;
  readonly leader: string | null;
}

type HoldReason = "denied_leader" | "leader_unknown";

interface TipShortfall {
  readonly reason: "tip_missing" | "tip_too_low";
  /** Error message, without the reason. */
  readonly message: string;
  readonly details: NonNullable<ErrorDetails["tip_too_low"]>;
}

interface PlainRefusal {
  readonly reason: "no_route" | "priority_fee_too_low" | "non_partner_slot";
  /** Error message, without the reason. */
  readonly message: string;
}

type PlanRefusal = { readonly kind: "refuse" } & (TipShortfall | PlainRefusal);

export type Plan<R extends PlanRoute> =
  | { readonly kind: "send"; readonly choices: readonly RouteChoice<R>[] }
  | { readonly kind: "hold"; readonly reason: HoldReason }
  | PlanRefusal;

/** How a route can send this submission, or why it cannot; constant while the route exists. */
type Fit = { readonly mode: SendMode } | { readonly obstacle: string };

const idealKinds: ReadonlySet<RouteKind> = new Set(["swqos", "block-builder", "alt-partner"]);

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
  if (options.swqosOnly && route.kind !== "swqos") return "not a SWQoS partner";
  if (options.mevProtect && !route.mevSafe) return "not safe from front-running";
  if (method === "sendIdeal" && !idealKinds.has(route.kind)) return "not for sendIdeal";
  if (isForPartnersOnly(facts) && route.kind !== "alt-partner") return "not an alternative partner";
  let bytesMax = 0;
  for (const { wire } of transactions) bytesMax = Math.max(bytesMax, wire.length);
  return bytesMax > route.transactionBytesMax
    ? `${bytesMax} bytes, limit ${route.transactionBytesMax}`
    : null;
}

function fitOf(facts: PlanFacts, route: RouteCapabilities): Fit {
  const obstacle = obstacleOf(facts, route);
  if (obstacle !== null) return { obstacle };
  const mode = modeOf(facts, route.kind);
  if (mode === null) {
    const isMany = facts.transactions.length > 1;
    return { obstacle: isMany ? "does not accept bundles" : "no revert protection" };
  }
  return route.modes.includes(mode) ? { mode } : { obstacle: `does not accept a ${mode}` };
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

/** The first transaction whose priority fee is too low for the partners of `route`; undefined: none. */
function underpaidFor(
  route: RouteCapabilities,
  { transactions }: PlanFacts,
  { partnerUnitLamports }: PlanPolicy,
): PlanTransaction | undefined {
  if (route.kind !== "alt-partner") return undefined;
  return transactions.find((one) => !paysPerUnit(one, partnerUnitLamports));
}

/** Whether tip and priority fee are sufficient for the route. */
function isPaid(facts: PlanFacts, route: RouteCapabilities, policy: PlanPolicy): boolean {
  if (facts.takenBy?.includes(route.name)) return true;
  return tipOf(facts) >= minimumOf(route, policy) && !underpaidFor(route, facts, policy);
}

function isPartnerOf({ leaders }: RouteCapabilities, leader: string, policy: PlanPolicy): boolean {
  return policy.partners.has(leader) && (leaders === null || leaders.has(leader));
}

function hasRecipients(route: RouteCapabilities, policy: PlanPolicy): boolean {
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

/** The leader to send to by this route; undefined: it reaches neither the current nor the next one. */
function leaderFor(route: RouteCapabilities, leaders: LeaderContext, policy: PlanPolicy) {
  if (route.kind === "alt-partner") return partnerFor(route, leaders, policy);
  const { current, next } = leaders;
  if (route.leaders === null) return current;
  if (current !== null && route.leaders.has(current)) return current;
  return next !== null && route.leaders.has(next) ? next : undefined;
}

/** Why a protected submission must wait now; null: it need not. */
export function holdReasonOf(leaders: LeaderContext, policy: PlanPolicy): HoldReason | null {
  const { denyLeaders } = policy;
  if (denyLeaders.size === 0) return null;
  const { current, next } = leaders;
  if ((current && denyLeaders.has(current)) || (next && denyLeaders.has(next))) {
    return "denied_leader";
  }
  return current === null || next === null ? "leader_unknown" : null;
}

/** Whether the route could take it at another time: when it is up and its leader leads. */
export function couldTake(facts: PlanFacts, route: RouteCapabilities, policy: PlanPolicy): boolean {
  const fits = "mode" in fitOf(facts, route) && hasRecipients(route, policy);
  return fits && isPaid(facts, route, policy);
}

/** Counts the routes by obstacle. Their names and minimum tips are for the operator only. */
function described(obstacles: readonly string[]): string {
  if (obstacles.length === 0) return "no route is configured";
  const counts = new Map<string, number>();
  for (const obstacle of obstacles) counts.set(obstacle, (counts.get(obstacle) ?? 0) + 1);
  return Array.from(
    counts,
    ([obstacle, count]) => `${obstacle} (${count} ${count === 1 ? "route" : "routes"})`,
  ).join("; ");
}

function wantedText({ isBundle, options, transactions }: PlanFacts): string {
  const what =
    isBundle || transactions.length > 1
      ? `a bundle (transactions: ${transactions.length})`
      : "the transaction";
  const wants = [
    options.swqosOnly && "through SWQoS partners only",
    options.mevProtect && "safe from front-running",
    options.revertProtection && "with revert protection",
  ].filter((want) => want !== false);
  return [what, ...wants].join(", ");
}

/** The smallest tip that one of `routes` accepts. */
function lowestMinimum(routes: readonly RouteCapabilities[], policy: PlanPolicy): bigint {
  return routes.map((route) => minimumOf(route, policy)).reduce((a, b) => (b < a ? b : a));
}

const tablesHint = "; an address from a lookup table does not count";

interface TipRule {
  readonly transactions: readonly PlanTransaction[];
  readonly minimum: bigint;
  /** The method whose own minimum it is. */
  readonly method?: SubmitMethod | undefined;
  /** In base58. */
  readonly addresses: readonly string[];
}

/** A tip may be among the keys of its lookup tables, which only the chain knows. */
function hasTables({ version, wire }: PlanTransaction): boolean {
  return version === 0 && messageContentOf(wire)?.hasTables === true;
}

/** Describes a tip below the minimum of a method or of a route. */
export function tipShortfall(tip: bigint, rule: TipRule): TipShortfall {
  const { transactions, minimum, method, addresses } = rule;
  const owner = method === undefined ? "" : ` for ${method}`;
  const places = addresses.length === 0 ? "" : `, addresses: ${addresses.join(", ")}`;
  const hint = transactions.some(hasTables) ? tablesHint : "";
  return {
    reason: tip === 0n ? "tip_missing" : "tip_too_low",
    message: `tip ${tip} lamports, minimum ${minimum} lamports${owner}${places}${hint}`,
    details: { tipLamports: tip, minimumLamports: minimum },
  };
}

/** The error of a refusal. `which`: its transaction, with ": ", before the message. */
export function refusalError(refusal: TipShortfall | PlainRefusal, which: string): ShredwayError {
  const message = `${which}${refusal.message}`;
  if (!("details" in refusal)) return new ShredwayError(refusal.reason, message);
  const { reason, details } = refusal;
  return reason === "tip_missing"
    ? new ShredwayError(reason, message, { details })
    : new ShredwayError(reason, message, { details });
}

function tipRefusal(
  facts: PlanFacts,
  overpriced: readonly RouteCapabilities[],
  policy: PlanPolicy,
): PlanRefusal {
  const { transactions } = facts;
  const { tipAddresses: addresses = [] } = policy;
  const minimum = lowestMinimum(overpriced, policy);
  return { kind: "refuse", ...tipShortfall(tipOf(facts), { transactions, minimum, addresses }) };
}

function refusalOf(
  facts: PlanFacts,
  routes: readonly PlanRoute[],
  policy: PlanPolicy,
): PlanRefusal {
  const tip = tipOf(facts);
  const obstacles: string[] = [];
  const overpriced: RouteCapabilities[] = [];
  let underpaid: PlanTransaction | undefined;
  let isPaidOnSomeRoute = false;
  const dearer = (): string => `tip below ${lowestMinimum(overpriced, policy)} lamports`;
  for (const { capabilities, isUp } of routes) {
    const fit = fitOf(facts, capabilities);
    const minimum = minimumOf(capabilities, policy);
    const tooCheap = underpaidFor(capabilities, facts, policy);
    if ("obstacle" in fit) {
      obstacles.push(fit.obstacle);
    } else if (tip < minimum) {
      overpriced.push(capabilities);
    } else if (tooCheap) {
      underpaid ??= tooCheap;
      obstacles.push("priority fee too low");
    } else {
      isPaidOnSomeRoute = true;
      obstacles.push(isUp ? "does not reach the next leaders" : "down");
    }
  }
  if (!isPaidOnSomeRoute && overpriced.length > 0) return tipRefusal(facts, overpriced, policy);
  if (!isPaidOnSomeRoute && underpaid) {
    const message = unitFeeText(underpaid, policy.partnerUnitLamports);
    return { kind: "refuse", reason: "priority_fee_too_low", message };
  }
  obstacles.push(...overpriced.map(dearer));
  const message = `no route for ${wantedText(facts)}: ${described(obstacles)}`;
  return { kind: "refuse", reason: "no_route", message };
}

/** A refusal that would also apply in a partner's slot comes first: waiting for one would not help. */
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
  const choices: RouteChoice<R>[] = [];
  let couldGo = false;
  for (const route of routes) {
    const { capabilities } = route;
    const fit = fitOf(facts, capabilities);
    if ("obstacle" in fit || !isPaid(facts, capabilities, policy)) continue;
    couldGo ||= hasRecipients(capabilities, policy);
    const leader = leaderFor(capabilities, leaders, policy);
    if (route.isUp && leader !== undefined) choices.push({ route, mode: fit.mode, leader });
  }
  const hold = facts.options.mevProtect && couldGo ? holdReasonOf(leaders, policy) : null;
  if (hold !== null) return { kind: "hold", reason: hold };
  const turn = choices.filter(({ route, leader }) => {
    return route.capabilities.kind === "alt-partner" && leader === current;
  });
  const isPartnersTurn = facts.method === "sendAlt" && facts.attempts === 0 && turn.length > 0;
  // Without fallback a partner gets nothing before its own slot.
  if (isPartnersTurn || isForPartnersOnly(facts)) {
    return turn.length > 0 ? { kind: "send", choices: turn } : refusalOf(facts, routes, policy);
  }
  return choices.length > 0 ? { kind: "send", choices } : refusalOf(facts, routes, policy);
}
