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
// - sendIdeal uses SWQoS, bundles and the alternative partner; sendAlt the partner's lane, and with
//   fallback also the routes of sendTransaction: at once when no partner leads, else from the second
//   attempt on.

import type {
  LeaderContext,
  ParcelMode,
  RouteCapabilities,
  RouteKind,
  SubmitMethod,
  SubmitOptions,
} from "./types.ts";

export interface PlanFacts {
  readonly method: SubmitMethod;
  readonly isBundle: boolean;
  readonly options: SubmitOptions;
  readonly transactions: readonly { readonly wire: Uint8Array; readonly tipLamports: bigint }[];
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
}

export interface PlanLeg<R extends PlanRoute> {
  readonly route: R;
  readonly mode: ParcelMode;
  readonly leader: string | null;
}

export type HoldReason = "denied_leader" | "leader_unknown";

export type Plan<R extends PlanRoute> =
  | { readonly kind: "send"; readonly legs: readonly PlanLeg<R>[] }
  | { readonly kind: "hold"; readonly reason: HoldReason }
  | {
      readonly kind: "refuse";
      readonly reason: "no_route" | "tip_too_low";
      /** What was expected and what came; does not begin with the reason. */
      readonly message: string;
    };

/** What cannot change while the route lives: its way for this submission, or why there is none. */
type Fit = { readonly mode: ParcelMode } | { readonly obstacle: string };

const idealKinds: ReadonlySet<RouteKind> = new Set(["swqos", "block-builder", "alt-partner"]);
const namesMax = 8;

function modeOf(facts: PlanFacts, kind: RouteKind): ParcelMode | null {
  const { isBundle, method, options, transactions } = facts;
  if (kind === "block-builder") {
    const asBundle = isBundle || options.revertProtection || method === "sendIdeal";
    return asBundle ? "bundle" : "transaction";
  }
  if (transactions.length > 1) return null;
  return options.revertProtection && kind !== "alt-partner" ? null : "transaction";
}

function obstacleOf(facts: PlanFacts, route: RouteCapabilities): string | null {
  const { method, options, transactions } = facts;
  if (options.swqosOnly && route.kind !== "swqos") return "no SWQoS partner";
  if (options.mevProtect && !route.mevSafe) return "not safe from front-running";
  if (method === "sendIdeal" && !idealKinds.has(route.kind)) return "not for sendIdeal";
  if (method === "sendAlt" && !options.enableFallback && route.kind !== "alt-partner") {
    return "no alternative partner";
  }
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

/** Whom a parcel on this route is for; undefined: it reaches neither of the two next leaders. */
function leaderFor(route: RouteCapabilities, { current, next }: LeaderContext) {
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
  return "mode" in fitOf(facts, route) && tipOf(facts) >= minimumOf(route, policy);
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

function refusalOf<R extends PlanRoute>(
  facts: PlanFacts,
  routes: readonly R[],
  policy: PlanPolicy,
): Plan<R> {
  const tip = tipOf(facts);
  const obstacles: string[] = [];
  const tooDear: RouteCapabilities[] = [];
  let isTipEnough = false;
  for (const { capabilities, isUp } of routes) {
    const fit = fitOf(facts, capabilities);
    const minimum = minimumOf(capabilities, policy);
    if ("obstacle" in fit) {
      obstacles.push(`${capabilities.name} (${fit.obstacle})`);
    } else if (tip < minimum) {
      tooDear.push(capabilities);
      obstacles.push(`${capabilities.name} (minimum tip ${minimum} lamports, not ${tip})`);
    } else {
      isTipEnough = true;
      obstacles.push(`${capabilities.name} (${isUp ? "its leader is not near" : "down"})`);
    }
  }
  if (!isTipEnough && tooDear.length > 0) {
    const cheapest = tooDear.reduce((a, b) =>
      minimumOf(b, policy) < minimumOf(a, policy) ? b : a,
    );
    const minimum = minimumOf(cheapest, policy);
    const message = `tip: expected at least ${minimum} lamports (route ${cheapest.name}), got ${tip} lamports`;
    return { kind: "refuse", reason: "tip_too_low", message };
  }
  const message = `routes: expected one that takes ${wantedText(facts)}, got ${described(obstacles)}`;
  return { kind: "refuse", reason: "no_route", message };
}

export function plan<R extends PlanRoute>(
  facts: PlanFacts,
  routes: readonly R[],
  leaders: LeaderContext,
  policy: PlanPolicy,
): Plan<R> {
  const tip = tipOf(facts);
  const legs: PlanLeg<R>[] = [];
  const partnerLegs: PlanLeg<R>[] = [];
  let couldGo = false;
  for (const route of routes) {
    const { capabilities } = route;
    const fit = fitOf(facts, capabilities);
    if ("obstacle" in fit || tip < minimumOf(capabilities, policy)) continue;
    couldGo = true;
    const leader = leaderFor(capabilities, leaders);
    if (!route.isUp || leader === undefined) continue;
    const leg = { route, mode: fit.mode, leader };
    legs.push(leg);
    if (capabilities.kind === "alt-partner") partnerLegs.push(leg);
  }
  const hold = facts.options.mevProtect && couldGo ? holdReasonOf(leaders, policy) : null;
  if (hold !== null) return { kind: "hold", reason: hold };
  const isPartnersTurn =
    facts.method === "sendAlt" && facts.attempts === 0 && partnerLegs.length > 0;
  if (isPartnersTurn) return { kind: "send", legs: partnerLegs };
  return legs.length > 0 ? { kind: "send", legs } : refusalOf(facts, routes, policy);
}
