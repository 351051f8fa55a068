// Deadlines: how long an attempt may wait in the queue of its route.
//
// Pure. dispatch.ts asks for every attempt; the route drops what it could not send until then, and the
// transaction is planned again.

import { lifetimeSlots, windowSlots } from "../../core/solana-constants.ts";
import type { LeaderContext, RouteKind } from "./types.ts";

interface DeadlineFacts {
  readonly options: { readonly mevProtect: boolean };
  readonly transactions: readonly { readonly nonce: object | null }[];
}

/** One choice of plan.ts. */
interface AttemptTarget {
  readonly route: { readonly capabilities: { readonly kind: RouteKind } };
  readonly leader: string | null;
  readonly deniedLeaders: ReadonlySet<string>;
}

interface PresentTime {
  /** Wall time. */
  readonly nowNs: bigint;
  /** Length of a slot. */
  readonly slotNs: bigint;
  readonly leaders: LeaderContext;
}

/** Slots of the current leader's window after the current slot. */
function slotsLeft({ slot }: LeaderContext): bigint {
  return slot === null ? 0n : windowSlots - 1n - (slot % windowSlots);
}

/** Wall time. */
export function deadlineOf(
  { options, transactions }: DeadlineFacts,
  { route, leader, deniedLeaders }: AttemptTarget,
  { nowNs, slotNs, leaders }: PresentTime,
): bigint {
  const left = slotsLeft(leaders);
  // The next leader may be denied. How much of the slot is over is not known; a quarter of it is added.
  if (options.mevProtect && deniedLeaders.size > 0) return nowNs + slotNs * left + slotNs / 4n;
  // An alternative partner gets transactions for its own slots only.
  if (route.capabilities.kind === "alt-partner") {
    const slotsBefore = leader === leaders.current ? 0n : windowSlots;
    return nowNs + slotNs * (slotsBefore + left + 1n);
  }
  const hasNonce = transactions.some(({ nonce }) => nonce !== null);
  return nowNs + slotNs * (hasNonce ? 2n * lifetimeSlots : lifetimeSlots);
}
