// getTier and getTierHistory: what an account's registered tips buy at present, and how that came about.
//
// Called through table.ts. Only of the caller's own account. Times are ISO 8601 in UTC, amounts integer
// lamports.

import type { Json } from "../../json-rpc/json-text.ts";
import type { TierEvent } from "../../tiers/types.ts";
import type { Call, MethodTable } from "../method.ts";
import { Config, invalid } from "../params.ts";
import { salesOf, timeOrNull } from "./destinations.ts";

export const tierEventsMax = 100;

function tier(call: Call): object {
  const { tiers, tierRules, destinations } = salesOf(call);
  const { accountId } = call.key;
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
      graceSinceMs === null
        ? null
        : { since: timeOrNull(graceSinceMs), ends: timeOrNull(graceEndsMs) },
    destinations: destinations.ofAccount(accountId).length,
  };
}

/** The event as a sentence, for people. */
function textOf({ kind, from, to, sumLamports }: TierEvent): string {
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

function eventJson(event: TierEvent): object {
  const { number, atMs, kind, from, to, sumLamports } = event;
  return { number, at: timeOrNull(atMs), kind, from, to, sumLamports, text: textOf(event) };
}

async function history(call: Call, [given]: readonly Json[]): Promise<object[]> {
  const { tiers } = salesOf(call);
  const config = new Config("params[0]", given);
  const before = config.integer("before", numberMax);
  const limit = config.count("limit", tierEventsMax) ?? tierEventsMax;
  if (limit === 0) throw invalid("params[0].limit", `an integer from 1 to ${tierEventsMax}`, 0);
  const events = await tiers.history(call.key.accountId, before, limit);
  return events.map(eventJson);
}

/** Of databases. */
const numberMax = 2n ** 63n - 1n;

const scopes = ["shreds"] as const;

export const tierMethods: MethodTable = {
  getTier: { scopes, run: tier },
  getTierHistory: { scopes, run: history },
};
