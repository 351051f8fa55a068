// Rules of the section `streams`: it has keys to check, shreds to decode, and an existing tier.
//
// Called by rules.ts.

import { quote } from "../errors.ts";
import type { Config } from "./schema.ts";

type Report = (path: readonly (string | number)[], message: string) => void;

export function checkStreams({ streams, http, relay }: Config, report: Report): void {
  if (!streams) return;
  if (!http) report(["streams"], "requires http, because the keys of both are the same");
  if (!relay.deshred) report(["streams"], "requires relay.deshred: true; got false");
  const { tier } = streams;
  if (tier === undefined || relay.tiers.includes(tier)) return;
  const expected = `expected a tier of relay.tiers: ${relay.tiers.join(", ")}`;
  report(["streams", "tier"], `unknown tier ${quote(tier)}; ${expected}`);
}
