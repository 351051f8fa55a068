// The rules of the tiers, from the configuration: for the service and for the audit.

import type { Config } from "../core/configuration/configuration.ts";
import { thresholdsOf } from "../core/configuration/schema-delivery.ts";
import type { TierRules } from "../shreds/tiers/types.ts";

const dayMs = 24 * 3_600_000;

export function tierRulesOf({ relay, tiers }: Config): TierRules {
  const thresholds = thresholdsOf(relay.tiers, tiers.thresholdLamports);
  return {
    tiers: thresholds.map(([name, lamports]) => ({ name, thresholdLamports: BigInt(lamports) })),
    windowMs: dayMs,
    graceMs: dayMs,
  };
}
