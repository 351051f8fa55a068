// The check of the tip statistics: each landed tip counts once, also after a crash.

import { Violation } from "../relay-checks.ts";
import type { Chain } from "./chain.ts";
import type { AccountRecord } from "./submission-checks.ts";

/** `submissions`: all records, by signature. `counted`: landed tips in the statistics. */
export function checkLandedTips(
  submissions: Iterable<readonly AccountRecord[]>,
  chain: Chain,
  counted: number,
): void {
  const paying = [...submissions].filter(([first]) => (first?.transaction.tip ?? 0) > 0);
  const wasShown = ({ transaction }: AccountRecord): boolean =>
    chain.wasEverShown(transaction.signature);
  const most = paying.filter((owners) => owners.some(wasShown)).length;
  const least = paying.filter((owners) =>
    owners.some(({ reported }) => reported === "landed"),
  ).length;
  if (counted < least || counted > most)
    throw new Violation(
      "a landed tip counts once",
      `${least} to ${most} tips landed, ${counted} were counted`,
    );
}
