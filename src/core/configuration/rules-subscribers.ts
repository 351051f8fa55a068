// Rules of the section `shredstream`: the tiers of subscribers exist, and their names and keys differ.
//
// Called by rules.ts.

import { quote } from "../errors.ts";
import { checkDistinct } from "./distinct-values.ts";
import type { Config } from "./schema.ts";

type Report = (path: readonly (string | number)[], message: string) => void;

export function checkSubscribers({ shredstream, relay }: Config, report: Report): void {
  const all = shredstream?.subscribers ?? [];
  const pathOf = (index: number, key: string) => ["shredstream", "subscribers", index, key];
  for (const [index, { tier }] of all.entries()) {
    if (relay.tiers.includes(tier)) continue;
    const expected = `expected a tier of relay.tiers: ${relay.tiers.join(", ")}`;
    report(pathOf(index, "tier"), `unknown tier ${quote(tier)}; ${expected}`);
  }
  for (const key of ["name", "publicKey"] as const) {
    checkDistinct(
      all,
      (subscriber) => subscriber[key],
      (index, first) =>
        report(
          pathOf(index, key),
          `duplicate ${key} ${quote(all[index]?.[key])} (also subscribers[${first}]); expected different values`,
        ),
    );
  }
}
