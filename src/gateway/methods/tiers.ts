// getTier and getTierHistory: an account's tier, and the events that changed it.
//
// Called through method-table.ts. A caller sees only its own account. Times are ISO 8601 in UTC, amounts
// integer lamports.

import type { TierEvent, TierView, TipProof, WrittenInteger } from "../../client/responses.ts";
import { memoOf, referenceKeyOf } from "../../shreds/registrations/payer-proof.ts";
import { type TierEvent as KeptEvent, tierEventKinds } from "../../shreds/tiers/types.ts";
import {
  closed,
  described,
  enumOf,
  lamports,
  listOf,
  number,
  orNull,
  publicKey,
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

/** A tier as callers and the portal see it. */
export function tierFacts(
  { tiers, tierRules }: ShredSales,
  accountId: string,
): Omit<TierView, "destinations" | "tipProof"> {
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

/** The values that name the account in a tip, as callers and the portal see them. */
export function tipProofOf(accountId: string): TipProof {
  return {
    account: accountId,
    memo: memoOf(accountId),
    referenceKey: referenceKeyOf(accountId),
  };
}

function tier(call: Call): TierView {
  const sales = salesOf(call);
  const { accountId } = call.key;
  const destinations = sales.destinations.ofAccount(accountId).length;
  return { ...tierFacts(sales, accountId), destinations, tipProof: tipProofOf(accountId) };
}

/** The event as a sentence, for display. */
function textOf({ kind, from, to, sumLamports }: KeptEvent): string {
  const sum = `tips in the window: ${sumLamports} lamports`;
  switch (kind) {
    case "upgraded":
      return `upgraded from ${from ?? "no tier"} to ${to ?? "no tier"}; ${sum}`;
    case "downgraded":
      return `downgraded from ${from ?? "no tier"} to ${to ?? "no tier"} at the end of the grace period; ${sum}`;
    case "grace_started":
      return `grace period started: ${from ?? "the tier"} requires more tips; ${sum}`;
    case "grace_cancelled":
      return `grace period cancelled: ${to ?? "the tier"} is reached again; ${sum}`;
    case "tip_claimed":
      return `a tip was claimed for another account by its payer: tier ${from ?? "none"} to ${to ?? "none"}; ${sum}`;
  }
}

function eventJson(event: KeptEvent): TierEvent<WrittenInteger> {
  const { atMs, kind, from, to, sumLamports } = event;
  const at = timeText(atMs);
  return { number: event.number, at, kind, from, to, sumLamports, text: textOf(event) };
}

/** Largest integer of the databases. */
const numberMax = 2n ** 63n - 1n;

const params = {
  range: optional(
    optionsOf("TierEventRange", {
      before: field(integer(numberMax), {
        description: "only events before this number; default: the newest events",
        absent: null,
      }),
      limit: field(positive(tierEventsMax), {
        description: "maximum number of events",
        absent: tierEventsMax,
        fallback: tierEventsMax,
      }),
    }),
    "which entries to return",
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

const tierName = described("name of a tier in relay.tiers", string);

const tierSchema = closed<TierView<WrittenInteger>>("Tier", {
  tier: orNull(described("null: the account has no tier", tierName)),
  sumLamports: described("sum of the counted tips in the window", lamports),
  windowHours: number,
  thresholds: listOf(
    closed("Threshold", {
      tier: tierName,
      thresholdLamports: lamports,
      missingLamports: described("0 if the sum reaches the threshold", lamports),
    }),
  ),
  grace: orNull(
    described(
      "null while the sum reaches the threshold of the tier",
      closed("Grace", {
        since: time,
        ends: described("when the grace period ends and the tier is lowered", time),
      }),
    ),
  ),
  destinations: wholeNumber(0, Number.MAX_SAFE_INTEGER),
  tipProof: described(
    "what names the account in a tip, so that it counts for this account only",
    closed("TipProof", {
      account: described("public id of the account, for the text that the fee payer signs", string),
      memo: described("word of a memo in the transaction", string),
      referenceKey: described("key among the static keys of the transaction", publicKey),
    }),
  ),
});

const eventSchema = closed<TierEvent<WrittenInteger>>("TierEvent", {
  number: described(
    "sequence number of the event in this account, from 1",
    wholeNumber(1, numberMax),
  ),
  at: time,
  kind: enumOf(tierEventKinds),
  from: orNull(tierName),
  to: orNull(tierName),
  sumLamports: lamports,
  text: described("the event as a sentence, for display", string),
});

const scopes = ["shreds"] as const;
const available = salesOf;

export const tierMethods: MethodTable = {
  getTier: method({
    scopes,
    summary:
      "Returns the account's tier, the lamports missing for each tier, and the grace period.",
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
        tipProof: {
          account: "a_4f1a09c2d3e5",
          memo: "shredway:a_4f1a09c2d3e5",
          referenceKey: referenceKeyOf("a_4f1a09c2d3e5"),
        },
      },
    },
    run: tier,
  }),
  getTierHistory: method({
    scopes,
    summary: "Returns the tier events of the account, newest first.",
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
          text: "grace period started: tier-2 requires more tips; tips in the window: 240000000 lamports",
        },
      ],
    },
    run: history,
  }),
};
