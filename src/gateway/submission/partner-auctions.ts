// Partner auctions: the attempts of sendAlt that only alternative partners have, and when they lost.
//
// Pure, apart from the entries in memory. dispatch.ts enters each such attempt and asks in every turn which
// auctions are over. A partner rarely says that a transaction lost, so the slot clock decides: the auction
// is over when the partner no longer leads, or when a whole slot has passed since the attempt. If the slot
// clock does not advance, it is over after two slot lengths. Over does not mean dead: the partner has the
// bytes, and the transaction can land until its lifetime ends.

import type { Submission } from "./tracked-transaction.ts";
import type { LeaderContext, RouteKind } from "./types.ts";

interface PartnerAuction {
  readonly submission: Submission;
  /** The slot in which it was offered. */
  readonly slot: bigint | null;
  /** Identity (base58) of the partner. */
  readonly leader: string;
  /** It is over at this monotonic time, whatever the slot clock says. */
  readonly endMs: number;
}

/** One choice of an attempt; a subset of the choice of plan.ts. */
interface AttemptChoice {
  readonly route: { readonly capabilities: { readonly kind: RouteKind } };
  readonly leader: string | null;
}

/** A transaction that is offered late in a slot takes part in the next slot of the same partner. */
const slotsMax = 2n;

function isOver(
  { slot: offeredIn, leader, endMs }: PartnerAuction,
  { slot, current }: LeaderContext,
  nowMs: number,
): boolean {
  if (nowMs >= endMs) return true;
  if (slot === null || offeredIn === null || slot <= offeredIn) return false;
  return slot >= offeredIn + slotsMax || current !== leader;
}

export class PartnerAuctions {
  /** The last attempt of each submission. */
  readonly #open = new Map<Submission, PartnerAuction>();

  get size(): number {
    return this.#open.size;
  }

  /**
   * Enters an attempt that routes took. An attempt that other routes have, too, ends the auction: nothing
   * waits for its result any more.
   */
  attempted(
    submission: Submission,
    choices: readonly AttemptChoice[],
    { slot }: LeaderContext,
    time: { readonly nowMs: number; readonly slotMs: number },
  ): void {
    const leader = choices[0]?.leader ?? null;
    const isAuction =
      submission.method === "sendAlt" &&
      leader !== null &&
      choices.every(({ route }) => route.capabilities.kind === "alt-partner");
    if (!isAuction) {
      this.#open.delete(submission);
      return;
    }
    const endMs = time.nowMs + time.slotMs * Number(slotsMax);
    this.#open.set(submission, { submission, slot, leader, endMs });
  }

  /** Removes and returns the auctions that are over. */
  takeOver(leaders: LeaderContext, nowMs: number): PartnerAuction[] {
    const over = [...this.#open.values()].filter((auction) => isOver(auction, leaders, nowMs));
    for (const { submission } of over) this.#open.delete(submission);
    return over;
  }
}
