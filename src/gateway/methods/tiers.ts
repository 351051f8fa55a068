// getTier and getTierHistory: what an account's registered tips buy at present, and how that came about.
//
// Called through table.ts. Only of the caller's own account. Times are ISO 8601 in UTC, amounts integer
// lamports.

import type { TierEvent, TierView, WrittenInteger } from "../../client/responses.ts";
import { type TierEvent as KeptEvent, tierEventKinds } from "../../shreds/tiers/types.ts";
import {
  closed,
  described,
  enumOf,
  lamports,
  listOf,
  number,
  orNull,
  string,
  time,
  wholeNumber,
} from "../schema/json-schema.ts";
import { type ArgsOf, optional } from "../schema/params.ts";
import { samples } from "../schema/samples.ts";
import { field, integer, optionsOf, positive } from "../schema/shapes.ts";
import type { ShredSales } from "./dependencies.ts";
import { salesOf, timeText } from "./destinations.ts";
import { type Call, type MethodTable, method } from "./method.ts";

const tierEventsMax = 100;

/** As callers and the portal are told of it. */
export function tierFacts(
  { tiers, tierRules }: ShredSales,
  accountId: string,
): Omit<TierView, "destinations"> {
  const rules = tierRules();
  const view = tiers.view(accountId);
  const { graceSinceMs, graceEndsMs, sumLamports } = view;
  return {
    tier: view.tier,
    sumLamports,
    windowHours: rules.windowMs / 3_600_000,
    thresholds: rules.tiers.map(({ name, thresholdLamports }) => ({
      tier: name,
      thresholdLamports,
      missingLamports: sumLamports < thresholdLamports ? thresholdLamports - sumLamports : 0n,
    })),
    grace:
      graceSinceMs === null || graceEndsMs === null
        ? null
        : { since: timeText(graceSinceMs), ends: timeText(graceEndsMs) },
  };
}

function tier(call: Call): TierView {
  const sales = salesOf(call);
  const { accountId } = call.key;
  const destinations = sales.destinations.ofAccount(accountId).length;
  return { ...tierFacts(sales, accountId), destinations };
}

/** The event as a sentence, for people. */
function textOf({ kind, from, to, sumLamports }: KeptEvent): string {
  const sum = `the tips of the window are ${sumLamports} lamports`;
  switch (kind) {
    case "upgraded":
      return `${to ?? "no tier"} instead of ${from ?? "none"}: ${sum}`;
    case "downgraded":
      return `${to ?? "no tier"} instead of ${from ?? "none"}: the grace is over, ${sum}`;
    case "grace_started":
      return `${sum}, less than ${from ?? "the tier"} takes; it holds on for the grace`;
    case "grace_cancelled":
      return `${sum}, again enough for ${to ?? "the tier"}`;
  }
}

function eventJson(event: KeptEvent): TierEvent<WrittenInteger> {
  const { atMs, kind, from, to, sumLamports } = event;
  const at = timeText(atMs);
  return { number: event.number, at, kind, from, to, sumLamports, text: textOf(event) };
}

/** Of databases. */
const numberMax = 2n ** 63n - 1n;

const params = {
  range: optional(
    optionsOf("TierEventRange", {
      before: field(integer(numberMax), {
        description: "events before this number; absent: the newest",
        absent: null,
      }),
      limit: field(positive(tierEventsMax), {
        description: "at most so many",
        absent: tierEventsMax,
        fallback: tierEventsMax,
      }),
    }),
    "which of them",
  ),
};

async function history(
  call: Call,
  { range }: ArgsOf<typeof params>,
): Promise<TierEvent<WrittenInteger>[]> {
  const { tiers } = salesOf(call);
  const events = await tiers.history(call.key.accountId, range.before, range.limit);
  return events.map(eventJson);
}

const tierName = described("as relay.tiers names it", string);

const tierSchema = closed<TierView<WrittenInteger>>("Tier", {
  tier: orNull(described("null: none", tierName)),
  sumLamports: described("registered tips of the window that count", lamports),
  windowHours: number,
  thresholds: listOf(
    closed("Threshold", {
      tier: tierName,
      thresholdLamports: lamports,
      missingLamports: described("0: the sum reaches it", lamports),
    }),
  ),
  grace: orNull(
    described(
      "null while the sum reaches the threshold of the tier",
      closed("Grace", { since: time, ends: described("when the tier falls", time) }),
    ),
  ),
  destinations: wholeNumber(0, Number.MAX_SAFE_INTEGER),
});

const eventSchema = closed<TierEvent<WrittenInteger>>("TierEvent", {
  number: described("1, 2, 3, … of the account", wholeNumber(1, numberMax)),
  at: time,
  kind: enumOf(tierEventKinds),
  from: orNull(tierName),
  to: orNull(tierName),
  sumLamports: lamports,
  text: described("for people", string),
});

const scopes = ["shreds"] as const;
const available = salesOf;

export const tierMethods: MethodTable = {
  getTier: method({
    scopes,
    summary: "Tells the account's tier, what is missing to each, and the grace clock.",
    available,
    params: {},
    result: { name: "tier", schema: tierSchema },
    errors: ["registration_off"],
    example: {
      params: [],
      result: {
        tier: "tier-2",
        sumLamports: 240_000_000,
        windowHours: 24,
        thresholds: [
          { tier: "tier-1", thresholdLamports: 200_000_000, missingLamports: 0 },
          { tier: "tier-2", thresholdLamports: 500_000_000, missingLamports: 260_000_000 },
        ],
        grace: { since: samples.time, ends: samples.nextDay },
        destinations: 1,
      },
    },
    run: tier,
  }),
  getTierHistory: method({
    scopes,
    summary: "Tells the events of the account's tier, newest first.",
    available,
    params,
    result: { name: "events", schema: listOf(eventSchema, { maxItems: tierEventsMax }) },
    errors: ["registration_off", "store_failed"],
    example: {
      params: [{ limit: 1 }],
      result: [
        {
          number: 2,
          at: samples.time,
          kind: "grace_started",
          from: "tier-2",
          to: "tier-2",
          sumLamports: 240_000_000,
          text: "the tips of the window are 240000000 lamports, less than tier-2 takes; it holds on for the grace",
        },
      ],
    },
    run: history,
  }),
};
