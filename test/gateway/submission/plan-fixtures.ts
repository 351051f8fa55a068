// Submissions, routes, leaders and rules for tests of the plan.

import type { UnitFeeFacts } from "../../../src/core/transactions/unit-fee.ts";
import {
  type PlanFacts,
  type PlanPolicy,
  type PlanRoute,
  plan,
} from "../../../src/gateway/submission/plan.ts";
import type {
  LeaderContext,
  RouteCapabilities,
  SubmitOptions,
} from "../../../src/gateway/submission/types.ts";
import { capabilitiesOf } from "./model-routes-and-store.ts";

const noOptions: SubmitOptions = {
  swqosOnly: false,
  mevProtect: false,
  revertProtection: false,
  resendsMax: null,
};

/** Facts of a transaction that pays exactly the partners' minimum. */
export const paid: UnitFeeFacts = {
  version: 0,
  computeUnitLimit: 200_000,
  computeUnitPrice: 10_000_000n,
  priorityFeeLamports: 2_000_000n,
};
export const underpaid: UnitFeeFacts = { ...paid, computeUnitPrice: 9_999_999n };
export const paidV1: UnitFeeFacts = { ...paid, version: 1, computeUnitPrice: 0n };

export function factsOf(
  some: Partial<Omit<PlanFacts, "options">> & {
    options?: Partial<SubmitOptions>;
    tip?: bigint;
    bytes?: number;
    count?: number;
    fee?: UnitFeeFacts;
  } = {},
): PlanFacts {
  const { options, tip = 10_000n, bytes = 300, count = 1, fee = paid, ...rest } = some;
  return {
    method: "sendTransaction",
    isBundle: false,
    attempts: 0,
    ...rest,
    options: { ...noOptions, ...options },
    transactions: Array.from({ length: count }, (_, i) => ({
      wire: new Uint8Array(bytes),
      tipLamports: i === 0 ? tip : 0n,
      ...fee,
    })),
  };
}

export function routeOf(some: Partial<RouteCapabilities>, isUp = true): PlanRoute {
  return { capabilities: capabilitiesOf(some), isUp };
}

export const swqos = routeOf({ name: "swqos", kind: "swqos" });
export const scheduler = routeOf({ name: "scheduler", kind: "scheduler", mevSafe: true });
export const tpu = routeOf({ name: "tpu", kind: "tpu" });
export const builder = routeOf({
  name: "builder",
  kind: "block-builder",
  modes: ["transaction", "bundle"],
  mevSafe: true,
});
export const alt = routeOf({
  name: "alt",
  kind: "alt-partner",
  minimumTipLamports: 100_000n,
  leaders: new Set(["partner"]),
});
/** A route to every leader that is a partner. */
export const altEverywhere = routeOf({
  name: "everywhere",
  kind: "alt-partner",
  minimumTipLamports: 100_000n,
});
export const all = [swqos, scheduler, tpu, builder, alt];
export const leaders: LeaderContext = { slot: 5n, current: "one", next: "two" };
export const partnerNow: LeaderContext = { slot: 5n, current: "partner", next: "two" };
/** A partner leads the next window, but not the next slot. */
export const partnerSoon: LeaderContext = { slot: 6n, current: "one", next: "partner" };
export const partnerNext: LeaderContext = { ...partnerSoon, slot: 7n };
export const policy: PlanPolicy = {
  denyLeaders: new Set(),
  minimumTipLamports: 10_000n,
  partners: new Set(["partner", "elsewhere"]),
  partnerUnitLamports: 10n,
};
export const withoutPartners: PlanPolicy = { ...policy, partners: new Set() };
export const denying: PlanPolicy = { ...policy, denyLeaders: new Set(["bad"]) };
export const rich = 100_000n;

/** "name mode" of every choice, "hold reason" or "refuse reason". */
export function planned(
  facts: PlanFacts,
  some: { routes?: readonly PlanRoute[]; leaders?: LeaderContext; policy?: PlanPolicy } = {},
): string {
  const result = plan(facts, some.routes ?? all, some.leaders ?? leaders, some.policy ?? policy);
  if (result.kind !== "send") return `${result.kind} ${result.reason}`;
  return result.choices
    .map(({ route, mode }) => `${route.capabilities.name}${mode === "bundle" ? "*" : ""}`)
    .join(" ");
}

export const noLeaders: LeaderContext = { slot: null, current: null, next: null };
