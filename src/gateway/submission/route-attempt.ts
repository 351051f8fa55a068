// Leg: one parcel on one route, from the offer to the answer.
//
// Made by dispatch.ts, held by the route until it has no more to say. What a route reports is a
// stranger's word: out of order or twice is ignored. Reports that come during the offer wait until
// the timeline knows that the parcel was queued.

import type { TransactionFacts } from "../../core/transactions/facts.ts";
import type { OutboundTransaction, RouteEvent, SendMode, TimelineEvent } from "./types.ts";

export class RouteAttempt implements OutboundTransaction {
  readonly mode: SendMode;
  readonly transactions: readonly TransactionFacts[];
  readonly revertProtection: boolean;
  readonly attempt: number;
  readonly leader: string | null;
  readonly deadlineNs: bigint;
  /** Name of the route. */
  readonly route: string;
  readonly #early: RouteEvent[] = [];
  #listener: ((event: TimelineEvent) => void) | null = null;
  #isSent = false;
  #isDone = false;
  #isGone = false;
  #isRefused = false;

  constructor(parcel: Omit<OutboundTransaction, "report">, route: string) {
    this.mode = parcel.mode;
    this.transactions = parcel.transactions;
    this.revertProtection = parcel.revertProtection;
    this.attempt = parcel.attempt;
    this.leader = parcel.leader;
    this.deadlineNs = parcel.deadlineNs;
    this.route = route;
  }

  /** It came to nothing: refused, or never left. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** The route will always refuse it. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  report(event: RouteEvent): void {
    if (this.#listener) this.#take(event, this.#listener);
    else this.#early.push(event);
  }

  open(listener: (event: TimelineEvent) => void): void {
    this.#listener = listener;
    for (const event of this.#early.splice(0)) this.#take(event, listener);
  }

  #take(event: RouteEvent, listener: (event: TimelineEvent) => void): void {
    if (this.#isDone || (event.kind === "sent" && this.#isSent)) return;
    const { route, attempt, leader } = this;
    const { atNs } = event;
    if (event.kind === "sent") {
      this.#isSent = true;
      listener({ kind: "sent", atNs, route, attempt, bytes: event.bytes, slot: null, leader });
      return;
    }
    this.#isDone = true;
    this.#isGone = event.kind === "refused" || (event.kind === "dropped" && !this.#isSent);
    this.#isRefused = event.kind === "refused" && event.isFinal;
    if (event.kind === "acknowledged") listener({ kind: "acknowledged", atNs, route, attempt });
    else listener({ kind: event.kind, atNs, route, attempt, reason: event.reason });
  }
}
