// Dispatch: offers submissions to routes, now, again, or when protection allows it.
//
// Called by pipeline.ts and state-machine.ts. Every attempt has a new plan, and routes have it in their
// queues before anything else is done for it. sending.ts says what each event changes; the queues here
// follow it. One timer serves all submissions: `turn` takes from the queues what is due. What happens goes
// to state-machine.ts as events; that stops a submission whose end is known.

import type { Clock } from "../../core/clock.ts";
import { ShredwayError } from "../../core/errors.ts";
import { defaultSlotNs } from "../../core/solana-constants.ts";
import { TimerWheel } from "../../core/timer-wheel.ts";
import { deadlineOf } from "./deadlines.ts";
import type { SubmissionEvents } from "./events.ts";
import type { DispatchLimits } from "./limits.ts";
import { isSpent } from "./pairs.ts";
import { PartnerAuctions } from "./partner-auctions.ts";
import { couldTake, holdReasonOf, type Plan, type PlanPolicy, plan, refusalError } from "./plan.ts";
import { RouteAttempt } from "./route-attempt.ts";
import {
  type SendingDelay,
  type SendingEventKind,
  type SendingState,
  sendingTransitions,
} from "./sending.ts";
import type { SubmissionIndex } from "./submission-index.ts";
import type { TakenRequest } from "./taken-request.ts";
import { isInBlock, nsPerMs, type Submission } from "./tracked-transaction.ts";
import type { LeaderContext, Route, TimelineEvent } from "./types.ts";

/** Read before every attempt, since a reload may change them. */
export interface DispatchDependencies {
  readonly clock: Clock;
  routes(): readonly Route[];
  /** Removed by a reload, with requests under way; default: none. */
  closingRoutes?(): Iterable<Route>;
  policy(): PlanPolicy;
  leaders(): LeaderContext;
  /** Measured length of a slot; null: not measured yet. */
  slotNs(): bigint | null;
}

/** Result of the first attempt of one submission. */
interface FirstAttempt {
  readonly submission: Submission;
  readonly decision: Plan<Route>;
  readonly attempts: readonly RouteAttempt[];
}

export interface DispatchCounts {
  readonly held: number;
  readonly attempts: bigint;
  readonly resends: bigint;
  readonly repeats: bigint;
}

/** Shortest time between two attempts that an account causes by repeating its call. */
const repeatMs = 50;
/** With three routes, a timeline of 64 events holds seven complete attempts. */
const repeatsMax = 32;
/** About 20 µs each with three routes: 4 ms of a turn of 25 ms. */
const attemptsPerTurn = 200;
/** After this time a submission that no route could take is planned again. */
const retryMs = 250;
const noLeaders: ReadonlySet<string> = new Set();

export class Dispatch {
  readonly #dependencies: DispatchDependencies;
  readonly #index: SubmissionIndex;
  readonly #events: SubmissionEvents;
  readonly #limits: DispatchLimits;
  readonly #wheel: TimerWheel<Submission>;
  readonly #held = new Set<Submission>();
  /** Due after they were held: they come before those that the timer made due. */
  readonly #released = new Set<Submission>();
  readonly #due = new Set<Submission>();
  readonly #auctions = new PartnerAuctions();
  #isClosed = false;
  #attempts = 0n;
  #resends = 0n;
  #repeats = 0n;

  constructor(
    dependencies: DispatchDependencies,
    index: SubmissionIndex,
    events: SubmissionEvents,
    limits: DispatchLimits,
  ) {
    this.#dependencies = dependencies;
    this.#index = index;
    this.#events = events;
    this.#limits = limits;
    this.#wheel = new TimerWheel(25, this.#nowMs);
  }

  /**
   * The first attempt of one submission, or of the two of a pair: all are planned before the first is
   * offered, and it succeeds if a route takes one of them. If a connection is free, the kernel has the bytes
   * when it returns. Pass the results to `begin` after their AccountTransactions exist. Throws "no_route",
   * "tip_too_low", "overloaded". `taken`: what was sent before, for a single submission.
   */
  first(submissions: readonly Submission[], taken?: TakenRequest): readonly FirstAttempt[] {
    const planned = submissions.map((submission) => {
      const own = this.#plan(submission, this.#dependencies.policy());
      const decision = taken ? this.#withTaken(own, taken) : own;
      if (decision.kind !== "refuse") return { submission, decision };
      const [transaction] = submission.transactions;
      const which = submissions.length > 1 ? `transaction ${transaction?.signature}: ` : "";
      throw refusalError(decision, which);
    });
    const held = planned.filter(({ decision }) => decision.kind === "hold").length;
    if (held > 0 && this.#held.size + held > this.#limits.heldMax) {
      throw new ShredwayError(
        "overloaded",
        `too many submissions wait for MEV protection (limit: ${this.#limits.heldMax}); retry in a few seconds`,
      );
    }
    const offered = planned.map(({ submission, decision }) => ({
      submission,
      decision,
      attempts: decision.kind === "send" ? this.#offer(submission, decision, taken) : [],
    }));
    if (held === 0 && offered.every(({ attempts }) => attempts.length === 0)) {
      throw new ShredwayError("no_route", "the queues of all routes are full; retry in a second");
    }
    this.#flush(planned);
    return offered;
  }

  /** Everything else that a new submission needs takes longer than handing its bytes to the kernel. */
  #flush(planned: readonly { readonly decision: Plan<Route> }[]): void {
    for (const { decision } of planned) {
      if (decision.kind !== "send") continue;
      for (const { route } of decision.choices) route.flush?.();
    }
  }

  /** Records the first attempt, and what routes reported during the offer, in the timelines. */
  begin({ submission, decision, attempts }: FirstAttempt): void {
    submission.sending.untilMs = this.#nowMs + this.#limits.resendForMs;
    if (decision.kind === "hold") {
      this.#hold(submission, decision.reason);
    } else if (attempts.length > 0) {
      this.#attempted(submission);
      this.#opened(submission, attempts); // reports that came during the offer may reschedule it
    } else {
      submission.sending.isAttemptMissing = true;
      this.#apply(submission, "attempt_failed");
    }
  }

  /**
   * The account repeated its call: offers the submission again, unless that was just done. Throws
   * "non_partner_slot" if only alternative partners may get it and none leads.
   */
  repeat(submission: Submission): void {
    const { sending } = submission;
    const isTooSoon = this.#nowMs - sending.lastAttemptMs < repeatMs;
    if (sending.isOver || sending.state === "held" || isTooSoon) return;
    if (this.#isSpent(submission)) return;
    if (sending.repeats >= repeatsMax) return;
    sending.repeats++;
    this.#repeats++;
    const planned = this.#plan(submission, this.#acceptedPolicy);
    if (planned.kind === "refuse" && planned.reason === "non_partner_slot") {
      throw new ShredwayError(planned.reason, planned.message);
    }
    if (planned.kind !== "send") return;
    const wasMissing = sending.isAttemptMissing;
    const attempts = this.#offer(submission, planned);
    if (attempts.length > 0 && wasMissing) this.#attempted(submission);
    this.#opened(submission, attempts);
  }

  /** Continues after a restart; earlier attempts are known from the timeline, and its age from the wall clock. */
  resume(submission: Submission): void {
    const { clock } = this.#dependencies;
    const ageMs = Math.max(0, Number((clock.nowNs() - submission.receivedNs) / nsPerMs));
    submission.sending.untilMs = this.#nowMs + this.#limits.resendForMs - ageMs;
    if (submission.sending.isAttemptMissing || this.#maySend(submission)) {
      this.#apply(submission, "sending_resumed");
    }
  }

  /** Makes the next attempt at once if one is scheduled: there is no reason to wait any longer. */
  expedite(submission: Submission): void {
    this.#apply(submission, "attempt_hastened");
  }

  /** Nothing more of it is offered. */
  stop(submission: Submission): void {
    this.#apply(submission, "sending_stopped");
  }

  /** Makes the attempts that are due, up to a limit: new submissions must not wait for resends. */
  turn(nowMs: number): void {
    if (this.#held.size > 0) this.#release();
    if (this.#auctions.size > 0) this.#endAuctions(nowMs);
    for (const submission of this.#wheel.turn(nowMs)) this.#apply(submission, "timer_fired");
    let left = attemptsPerTurn;
    for (const queue of [this.#released, this.#due]) {
      for (const submission of queue) {
        if (left-- <= 0) return;
        this.#retry(submission);
      }
    }
  }

  /** Ignores from now on what routes report while they close. */
  close(): void {
    this.#isClosed = true;
  }

  get counts(): DispatchCounts {
    return {
      held: this.#held.size,
      attempts: this.#attempts,
      resends: this.#resends,
      repeats: this.#repeats,
    };
  }

  get #nowMs(): number {
    return Number(this.#dependencies.clock.monotonicNs() / nsPerMs);
  }

  /** A minimum tip that was raised by a reload does not apply to what was accepted before. */
  get #acceptedPolicy(): PlanPolicy {
    return { ...this.#dependencies.policy(), minimumTipLamports: 0n };
  }

  #plan(submission: Submission, policy: PlanPolicy): Plan<Route> {
    const routes = this.#dependencies.routes();
    const { refusedBy } = submission.sending;
    const open =
      refusedBy.length === 0
        ? routes
        : routes.filter(({ capabilities }) => !refusedBy.includes(capabilities.name));
    return plan(submission, open, this.#dependencies.leaders(), policy);
  }

  /**
   * A route that has sent it belongs to the attempt, whatever was planned a moment later. If a reload has
   * replaced it, its successor of the same name does not send it again.
   */
  #withTaken(planned: Plan<Route>, taken: TakenRequest): Plan<Route> {
    const choices = planned.kind === "send" ? planned.choices : [];
    const closing = this.#dependencies.closingRoutes?.() ?? [];
    const senders = [...this.#dependencies.routes(), ...closing].filter((route) => {
      return route.hasSendOf?.(taken) && !choices.some((choice) => choice.route === route);
    });
    if (senders.length === 0) return planned;
    const names = senders.map(({ capabilities }) => capabilities.name);
    const others = choices.filter(({ route }) => !names.includes(route.capabilities.name));
    const { current: leader } = this.#dependencies.leaders();
    const sent = senders.map((route) => ({ route, mode: "transaction", leader }) as const);
    return { kind: "send", choices: [...others, ...sent] };
  }

  #offer(
    submission: Submission,
    { choices }: Extract<Plan<Route>, { kind: "send" }>,
    taken?: TakenRequest,
  ): RouteAttempt[] {
    const { options, transactions, sending } = submission;
    const slotNs = this.#dependencies.slotNs() ?? defaultSlotNs;
    const leaders = this.#dependencies.leaders();
    // Before the offers: another process or thread can send while this one still offers to other routes.
    const nowNs = this.#dependencies.clock.nowNs();
    const now = { nowNs, slotNs, leaders };
    const deniedLeaders = options.mevProtect ? this.#dependencies.policy().denyLeaders : noLeaders;
    const attempts: RouteAttempt[] = [];
    for (const { route, mode, leader } of choices) {
      const attempt = new RouteAttempt(
        {
          mode,
          transactions,
          revertProtection: options.revertProtection,
          attempt: sending.attempts + 1,
          leader,
          deniedLeaders,
          deadlineNs: deadlineOf(submission, { route, leader, deniedLeaders }, now),
          taken,
        },
        route.capabilities.name,
        nowNs,
      );
      if (!route.offer(attempt)) continue;
      attempts.push(attempt);
      sending.taken(attempt.route);
    }
    if (attempts.length === 0) return attempts;
    const nowMs = this.#nowMs;
    sending.attempted(attempts.length, nowMs);
    this.#attempts++;
    const slotMs = Number(slotNs) / 1e6;
    this.#auctions.attempted(submission, choices, leaders, { nowMs, slotMs });
    return attempts;
  }

  #opened(submission: Submission, attempts: readonly RouteAttempt[]): void {
    if (attempts.length === 0) return;
    for (const { route, attempt, queuedNs } of attempts) {
      this.#report(submission, { kind: "queued", atNs: queuedNs, route, attempt });
    }
    for (const attempt of attempts) {
      attempt.open((event) => this.#reported(submission, attempt, event));
    }
  }

  #reported(submission: Submission, attempt: RouteAttempt, event: TimelineEvent): void {
    const { sending } = submission;
    const isSent = event.kind === "sent";
    if (isSent) sending.lostInARow = 0;
    this.#report(
      submission,
      isSent ? { ...event, slot: this.#dependencies.leaders().slot } : event,
    );
    if (!attempt.isLost) return;
    sending.lost++;
    const isOfLast = attempt.attempt === sending.attempts;
    if (attempt.isRefused) {
      sending.refused(attempt.route);
      if (isOfLast) sending.lastRefused++;
    }
    if (attempt.isUnsent && isOfLast && ++sending.lastUnsent === sending.lastTaken) {
      this.#lost(submission);
    }
    if (this.#isFallbackDue(submission, attempt)) this.expedite(submission);
    this.#checkRefused(submission);
  }

  /** A route went down, closed or was too slow before anything left: other routes get it at once. */
  #lost(submission: Submission): void {
    const { sending } = submission;
    sending.isAttemptMissing = true;
    if (sending.isOver || sending.state === "held") return;
    this.#apply(submission, sending.lostInARow++ === 0 ? "attempt_lost" : "attempt_lost_again");
  }

  /**
   * A partner's slot has passed and the transaction was not observed: says so in the timeline. With
   * fallback, the other routes are next.
   */
  #endAuctions(nowMs: number): void {
    for (const { submission, slot, leader } of this.#auctions.takeOver(
      this.#dependencies.leaders(),
      nowMs,
    )) {
      if (submission.sending.isOver || this.#isInBlock(submission)) continue;
      const atNs = this.#dependencies.clock.nowNs();
      this.#report(submission, { kind: "auction_lost", atNs, slot, leader });
      if (submission.options.enableFallback) this.expedite(submission);
    }
  }

  /** The partners that the first attempt was for did not take it: the other routes are next. */
  #isFallbackDue({ method, options, sending }: Submission, { route }: RouteAttempt): boolean {
    if (method !== "sendAlt" || !options.enableFallback || sending.attempts > 1) return false;
    const isOfPartner = this.#dependencies
      .routes()
      .some(({ capabilities: { name, kind } }) => name === route && kind === "alt-partner");
    return isOfPartner && sending.lost === sending.acceptedCount;
  }

  #checkRefused(submission: Submission): void {
    const { sending } = submission;
    const { refusedBy } = sending;
    if (sending.isOver || sending.lost < sending.acceptedCount) return;
    // Routes that close at the end of the process do not refuse anything.
    if (this.#isClosed || refusedBy.length === 0) return;
    const [routes, policy] = [this.#dependencies.routes(), this.#acceptedPolicy];
    const isAnyLeft = routes.some(
      ({ capabilities }) =>
        !refusedBy.includes(capabilities.name) && couldTake(submission, capabilities, policy),
    );
    const isLastRefused = sending.lastRefused === sending.lastTaken;
    if (isAnyLeft && (this.#maySend(submission) || !isLastRefused)) return;
    this.#apply(submission, "routes_exhausted");
    this.#events.handle({ kind: "submission_refused", submission });
  }

  /** Reports it for every transaction of the submission. */
  #report(submission: Submission, report: TimelineEvent): void {
    this.#events.handle({ kind: "route_reported", submission, report });
  }

  /** Whether one of its transactions was recently observed in a block. */
  #isInBlock({ views }: Submission): boolean {
    const sinceMs = this.#nowMs - 2 * this.#limits.observationMs;
    return views.some(({ tracked }) => isInBlock(tracked, sinceMs));
  }

  #isSpent(submission: Submission): boolean {
    return isSpent(this.#index, submission, this.#nowMs - 2 * this.#limits.observationMs);
  }

  #maySend({ options, sending }: Submission): boolean {
    return options.resendsMax === null || sending.resends < options.resendsMax;
  }

  /** Whether it is too old to be sent; it is still observed until its end. */
  #isPastSending({ sending }: Submission): boolean {
    return this.#nowMs > sending.untilMs;
  }

  #attempted(submission: Submission): void {
    const isLast = !this.#maySend(submission) || this.#isPastSending(submission);
    this.#apply(submission, isLast ? "last_attempt_made" : "attempt_made");
  }

  #retry(submission: Submission): void {
    this.#apply(submission, "attempt_started");
    if (this.#isPastSending(submission)) return;
    if (submission.isBundle && submission.views.some(({ tracked }) => tracked.end !== null)) {
      this.stop(submission); // it landed on its own, or in another bundle
      return;
    }
    if (this.#isInBlock(submission) || this.#isSpent(submission)) {
      this.#apply(submission, "landing_awaited");
      return;
    }
    const { sending } = submission;
    const isResend = !sending.isAttemptMissing;
    const planned = this.#plan(submission, this.#acceptedPolicy);
    if (planned.kind === "hold") {
      this.#hold(submission, planned.reason);
      return;
    }
    const attempts = planned.kind === "send" ? this.#offer(submission, planned) : [];
    if (attempts.length === 0) {
      this.#apply(submission, isResend ? "resend_failed" : "attempt_failed");
      return;
    }
    if (isResend) {
      sending.resends++;
      this.#resends++;
    }
    this.#attempted(submission);
    this.#opened(submission, attempts);
    if (!this.#maySend(submission)) this.#events.handle({ kind: "attempts_exhausted", submission });
  }

  #hold(submission: Submission, reason: string): void {
    if (!this.#apply(submission, "protection_required")) return;
    this.#report(submission, { kind: "held", atNs: this.#dependencies.clock.nowNs(), reason });
  }

  #release(): void {
    if (holdReasonOf(this.#dependencies.leaders(), this.#dependencies.policy()) !== null) return;
    for (const submission of this.#held) this.#apply(submission, "protection_lifted");
  }

  /** Changes the state and the queues according to sending.ts; false: the event changes nothing. */
  #apply(submission: Submission, event: SendingEventKind): boolean {
    const { sending } = submission;
    const from = sending.state;
    const cell = sendingTransitions[event][from];
    if (!cell) return false;
    this.#leaveQueue(submission, from);
    sending.state = cell.to;
    if (cell.to === "scheduled") {
      this.#wheel.set(submission, this.#nowMs + this.#delayMs(cell.delay));
    } else if (cell.to === "held") {
      this.#held.add(submission);
    } else if (cell.to === "due") {
      (from === "held" ? this.#released : this.#due).add(submission);
    }
    return true;
  }

  #leaveQueue(submission: Submission, state: SendingState): void {
    if (state === "scheduled") this.#wheel.delete(submission);
    else if (state === "held") this.#held.delete(submission);
    else if (state === "due" && !this.#due.delete(submission)) this.#released.delete(submission);
  }

  #delayMs(delay: SendingDelay): number {
    if (delay === "now") return 0;
    return delay === "retry" ? retryMs : this.#limits.resendMs;
  }
}
