// The send plan and alternative partners: leaders, fees and sendAlt.

import { describe, expect, it } from "vitest";
import { couldTake, type PlanPolicy, plan } from "../../../src/gateway/submission/plan.ts";
import type { LeaderContext } from "../../../src/gateway/submission/types.ts";
import {
  all,
  alt,
  altEverywhere,
  denying,
  factsOf,
  leaders,
  noLeaders,
  paidV1,
  partnerNext,
  partnerNow,
  partnerSoon,
  planned,
  policy,
  rich,
  routeOf,
  swqos,
  underpaid,
  withoutPartners,
} from "./plan-fixtures.ts";

type Case = [string, Parameters<typeof factsOf>[0], Parameters<typeof planned>[1], string];

const otherRoutes = "swqos scheduler tpu builder";
const altIsDown = [swqos, { ...alt, isUp: false }];
const elsewhere: LeaderContext = { ...partnerNow, current: "elsewhere" };

describe("a route to partners", () => {
  it.each<Case>([
    ["is used in a partner's slots", {}, { leaders: partnerNow }, `${otherRoutes} alt`],
    ["is used in the last slot before", {}, { leaders: partnerNext }, `${otherRoutes} alt`],
    ["is not used earlier", {}, { leaders: partnerSoon }, otherRoutes],
    ["is not used with too low a fee", { fee: underpaid }, { leaders: partnerNow }, otherRoutes],
    ["is used for v1", { fee: paidV1 }, { leaders: partnerNow }, `${otherRoutes} alt`],
    [
      "is not used for v1 with too low a fee",
      { fee: { ...paidV1, priorityFeeLamports: 1_999_999n } },
      { leaders: partnerNow },
      otherRoutes,
    ],
    [
      "is not used for v1 without units",
      { fee: { ...paidV1, computeUnitLimit: 0 } },
      { leaders: partnerNow },
      otherRoutes,
    ],
    [
      "is not used for former partners",
      {},
      { leaders: partnerNow, policy: withoutPartners },
      otherRoutes,
    ],
    ["is not used for partners that it does not reach", {}, { leaders: elsewhere }, otherRoutes],
    [
      "is used for every partner",
      {},
      { leaders: elsewhere, routes: [swqos, altEverywhere] },
      "swqos everywhere",
    ],
    ["is used for partners only", {}, { routes: [swqos, altEverywhere] }, "swqos"],
    ["is not used while the leader is unknown", {}, { leaders: noLeaders }, otherRoutes],
  ])("%s", (_, facts, some, expected) => {
    expect(planned(factsOf({ tip: rich, ...facts }), some)).toBe(expected);
  });
});

describe("sendAlt", () => {
  it.each<Case>([
    ["goes to the partner alone", {}, { leaders: partnerNow }, "alt"],
    ["again, too", { attempts: 1 }, { leaders: partnerNow }, "alt"],
    ["with protection", { options: { revertProtection: true } }, { leaders: partnerNow }, "alt"],
    ["slot passed", { attempts: 1 }, {}, "refuse non_partner_slot"],
    ["nobody's turn", {}, {}, "refuse non_partner_slot"],
    ["the last slot before its turn", {}, { leaders: partnerNext }, "refuse non_partner_slot"],
    ["leaders unknown", {}, { leaders: noLeaders }, "refuse non_partner_slot"],
    ["no route, no partner's slot", {}, { routes: [swqos] }, "refuse non_partner_slot"],
    ["no route", {}, { routes: [swqos], leaders: partnerNow }, "refuse no_route"],
    ["its route is down", {}, { routes: altIsDown, leaders: partnerNow }, "refuse no_route"],
    ["a partner that no route reaches", {}, { leaders: elsewhere }, "refuse no_route"],
    [
      "one route reaches this partner, another the next one",
      {},
      { leaders: { ...elsewhere, slot: 7n, next: "partner" }, routes: [alt, altEverywhere] },
      "everywhere",
    ],
    ["tip too low", { tip: rich - 1n }, { leaders: partnerNow }, "refuse tip_too_low"],
    ["tip too low, no partner's slot", { tip: rich - 1n }, {}, "refuse tip_too_low"],
    ["fee too low", { fee: underpaid }, { leaders: partnerNow }, "refuse priority_fee_too_low"],
    [
      "held while a denied leader is next",
      { options: { mevProtect: true } },
      {
        leaders: { ...partnerNow, next: "bad" },
        policy: denying,
        routes: [routeOf({ ...alt.capabilities, mevSafe: true })],
      },
      "hold denied_leader",
    ],
    [
      "not held without a partner's slot",
      { options: { mevProtect: true } },
      { leaders: { ...leaders, next: "bad" }, policy: denying },
      "refuse non_partner_slot",
    ],
  ])("%s", (_, facts, some, expected) => {
    expect(planned(factsOf({ method: "sendAlt", tip: rich, ...facts }), some)).toBe(expected);
  });

  it.each<Case>([
    ["the partner first", {}, { leaders: partnerNow }, "alt"],
    ["then all routes", { attempts: 1 }, { leaders: partnerNow }, `${otherRoutes} alt`],
    ["no partner's slot", {}, {}, otherRoutes],
    ["the last slot before its turn", {}, { leaders: partnerNext }, `${otherRoutes} alt`],
    ["leaders unknown", {}, { leaders: noLeaders }, otherRoutes],
    ["its route is down", {}, { routes: altIsDown, leaders: partnerNow }, "swqos"],
    ["tip too low for the partner", { tip: rich - 1n }, { leaders: partnerNow }, otherRoutes],
    ["fee too low for the partner", { fee: underpaid }, { leaders: partnerNow }, otherRoutes],
  ])("with fallback: %s", (_, facts, some, expected) => {
    const options = { enableFallback: true };
    expect(planned(factsOf({ method: "sendAlt", tip: rich, options, ...facts }), some)).toBe(
      expected,
    );
  });

  it("keeps revert protection in the fallback", () => {
    const options = { enableFallback: true, revertProtection: true };
    const facts = factsOf({ method: "sendAlt", tip: rich, options });
    expect(planned(facts)).toBe("builder*");
    expect(planned(facts, { leaders: partnerNow })).toBe("alt");
  });

  const dropped = ": received in a non-partner slot without fallback and is dropped";
  it.each<[string, LeaderContext, PlanPolicy, string]>([
    ["slot and leader", leaders, policy, "slot 5 (leader one)"],
    [
      "the next partner's slot, too",
      leaders,
      { ...policy, nextPartnerSlot: (slot) => slot + 3n },
      "slot 5 (leader one, next partner slot 8)",
    ],
    [
      "no slot when none comes",
      leaders,
      { ...policy, nextPartnerSlot: () => null },
      "slot 5 (leader one)",
    ],
    [
      "that the leader is not known",
      { ...noLeaders, slot: 5n },
      policy,
      "slot 5 (leader not known)",
    ],
    ["that the slot is not known", noLeaders, policy, "slot not known"],
  ])("refused for its slot says %s", (_, context, rules, where) => {
    expect(plan(factsOf({ method: "sendAlt", tip: rich }), all, context, rules)).toEqual({
      kind: "refuse",
      reason: "non_partner_slot",
      message: where + dropped,
    });
  });
});

describe("couldTake", () => {
  it.each<[string, Parameters<typeof factsOf>[0], PlanPolicy, boolean]>([
    ["when it is paid", {}, policy, true],
    ["not with too low a fee", { fee: underpaid }, policy, false],
    ["not with too low a tip", { tip: rich - 1n }, policy, false],
    ["not if it reaches no partner", {}, withoutPartners, false],
  ])("%s", (_, facts, rules, expected) => {
    expect(couldTake(factsOf({ tip: rich, ...facts }), alt.capabilities, rules)).toBe(expected);
  });
});
