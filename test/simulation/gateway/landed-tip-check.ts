// The check of the tip statistics: each tip that landed in the last 15 minutes counts once, also after a crash.

import { Violation } from "../relay-checks.ts";
import type { AccountRecord } from "./account-record.ts";
import type { Chain } from "./chain.ts";

const windowMs = 15 * 60_000;
/** After a restart, the age of a tip follows the wall clock, which may have been set several times. */
const marginMs = 120_000;

/** `submissions`: all records, by signature. `counted`: landed tips in the statistics. */
export function checkLandedTips(
  submissions: Iterable<readonly AccountRecord[]>,
  chain: Chain,
  nowMs: number,
  counted: number,
): void {
  const beginMs = nowMs - windowMs;
  const paying = [...submissions].filter(([first]) => (first?.transaction.tip ?? 0) > 0);
  // A block that the service has not seen counts when the node confirms it.
  const mayCount = ({ transaction, firstEnd, endedMs }: AccountRecord): boolean => {
    const shown = chain.showingsOf(transaction.signature);
    if (!shown) return false;
    return firstEnd === null || Math.max(shown.lastMs, endedMs) > beginMs - marginMs;
  };
  const mustCount = ({ transaction, reported }: AccountRecord): boolean => {
    const shown = chain.showingsOf(transaction.signature);
    return reported === "landed" && (shown?.firstMs ?? 0) > beginMs + marginMs;
  };
  const most = paying.filter((owners) => owners.some(mayCount)).length;
  const least = paying.filter((owners) => owners.some(mustCount)).length;
  if (counted < least || counted > most)
    throw new Violation(
      "a landed tip counts once",
      `${least} to ${most} tips landed, ${counted} were counted`,
    );
}
