// The plan: every combination of options, route kinds, tips and leaders, and the invariants of all.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type PlanFacts,
  type PlanRoute,
  type PlanTransaction,
  plan,
  refusalError,
} from "../../../src/gateway/submission/plan.ts";
import { routeKinds } from "../../../src/gateway/submission/types.ts";
import { tipWallet } from "../../support/gateway/gateway.ts";
import { tippingV0 } from "../../support/transactions/tipping.ts";
import {
  all,
  alt,
  builder,
  denying,
  factsOf,
  leaders,
  noLeaders,
  paid,
  paidV1,
  partnerNext,
  planned,
  policy,
  rich,
  routeOf,
  swqos,
  tpu,
  underpaid,
  withoutPartners,
} from "./plan-fixtures.ts";

const bundle = { method: "sendBundle", isBundle: true } as const;

describe("plan", () => {
  it.each<[string, Parameters<typeof factsOf>[0], Parameters<typeof planned>[1], string]>([
    ["sendTransaction", {}, {}, "swqos scheduler tpu builder"],
    ["enough for the partner, not its turn", { tip: rich }, {}, "swqos scheduler tpu builder"],
    [
      "the partner is next",
      { tip: rich },
      { leaders: partnerNext },
      "swqos scheduler tpu builder alt",
    ],
    [
      "the partner is next, tip too low",
      { tip: rich - 1n },
      { leaders: partnerNext },
      "swqos scheduler tpu builder",
    ],
    ["leaders unknown", { tip: rich }, { leaders: noLeaders }, "swqos scheduler tpu builder"],
    ["swqosOnly", { options: { swqosOnly: true } }, {}, "swqos"],
    [
      "swqosOnly without a partner",
      { options: { swqosOnly: true } },
      { routes: [tpu, builder] },
      "refuse no_route",
    ],
    [
      "swqosOnly and safe",
      { options: { swqosOnly: true, mevProtect: true } },
      {},
      "refuse no_route",
    ],
    ["mevProtect", { options: { mevProtect: true } }, { policy: denying }, "scheduler builder"],
    [
      "mevProtect, denied is current",
      { options: { mevProtect: true } },
      { policy: denying, leaders: { ...leaders, current: "bad" } },
      "hold denied_leader",
    ],
    [
      "mevProtect, denied is next",
      { options: { mevProtect: true } },
      { policy: denying, leaders: { ...leaders, next: "bad" } },
      "hold denied_leader",
    ],
    [
      "mevProtect, next unknown",
      { options: { mevProtect: true } },
      { policy: denying, leaders: { ...leaders, next: null } },
      "hold leader_unknown",
    ],
    [
      "mevProtect, unknown, nobody denied",
      { options: { mevProtect: true } },
      { leaders: noLeaders },
      "scheduler builder",
    ],
    [
      "mevProtect without a safe route, denied",
      { options: { mevProtect: true } },
      { policy: denying, routes: [swqos], leaders: { ...leaders, current: "bad" } },
      "refuse no_route",
    ],
    [
      "unprotected while denied",
      {},
      { policy: denying, leaders: { ...leaders, current: "bad" } },
      "swqos scheduler tpu builder",
    ],
    ["revertProtection", { options: { revertProtection: true } }, {}, "builder*"],
    [
      "revertProtection, partner",
      { options: { revertProtection: true }, tip: rich },
      { leaders: partnerNext },
      "builder* alt",
    ],
    ["bundle of two", { ...bundle, count: 2 }, {}, "builder*"],
    ["bundle of five", { ...bundle, count: 5 }, {}, "builder*"],
    [
      "bundle of two, partner",
      { ...bundle, count: 2, tip: rich },
      { leaders: partnerNext },
      "builder*",
    ],
    [
      "bundle of one",
      { ...bundle, tip: rich },
      { leaders: partnerNext },
      "swqos scheduler tpu builder* alt",
    ],
    [
      "bundle of one, revertProtection",
      { ...bundle, options: { revertProtection: true } },
      {},
      "builder*",
    ],
    [
      "bundle, swqosOnly",
      { ...bundle, count: 2, options: { swqosOnly: true } },
      {},
      "refuse no_route",
    ],
    [
      "bundle without builder",
      { ...bundle, count: 2 },
      { routes: [swqos, tpu] },
      "refuse no_route",
    ],
    [
      "bundle, builder takes none",
      { ...bundle, count: 2 },
      { routes: [routeOf({ kind: "block-builder" })] },
      "refuse no_route",
    ],
    ["sendIdeal", { method: "sendIdeal" }, {}, "swqos builder*"],
    [
      "sendIdeal, partner",
      { method: "sendIdeal", tip: rich },
      { leaders: partnerNext },
      "swqos builder* alt",
    ],
    ["sendBatch", { method: "sendBatch" }, {}, "swqos scheduler tpu builder"],
    ["too large", { bytes: 1233 }, {}, "refuse no_route"],
    ["as large as can be", { bytes: 1232 }, {}, "swqos scheduler tpu builder"],
    [
      "a route for large ones",
      { bytes: 4096 },
      { routes: [...all, routeOf({ name: "v1", transactionBytesMax: 4096 })] },
      "v1",
    ],
    ["tip too low", { tip: 9_999n }, {}, "refuse tip_too_low"],
    [
      "tip too low, route down",
      { tip: 9_999n },
      { routes: [routeOf({}, false)] },
      "refuse tip_too_low",
    ],
    ["all down", {}, { routes: [routeOf({}, false)] }, "refuse no_route"],
    ["no routes", {}, { routes: [] }, "refuse no_route"],
    ["one down", {}, { routes: [routeOf({}, false), tpu] }, "tpu"],
  ])("%s", (_, facts, some, expected) => {
    expect(planned(factsOf(facts), some)).toBe(expected);
  });

  it("contains the leader of each choice", () => {
    const result = plan(factsOf({ tip: rich }), all, partnerNext, policy);
    const choices = result.kind === "send" ? result.choices : [];
    const leaderOf = (name: string) =>
      choices.find(({ route }) => route.capabilities.name === name)?.leader;
    expect([leaderOf("tpu"), leaderOf("alt")]).toEqual(["one", "partner"]);
  });

  it.each([
    [5000n, "tip_too_low"],
    [0n, "tip_missing"],
  ])("refuses a tip of %s lamports as the methods do", (tip, reason) => {
    const dear = routeOf({ minimumTipLamports: 20_000n });
    const rules = { ...policy, tipAddresses: ["One", "Two"] };
    const result = plan(factsOf({ tip }), [dear], leaders, rules);
    const refusal = result.kind === "refuse" ? refusalError(result, "this: ") : null;
    expect(refusal).toMatchObject({
      reason,
      message: `this: tip ${tip} lamports, minimum 20000 lamports, addresses: One, Two`,
      details: { tipLamports: tip, minimumLamports: 20_000n },
    });
  });

  it("says of a route's minimum that an address from a lookup table does not count", () => {
    const routes = [
      routeOf({ kind: "block-builder", modes: ["bundle"], minimumTipLamports: rich }),
    ];
    const messageFor = (...wires: Uint8Array[]) => {
      const transactions = wires.map((wire) => ({ ...paid, wire, tipLamports: 0n }));
      const result = plan({ ...factsOf(bundle), transactions }, routes, leaders, policy);
      return result.kind === "refuse" ? result.message : "";
    };
    const without = "tip 0 lamports, minimum 100000 lamports";
    expect(messageFor(tippingV0(), tippingV0({ amount: 2n }))).toBe(without);
    expect(messageFor(tippingV0(), tippingV0({}, [tipWallet.publicKey]))).toBe(
      `${without}; an address from a lookup table does not count`,
    );
  });

  it("reports the expected and the received value", () => {
    const message = (facts: PlanFacts, routes: readonly PlanRoute[]) => {
      const result = plan(facts, routes, leaders, policy);
      return result.kind === "refuse" ? result.message : "";
    };
    expect(message(factsOf({ tip: 5000n }), all)).toBe("tip 5000 lamports, minimum 10000 lamports");
    expect(message(factsOf({ options: { swqosOnly: true } }), [tpu, routeOf({}, false)])).toBe(
      "no route for the transaction, through SWQoS partners only: not a SWQoS partner (1 route); down (1 route)",
    );
    expect(message(factsOf({ ...bundle, count: 2 }), [swqos])).toBe(
      "no route for a bundle (transactions: 2): does not accept bundles (1 route)",
    );
    const cheap = factsOf({ tip: rich, fee: underpaid });
    expect(message(cheap, [alt])).toBe(
      "priority fee too low: 9999999 micro-lamports per compute unit; minimum 10 lamports per compute unit (10000000 micro-lamports)",
    );
    expect(message(cheap, [routeOf({}, false), alt])).toBe(
      "no route for the transaction: down (1 route); priority fee too low (1 route)",
    );
    const dear = [
      routeOf({ minimumTipLamports: 30_000n }),
      routeOf({ minimumTipLamports: 20_000n }),
    ];
    expect(message(factsOf(), [routeOf({}, false), ...dear])).toBe(
      "no route for the transaction: down (1 route); tip below 20000 lamports (2 routes)",
    );
    expect(message(factsOf(), [])).toBe("no route for the transaction: no route is configured");
    const many = Array.from({ length: 20 }, (_, i) => routeOf({ name: `r${i}` }, false));
    expect(message(factsOf(), many)).toMatch(/: down \(20 routes\)$/);
  });
});

const unitsOf = ({ computeUnitLimit }: PlanTransaction) => BigInt(computeUnitLimit);
const lamportsOf = (one: PlanTransaction) =>
  one.version === 1 ? one.priorityFeeLamports : (one.computeUnitPrice * unitsOf(one)) / 1_000_000n;

const identity = fc.constantFrom("one", "two", "bad", "partner");
const anyRoute = fc.record({
  isUp: fc.boolean(),
  capabilities: fc.record({
    name: fc.string({ minLength: 1, maxLength: 5 }),
    kind: fc.constantFrom(...routeKinds),
    modes: fc.subarray(["transaction", "bundle"] as const),
    transactionBytesMax: fc.constantFrom(1232, 4096),
    mevSafe: fc.boolean(),
    minimumTipLamports: fc.constantFrom(0n, 10_000n, 100_000n),
    leaders: fc.option(fc.uniqueArray(identity).map((names) => new Set<string>(names))),
  }),
});
const anyFacts = fc
  .record({
    method: fc.constantFrom("sendTransaction", "sendBundle", "sendBatch", "sendIdeal", "sendAlt"),
    tip: fc.constantFrom(0n, 9_999n, 10_000n, 100_000n),
    fee: fc.constantFrom(paid, underpaid, paidV1, { ...paidV1, priorityFeeLamports: 1n }),
    bytes: fc.constantFrom(200, 1232, 1233, 4096, 4097),
    count: fc.integer({ min: 1, max: 5 }),
    attempts: fc.integer({ min: 0, max: 2 }),
    options: fc.record({
      swqosOnly: fc.boolean(),
      mevProtect: fc.boolean(),
      revertProtection: fc.boolean(),
      resendsMax: fc.constant(null),
      enableFallback: fc.boolean(),
    }),
  })
  .map(({ count, method, ...rest }) =>
    factsOf({
      ...rest,
      method,
      count: method === "sendBundle" ? count : 1,
      isBundle: method === "sendBundle",
    }),
  );
const anyLeaders = fc.record({
  slot: fc.option(fc.bigInt(0n, 8n)),
  current: fc.option(identity),
  next: fc.option(identity),
});
const anyPolicy = fc.constantFrom(policy, denying, withoutPartners);

describe("every plan", () => {
  it("fulfils every option, and gives a reason when it refuses", () => {
    fc.assert(
      fc.property(
        fc.array(anyRoute, { maxLength: 6 }),
        anyFacts,
        anyLeaders,
        anyPolicy,
        (routes, facts, context, rules) => {
          const result = plan(facts, routes, context, rules);
          if (result.kind === "refuse") {
            const isDropped = result.reason === "non_partner_slot";
            expect(result.message).toMatch(
              isDropped
                ? /^slot .+: received in a non-partner slot without fallback and is dropped$/
                : /^(tip \d+ lamports, minimum \d+|no route for .+: .+|priority fee (too low: \d+|unknown))/,
            );
            if (isDropped) {
              expect([facts.method, facts.options.enableFallback]).toEqual(["sendAlt", false]);
              expect(rules.partners.has(context.current ?? "")).toBe(false);
            }
            return;
          }
          const denied = (one: string | null) => one === null || rules.denyLeaders.has(one);
          const isNear =
            rules.denyLeaders.size > 0 && (denied(context.current) || denied(context.next));
          if (result.kind === "hold") {
            expect(facts.options.mevProtect && isNear).toBe(true);
            return;
          }
          const { options, transactions, method } = facts;
          const tip = transactions.reduce((sum, { tipLamports }) => sum + tipLamports, 0n);
          expect(result.choices.length).toBeGreaterThan(0);
          expect(new Set(result.choices.map(({ route }) => route)).size).toBe(
            result.choices.length,
          );
          if (options.mevProtect) expect(isNear).toBe(false);
          for (const { route, mode, leader } of result.choices) {
            const { kind, mevSafe, modes, transactionBytesMax, minimumTipLamports } =
              route.capabilities;
            expect(route.isUp).toBe(true);
            expect(modes).toContain(mode);
            if (options.swqosOnly) expect(kind).toBe("swqos");
            if (options.mevProtect) expect(mevSafe).toBe(true);
            if (options.revertProtection)
              expect(mode === "bundle" || kind === "alt-partner").toBe(true);
            if (transactions.length > 1) expect([kind, mode]).toEqual(["block-builder", "bundle"]);
            if (method === "sendAlt" && !options.enableFallback) {
              expect([kind, leader]).toEqual(["alt-partner", context.current]);
            }
            if (kind === "alt-partner") {
              expect(leader !== null && rules.partners.has(leader)).toBe(true);
              if (leader !== context.current) expect((context.slot ?? 0n) % 4n).toBe(3n);
              for (const one of transactions)
                expect(lamportsOf(one) >= 10n * unitsOf(one)).toBe(true);
            }
            for (const { wire } of transactions) {
              expect(wire.length).toBeLessThanOrEqual(transactionBytesMax);
            }
            expect(tip >= minimumTipLamports && tip >= rules.minimumTipLamports).toBe(true);
            const reached = route.capabilities.leaders;
            if (reached) {
              expect(leader !== null && reached.has(leader)).toBe(true);
              expect([context.current, context.next]).toContain(leader);
            }
          }
        },
      ),
      { numRuns: 3000 },
    );
  });
});
