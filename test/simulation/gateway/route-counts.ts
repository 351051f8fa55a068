// The check of a route's counters against what its partner, or all leaders, have received.

import type { RouteSnapshot } from "../../../src/gateway/submission/types.ts";
import { Violation } from "../relay-checks.ts";
import { leadersName, type PartnerView } from "./partners.ts";

const invariant = "counters of routes match";

/** `extra`: what the fast path has sent, and no submission has adopted. */
export function checkRouteCounts(
  route: RouteSnapshot,
  view: PartnerView | undefined,
  extra: number,
): void {
  const { name, offered, turnedAway, acknowledged, refused, failed, dropped, sent } = route;
  if (!view) throw new Violation(invariant, `unknown ${name}`);
  const { calls, unanswered } = view;
  // Several copies go to leaders, and their process may end before it reports one.
  const least = name === leadersName ? 0n : BigInt(calls - unanswered);
  if (sent > BigInt(calls) || sent + BigInt(extra) < least)
    throw new Violation(invariant, `${name}: ${calls} calls arrived, ${sent} were counted as sent`);
  const ended = turnedAway + acknowledged + refused + failed + dropped;
  const counted = ended + BigInt(route.queued + route.inFlight);
  if (offered !== counted)
    throw new Violation(invariant, `${name}: ${offered} offered, ${counted}`);
}
