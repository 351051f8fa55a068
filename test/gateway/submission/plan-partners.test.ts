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
  nobody,
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
} from "./plan-parts.ts";

type Case = [string, Parameters<typeof factsOf>[0], Parameters<typeof planned>[1], string];

const everybody = "swqos scheduler tpu builder";
const altIsDown = [swqos, { ...alt, isUp: false }];
const elsewhere: LeaderContext = { ...partnerNow, current: "elsewhere" };

describe("a route to partners", () => {
  it.each<Case>([
    ["in its slots", {}, { leaders: partnerNow }, `${everybody} alt`],
    ["in the last slot before", {}, { leaders: partnerNext }, `${everybody} alt`],
    ["not before that", {}, { leaders: partnerSoon }, everybody],
    ["not with too low a fee", { fee: underpaid }, { leaders: partnerNow }, everybody],
    ["v1", { fee: paidV1 }, { leaders: partnerNow }, `${everybody} alt`],
    [
      "not v1 with too low a fee",
      { fee: { ...paidV1, priorityFeeLamports: 1_999_999n } },
      { leaders: partnerNow },
      everybody,
    ],
    [
      "not v1 without units",
      { fee: { ...paidV1, computeUnitLimit: 0 } },
      { leaders: partnerNow },
      everybody,
    ],
    [
      "not to whom is no partner any more",
      {},
      { leaders: partnerNow, policy: withoutPartners },
      everybody,
    ],
    ["not to partners whom it does not reach", {}, { leaders: elsewhere }, everybody],
    [
      "to every partner",
      {},
      { leaders: elsewhere, routes: [swqos, altEverywhere] },
      "swqos everywhere",
    ],
    ["to partners alone", {}, { routes: [swqos, altEverywhere] }, "swqos"],
    ["not when nobody knows who leads", {}, { leaders: nobody }, everybody],
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
    ["leaders unknown", {}, { leaders: nobody }, "refuse non_partner_slot"],
    ["no route, nobody's turn", {}, { routes: [swqos] }, "refuse non_partner_slot"],
    ["no route", {}, { routes: [swqos], leaders: partnerNow }, "refuse no_route"],
    ["its route is down", {}, { routes: altIsDown, leaders: partnerNow }, "refuse no_route"],
    ["a partner whom no route reaches", {}, { leaders: elsewhere }, "refuse no_route"],
    [
      "one route reaches this partner, another the next one",
      {},
      { leaders: { ...elsewhere, slot: 7n, next: "partner" }, routes: [alt, altEverywhere] },
      "everywhere",
    ],
    ["tip too low", { tip: rich - 1n }, { leaders: partnerNow }, "refuse tip_too_low"],
    ["tip too low, nobody's turn", { tip: rich - 1n }, {}, "refuse tip_too_low"],
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
      "not held when it is nobody's turn",
      { options: { mevProtect: true } },
      { leaders: { ...leaders, next: "bad" }, policy: denying },
      "refuse non_partner_slot",
    ],
  ])("%s", (_, facts, some, expected) => {
    expect(planned(factsOf({ method: "sendAlt", tip: rich, ...facts }), some)).toBe(expected);
  });

  it.each<Case>([
    ["the partner first", {}, { leaders: partnerNow }, "alt"],
    ["then everybody", { attempts: 1 }, { leaders: partnerNow }, `${everybody} alt`],
    ["nobody's turn", {}, {}, everybody],
    ["the last slot before its turn", {}, { leaders: partnerNext }, `${everybody} alt`],
    ["leaders unknown", {}, { leaders: nobody }, everybody],
    ["its route is down", {}, { routes: altIsDown, leaders: partnerNow }, "swqos"],
    ["tip too low for the partner", { tip: rich - 1n }, { leaders: partnerNow }, everybody],
    ["fee too low for the partner", { fee: underpaid }, { leaders: partnerNow }, everybody],
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
    ["that the leader is not known", { ...nobody, slot: 5n }, policy, "slot 5 (leader not known)"],
    ["that the slot is not known", nobody, policy, "slot not known"],
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
    ["not when nobody whom it reaches is a partner", {}, withoutPartners, false],
  ])("%s", (_, facts, rules, expected) => {
    expect(couldTake(factsOf({ tip: rich, ...facts }), alt.capabilities, rules)).toBe(expected);
  });
});
