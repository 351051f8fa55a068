// Route attempt: one submission offered to one route, from the offer to the answer.
//
// Made by dispatch.ts, held by the route until it has nothing more to report. Reports that are repeated or
// out of order are ignored. Reports that come during the offer wait until the timeline says "queued".

import type { TransactionFacts } from "../../core/transactions/facts.ts";
import type { TakenRequest } from "./taken-request.ts";
import type { OutboundTransaction, RouteEvent, SendMode, TimelineEvent } from "./types.ts";

export class RouteAttempt implements OutboundTransaction {
  readonly mode: SendMode;
  readonly transactions: readonly TransactionFacts[];
  readonly revertProtection: boolean;
  readonly attempt: number;
  readonly leader: string | null;
  readonly deniedLeaders: ReadonlySet<string>;
  readonly deadlineNs: bigint;
  readonly taken: TakenRequest | undefined;
  /** Name of the route. */
  readonly route: string;
  readonly #offeredNs: bigint;
  readonly #early: RouteEvent[] = [];
  #listener: ((event: TimelineEvent) => void) | null = null;
  #isSent = false;
  #isDone = false;
  #isLost = false;
  #isUnsent = false;
  #isRefused = false;

  constructor(outbound: Omit<OutboundTransaction, "report">, route: string, offeredNs: bigint) {
    this.mode = outbound.mode;
    this.transactions = outbound.transactions;
    this.revertProtection = outbound.revertProtection;
    this.attempt = outbound.attempt;
    this.leader = outbound.leader;
    this.deniedLeaders = outbound.deniedLeaders;
    this.deadlineNs = outbound.deadlineNs;
    this.taken = outbound.taken;
    this.route = route;
    this.#offeredNs = offeredNs;
  }

  /** It was refused, or never left. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** It never left: the route dropped it, or could not connect. */
  get isUnsent(): boolean {
    return this.#isUnsent;
  }

  /** The route will always refuse it. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** Time of the offer, or of a report during the offer if the route had sent it before. */
  get queuedNs(): bigint {
    const earlyNs = this.#early[0]?.atNs ?? this.#offeredNs;
    return earlyNs < this.#offeredNs ? earlyNs : this.#offeredNs;
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
    const isUnsent = event.kind === "dropped" || (event.kind === "failed" && event.isUnsent);
    this.#isUnsent = isUnsent === true && !this.#isSent;
    this.#isLost = event.kind === "refused" || this.#isUnsent;
    this.#isRefused = event.kind === "refused" && event.isFinal;
    if (event.kind === "acknowledged") listener({ kind: "acknowledged", atNs, route, attempt });
    else listener({ kind: event.kind, atNs, route, attempt, reason: event.reason });
  }
}
