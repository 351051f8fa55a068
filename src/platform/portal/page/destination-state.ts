// The state of a destination for display.
//
// Pure.

import type { DestinationView } from "../types.ts";
import { displayText } from "./timeline.ts";

const pauseTexts: Readonly<Record<string, string>> = {
  icmp_unreachable: "no receiver was listening there",
  proof_expired: "no challenge was answered in time",
  operator: "by the operator",
};

/** Why a destination is paused, after the time of the pause. */
export function pauseText(reason: string | null): string {
  return reason === null ? "reason unknown" : (pauseTexts[reason] ?? displayText(reason));
}

/** The word of the badge: an active destination whose receiver is gone is not shown as good. */
export function shownState({
  state,
  refusal,
  sending,
}: Pick<DestinationView, "state" | "refusal" | "sending">): string {
  if (refusal !== null) return "refused";
  return state === "active" && (sending?.icmpLastMinute ?? 0) > 0 ? "unreachable" : state;
}
