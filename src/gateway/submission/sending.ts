// Sending: when a submission is offered to routes next, as one table.
//
// Pure. dispatch.ts applies an event to a submission's state and keeps its queues in step with it: the
// state says in which queue the submission is. docs/transaction-status.md shows the same table to readers, and
// test/gateway/submission/sending.test.ts compares the two.

import { appended } from "./lifecycle.ts";

export const sendingStates = [
  /** In no queue: before the first attempt, during an attempt, or after the last one. */
  "idle",
  /** In the timer wheel. */
  "scheduled",
  /** Its time has come; it waits until the dispatcher plans it, in this turn or one of the next. */
  "due",
  /** Waits until protection allows an attempt. */
  "held",
  /** Nothing more of it is offered. */
  "stopped",
  /** As "stopped": every route that could take it refused it for good. */
  "refused",
] as const;
export type SendingState = (typeof sendingStates)[number];

export const sendingEventKinds = [
  /** An earlier process, or another node, has sent it before. */
  "sending_resumed",
  /** The plan holds it back while a leader of the deny list is near. */
  "protection_required",
  /** No such leader is near any longer. */
  "protection_lifted",
  "timer_fired",
  /** The dispatcher plans the next attempt. */
  "attempt_started",
  /** A route took it, and its options allow another attempt. */
  "attempt_made",
  /** A route took it; it is not offered again. */
  "last_attempt_made",
  /** No route had room for an attempt that the call still lacks. */
  "attempt_failed",
  /** No route had room for a resend. */
  "resend_failed",
  /** It, or the other one of its pair, is in a block. */
  "landing_awaited",
  /**
   * The block was abandoned, or the partner refused the transaction or its auction is over: other routes
   * are due.
   */
  "attempt_hastened",
  /** Every route dropped it before it left, or could not connect. */
  "attempt_lost",
  /** The same, and nothing of the attempt before had left either. */
  "attempt_lost_again",
  "routes_exhausted",
  "sending_stopped",
] as const;
export type SendingEventKind = (typeof sendingEventKinds)[number];

/** When a scheduled submission becomes due: in the next turn, after `retryMs`, after `resendMs`. */
export type SendingDelay = "now" | "retry" | "resend";

type SendingCell =
  | { readonly to: Exclude<SendingState, "scheduled"> }
  | { readonly to: "scheduled"; readonly delay: SendingDelay };

/** An absent cell: the event changes nothing in this state. */
type SendingRow = Readonly<Partial<Record<SendingState, SendingCell>>>;

function from(states: readonly SendingState[], cell: SendingCell): SendingRow {
  return Object.fromEntries(states.map((state) => [state, cell]));
}

function scheduled(delay: SendingDelay): SendingCell {
  return { to: "scheduled", delay };
}

const waiting = ["idle", "scheduled", "due"] as const;

export const sendingTransitions: Readonly<Record<SendingEventKind, SendingRow>> = {
  sending_resumed: from(["idle"], scheduled("now")),
  protection_required: from(["idle"], { to: "held" }),
  protection_lifted: from(["held"], { to: "due" }),
  timer_fired: from(["scheduled"], { to: "due" }),
  attempt_started: from(["due"], { to: "idle" }),
  attempt_made: from(waiting, scheduled("resend")),
  last_attempt_made: from(waiting, { to: "idle" }),
  attempt_failed: from(["idle"], scheduled("retry")),
  resend_failed: from(["idle"], scheduled("resend")),
  landing_awaited: from(["idle"], scheduled("resend")),
  attempt_hastened: from(["scheduled"], scheduled("now")),
  attempt_lost: from(["idle", "scheduled"], scheduled("now")),
  attempt_lost_again: from(["idle", "scheduled"], scheduled("retry")),
  routes_exhausted: from([...waiting, "held"], { to: "refused" }),
  sending_stopped: from([...waiting, "held"], { to: "stopped" }),
};

/** Whether nothing more of it is offered. */
export function isSendingOver(state: SendingState): boolean {
  return state === "stopped" || state === "refused";
}

const noRoutes: readonly string[] = [];

/** State of dispatch.ts for one submission. */
export class Sending {
  /** Changed by dispatch.ts alone, as the table has it. */
  state: SendingState = "idle";
  /**
   * The first attempt is still due: none was made, or nothing of the last one was sent. The next
   * attempt does not count as a resend.
   */
  isAttemptMissing = true;
  /** Times that at least one route took it, those of an earlier process included. */
  attempts = 0;
  resends = 0;
  /** Attempts that the account caused by submitting it again. */
  repeats = 0;
  lastAttemptMs = 0;
  /** Monotonic. Afterwards nothing is offered again, except if the account repeats its call. */
  untilMs = 0;
  /** Names of routes that refused it for good. */
  refusedBy: readonly string[] = noRoutes;
  /** Names of routes that took it, those of an earlier process included. */
  takenBy: readonly string[] = noRoutes;
  /** Routes that took it, over all attempts, and how many of these refused it or never sent it. */
  acceptedCount = 0;
  lost = 0;
  /** Routes that accepted the last attempt, and how many of these finally refused it, or never sent it. */
  lastTaken = 0;
  lastRefused = 0;
  lastUnsent = 0;
  /** Consecutive attempts without a sent transaction. */
  lostInARow = 0;

  get isOver(): boolean {
    return isSendingOver(this.state);
  }

  refused(route: string): void {
    if (!this.refusedBy.includes(route)) this.refusedBy = appended(this.refusedBy, route);
  }

  taken(route: string): void {
    if (!this.takenBy.includes(route)) this.takenBy = appended(this.takenBy, route);
  }

  /** An attempt that `routes` routes took. */
  attempted(routes: number, nowMs: number): void {
    this.isAttemptMissing = false;
    this.attempts++;
    this.lastAttemptMs = nowMs;
    this.acceptedCount += routes;
    this.lastTaken = routes;
    this.lastRefused = 0;
    this.lastUnsent = 0;
  }

  /**
   * Goes on where an earlier submission of the same account, or of an earlier process, stopped. `takenBy`:
   * the routes that took it then.
   */
  continueFrom(attempts: number, takenBy: readonly string[] = []): void {
    this.attempts = attempts;
    this.takenBy = [...new Set([...this.takenBy, ...takenBy])];
    this.isAttemptMissing = attempts === 0;
    // One that is never lost: how the earlier ones ended is not known.
    this.acceptedCount = 1;
  }
}
