// Rules of the section `shredstream`: tiers exist, names and keys are distinct, and the relay runs.
//
// Called by rules.ts.

import { quote } from "../errors.ts";
import type { Config } from "./schema.ts";

type Report = (path: readonly (string | number)[], message: string) => void;

export function checkSubscribers({ shredstream, relay }: Config, report: Report): void {
  const all = shredstream?.subscribers ?? [];
  for (const [index, { name, publicKey, tier }] of all.entries()) {
    const path = ["shredstream", "subscribers", index];
    if (!relay.tiers.includes(tier)) {
      const expected = `expected a tier of relay.tiers: ${relay.tiers.join(", ")}`;
      report([...path, "tier"], `unknown tier ${quote(tier)}; ${expected}`);
    }
    const first = all.findIndex((one) => one.publicKey === publicKey || one.name === name);
    if (first === index) continue;
    report(
      path,
      `same name or publicKey as subscribers[${first}]; expected different names and keys`,
    );
  }
}
