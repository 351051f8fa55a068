// Dispatch: offers submissions to routes, now, again, or when protection allows it.
//
// Called by pipeline.ts and state-machine.ts. Every attempt is planned anew; a parcel is in the routes' queues before
// anything else is done for it, and what routes report goes into the timelines. One turn of one
// timer serves all: resends lie in a wheel, held submissions in a set that is looked at while it is
// not empty. What happens goes to state-machine.ts as events; that stops a submission whose end is known.

import type { Clock } from "../../core/clock.ts";
import { ShredwayError } from "../../core/errors.ts";
import { defaultSlotNs, lifetimeSlots, windowSlots } from "../../core/solana-constants.ts";
import { TimerWheel } from "../../core/timer-wheel.ts";
import type { SubmissionEvents } from "./events.ts";
import type { DispatchLimits } from "./limits.ts";
import { isSpent } from "./pairs.ts";
import { couldTake, holdReasonOf, type Plan, type PlanPolicy, plan } from "./plan.ts";
import { RouteAttempt } from "./route-attempt.ts";
import type { SubmissionIndex } from "./submission-index.ts";
import { isInBlock, isUndone, isUnsent, nsPerMs, type Submission } from "./tracked-transaction.ts";
import type { LeaderContext, Route, TimelineEvent } from "./types.ts";

/** What dispatch asks before every attempt; a reload may have changed it. */
export interface DispatchDependencies {
  readonly clock: Clock;
  routes(): readonly Route[];
  policy(): PlanPolicy;
  leaders(): LeaderContext;
  /** Null: not measured yet. */
  slotNs(): bigint | null;
}

/** What the first attempt of one submission came to. */
interface FirstAttempt {
  readonly submission: Submission;
  readonly made: Plan<Route>;
  readonly taken: readonly RouteAttempt[];
}

export interface DispatchCounts {
  readonly held: number;
  readonly attempts: bigint;
  readonly resends: bigint;
  readonly repeats: bigint;
}

/** Between two attempts that one account causes by sending the same again. */
const repeatMs = 50;
/** With three routes, a timeline of 64 events tells of seven attempts in full. */
const repeatsMax = 32;
/** About 20 µs each with three routes: a turn of 25 ms takes 4 ms of them. */
const attemptsPerTurn = 200;
/** Until a submission that could not leave when it was due is planned again. */
const retryMs = 250;

export class Dispatch {
  readonly #parts: DispatchDependencies;
  readonly #memory: SubmissionIndex;
  readonly #events: SubmissionEvents;
  readonly #limits: DispatchLimits;
  readonly #wheel: TimerWheel<Submission>;
  readonly #held = new Set<Submission>();
  /** To be planned in this turn or one of the next, the first of them before the second. */
  readonly #released = new Set<Submission>();
  readonly #due = new Set<Submission>();
  #isClosed = false;
  #attempts = 0n;
  #resends = 0n;
  #repeats = 0n;

  constructor(
    parts: DispatchDependencies,
    memory: SubmissionIndex,
    events: SubmissionEvents,
    limits: DispatchLimits,
  ) {
    this.#parts = parts;
    this.#memory = memory;
    this.#events = events;
    this.#limits = limits;
    this.#wheel = new TimerWheel(25, this.#nowMs);
  }

  /**
   * The first attempt of one submission, or of a pair: all are planned before one is offered, and one
   * that is taken is enough. `begin` goes on with what this returns, once the submissions' views exist.
   * Throws "no_route", "tip_too_low", "overloaded".
   */
  first(submissions: readonly Submission[]): readonly FirstAttempt[] {
    const planned = submissions.map((submission) => {
      const made = this.#plan(submission);
      if (made.kind !== "refuse") return { submission, made };
      const [transaction] = submission.transactions;
      const which = submissions.length > 1 ? `transaction ${transaction?.signature}: ` : "";
      throw new ShredwayError(made.reason, `${which}${made.message}`);
    });
    const held = planned.filter(({ made }) => made.kind === "hold").length;
    if (held > 0 && this.#held.size + held > this.#limits.heldMax) {
      throw new ShredwayError(
        "overloaded",
        `held back for protection: expected at most ${this.#limits.heldMax}, got as many`,
      );
    }
    const offered = planned.map(({ submission, made }) => ({
      submission,
      made,
      taken: made.kind === "send" ? this.#offer(submission, made) : [],
    }));
    if (held === 0 && offered.every(({ taken }) => taken.length === 0)) {
      const legs = planned.flatMap(({ made }) => (made.kind === "send" ? made.legs : []));
      const names = new Set(legs.map(({ route }) => route.capabilities.name));
      throw new ShredwayError(
        "no_route",
        `queues: expected room in one of ${[...names].join(", ")}, got none`,
      );
    }
    return offered;
  }

  /** The timelines learn of the first attempt, and of what the routes said during the offer. */
  begin({ submission, made, taken }: FirstAttempt): void {
    if (made.kind === "hold") {
      this.#hold(submission, made.reason);
    } else if (taken.length > 0) {
      this.#schedule(submission);
      this.#opened(submission, taken); // what is reported by now may change when it is due
    } else {
      submission.isLeftOver = true;
      this.#wheel.set(submission, this.#nowMs + retryMs);
    }
  }

  /**
   * The account sent the same again. Does nothing when that was just done. Throws "non_partner_slot" for
   * what goes to alternative partners alone.
   */
  repeat(submission: Submission): void {
    const isTooSoon = this.#nowMs - submission.lastAttemptMs < repeatMs;
    if (submission.isStopped || submission.isHeld || isTooSoon) return;
    if (this.#isSpent(submission)) return;
    if (submission.repeats >= repeatsMax) return;
    submission.repeats++;
    this.#repeats++;
    const planned = this.#plan(submission);
    if (planned.kind === "refuse" && planned.reason === "non_partner_slot") {
      throw new ShredwayError(planned.reason, planned.message);
    }
    if (planned.kind !== "send") return;
    const wasUndone = isUndone(submission);
    const legs = this.#offer(submission, planned);
    if (legs.length > 0 && wasUndone) {
      this.#wheel.delete(submission); // what it waited for is done now
      this.#schedule(submission);
    }
    this.#opened(submission, legs);
  }

  /** After a restart: `attempts` of it are known from its timeline. */
  resume(submission: Submission): void {
    if (submission.isStopped) return;
    if (isUndone(submission) || this.#maySend(submission)) {
      this.#wheel.set(submission, this.#nowMs);
    }
  }

  /** As soon as its options allow: what it was in is gone. */
  hurry(submission: Submission): void {
    if (!submission.isStopped && !submission.isHeld && this.#wheel.has(submission)) {
      this.#wheel.set(submission, this.#nowMs);
    }
  }

  /** Nothing of it is offered any more. */
  stop(submission: Submission): void {
    submission.isStopped = true;
    submission.isHeld = false;
    this.#wheel.delete(submission);
    this.#held.delete(submission);
    this.#released.delete(submission);
    this.#due.delete(submission);
  }

  /** What is too much for one turn waits for the next: new submissions must not wait for resends. */
  turn(nowMs: number): void {
    if (this.#held.size > 0) this.#release();
    for (const submission of this.#wheel.turn(nowMs)) this.#due.add(submission);
    let left = attemptsPerTurn;
    for (const queue of [this.#released, this.#due]) {
      for (const submission of queue) {
        if (left-- <= 0) return;
        queue.delete(submission);
        this.#again(submission);
      }
    }
  }

  /** Nothing is sent any more, and nothing is concluded from what routes say while they close. */
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
    return Number(this.#parts.clock.monotonicNs() / nsPerMs);
  }

  #plan(submission: Submission): Plan<Route> {
    const [routes, policy] = [this.#parts.routes(), this.#parts.policy()];
    const { refusedBy } = submission;
    const open =
      refusedBy.size === 0
        ? routes
        : routes.filter(({ capabilities }) => !refusedBy.has(capabilities.name));
    return plan(submission, open, this.#parts.leaders(), policy);
  }

  #offer(submission: Submission, { legs }: Extract<Plan<Route>, { kind: "send" }>): RouteAttempt[] {
    const { options, transactions } = submission;
    const deadlineNs = this.#deadlineOf(submission);
    const taken: RouteAttempt[] = [];
    for (const { route, mode, leader } of legs) {
      const leg = new RouteAttempt(
        {
          mode,
          transactions,
          revertProtection: options.revertProtection,
          attempt: submission.attempts + 1,
          leader,
          deadlineNs,
        },
        route.capabilities.name,
      );
      if (route.offer(leg)) taken.push(leg);
    }
    if (taken.length === 0) return taken;
    submission.attempts++;
    submission.isLeftOver = false;
    submission.lastAttemptMs = this.#nowMs;
    submission.legs += taken.length;
    submission.lastLegs = taken.length;
    submission.lastRefused = 0;
    submission.lastUnsent = 0;
    this.#attempts++;
    return taken;
  }

  #deadlineOf({ options, transactions }: Submission): bigint {
    const slotNs = this.#parts.slotNs() ?? defaultSlotNs;
    const nowNs = this.#parts.clock.nowNs();
    if (options.mevProtect && this.#parts.policy().denyLeaders.size > 0) {
      return nowNs + this.#windowLeftNs(slotNs);
    }
    const hasNonce = transactions.some(({ nonce }) => nonce !== null);
    return nowNs + slotNs * (hasNonce ? 2n * lifetimeSlots : lifetimeSlots);
  }

  /**
   * A protected parcel must not wait in a queue until a denied leader is near: at most until the
   * present leader's window ends. How much of this slot is over is not known; a quarter is given.
   */
  #windowLeftNs(slotNs: bigint): bigint {
    const { slot } = this.#parts.leaders();
    const slotsLeft = slot === null ? 0n : windowSlots - 1n - (slot % windowSlots);
    return slotNs * slotsLeft + slotNs / 4n;
  }

  #opened(submission: Submission, legs: readonly RouteAttempt[]): void {
    if (legs.length === 0) return;
    const atNs = this.#parts.clock.nowNs();
    for (const { route, attempt } of legs) {
      this.#report(submission, { kind: "queued", atNs, route, attempt });
    }
    for (const leg of legs) leg.open((event) => this.#reported(submission, leg, event));
  }

  #reported(submission: Submission, leg: RouteAttempt, event: TimelineEvent): void {
    const isSent = event.kind === "sent";
    if (isSent) submission.unsentAttempts = 0;
    this.#report(submission, isSent ? { ...event, slot: this.#parts.leaders().slot } : event);
    if (!leg.isGone) return;
    submission.legsGone++;
    if (leg.isRefused) {
      submission.refusedBy.add(leg.route);
      if (leg.attempt === submission.attempts) submission.lastRefused++;
    }
    if (event.kind === "dropped" && leg.attempt === submission.attempts) {
      submission.lastUnsent++;
      if (isUnsent(submission)) this.#sendInstead(submission);
    }
    if (this.#isFallbackDue(submission, leg)) this.hurry(submission);
    this.#checkRejected(submission);
  }

  /** A route went down, closed or was too slow before anything left: others shall have it at once. */
  #sendInstead(submission: Submission): void {
    if (submission.isStopped || submission.isHeld) return;
    const delayMs = submission.unsentAttempts++ === 0 ? 0 : retryMs;
    this.#wheel.set(submission, this.#nowMs + delayMs);
  }

  /** The partners that the first attempt was for took it not: now it is the other routes' turn. */
  #isFallbackDue(
    { method, options, attempts, legs, legsGone }: Submission,
    leg: RouteAttempt,
  ): boolean {
    if (method !== "sendAlt" || !options.enableFallback || attempts > 1) return false;
    const isOfPartner = this.#parts
      .routes()
      .some(({ capabilities: { name, kind } }) => name === leg.route && kind === "alt-partner");
    return isOfPartner && legsGone === legs;
  }

  #checkRejected(submission: Submission): void {
    const { isStopped, isRejected, refusedBy } = submission;
    if (isStopped || isRejected || submission.legsGone < submission.legs) return;
    // Without routes (or at the end of the process) nobody refused anything.
    if (this.#isClosed || refusedBy.size === 0) return;
    const [routes, policy] = [this.#parts.routes(), this.#parts.policy()];
    const isAnyLeft = routes.some(
      ({ capabilities }) =>
        !refusedBy.has(capabilities.name) && couldTake(submission, capabilities, policy),
    );
    const isLastRefused = submission.lastRefused === submission.lastLegs;
    if (isAnyLeft && (this.#maySend(submission) || !isLastRefused)) return;
    submission.isRejected = true;
    this.#events.handle({ kind: "submission_refused", submission });
  }

  /** For every transaction of the submission. */
  #report(submission: Submission, report: TimelineEvent): void {
    this.#events.handle({ kind: "route_reported", submission, report });
  }

  /** A transaction of it was observed in a block that may stay. */
  #isInBlock({ views }: Submission): boolean {
    const sinceMs = this.#nowMs - 2 * this.#limits.sightMs;
    return views.some(({ tracked }) => isInBlock(tracked, sinceMs));
  }

  #isSpent(submission: Submission): boolean {
    return isSpent(this.#memory, submission, this.#nowMs - 2 * this.#limits.sightMs);
  }

  #maySend({ resends, options }: Submission): boolean {
    return options.resendsMax === null || resends < options.resendsMax;
  }

  #schedule(submission: Submission): void {
    if (submission.isStopped || !this.#maySend(submission)) return;
    if (this.#isPastSending(submission)) return;
    this.#wheel.set(submission, this.#nowMs + this.#limits.resendMs);
  }

  /** From now on it is watched to its end, whatever it waited for. */
  #isPastSending({ receivedNs }: Submission): boolean {
    const ageNs = this.#parts.clock.nowNs() - receivedNs;
    return ageNs > BigInt(this.#limits.resendForMs) * nsPerMs;
  }

  #again(submission: Submission): void {
    if (this.#isPastSending(submission)) return;
    const isResend = !isUndone(submission);
    if (this.#isInBlock(submission) || this.#isSpent(submission)) {
      if (isResend) this.#schedule(submission);
      else this.#wheel.set(submission, this.#nowMs + this.#limits.resendMs);
      return;
    }
    const planned = this.#plan(submission);
    if (planned.kind === "hold") {
      this.#hold(submission, planned.reason);
      return;
    }
    const legs = planned.kind === "send" ? this.#offer(submission, planned) : [];
    if (legs.length === 0) {
      this.#wheel.set(submission, this.#nowMs + (isResend ? this.#limits.resendMs : retryMs));
      return;
    }
    if (isResend) {
      submission.resends++;
      this.#resends++;
    }
    this.#schedule(submission);
    this.#opened(submission, legs);
    if (!this.#maySend(submission)) this.#events.handle({ kind: "attempts_exhausted", submission });
  }

  #hold(submission: Submission, reason: string): void {
    if (submission.isStopped || submission.isHeld) return;
    submission.isHeld = true;
    this.#wheel.delete(submission);
    this.#held.add(submission);
    this.#report(submission, { kind: "held", atNs: this.#parts.clock.nowNs(), reason });
  }

  #release(): void {
    if (holdReasonOf(this.#parts.leaders(), this.#parts.policy()) !== null) return;
    for (const submission of this.#held) {
      submission.isHeld = false;
      this.#released.add(submission);
    }
    this.#held.clear();
  }
}
