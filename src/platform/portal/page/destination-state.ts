// The state of a destination for display.
//
// Pure.

import type { DestinationView } from "../types.ts";

/** The word of the badge: an active destination whose receiver is gone is not shown as good. */
export function shownState({
  state,
  refusal,
  sending,
}: Pick<DestinationView, "state" | "refusal" | "sending">): string {
  if (refusal !== null) return "refused";
  return state === "active" && (sending?.icmpLastMinute ?? 0) > 0 ? "unreachable" : state;
}
