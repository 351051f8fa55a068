// Outcome observer: finds out how and when each open transaction ends.
//
// state-machine.ts adds and removes transactions; what shreds, the node and timers report goes back to it
// as events.
//
// - An observation in the relay's own shreds comes first. If a node is configured it is not an end,
//   because the block may be abandoned. Without a node it is an end: at once if the chain's blocks cannot
//   begin again, otherwise after a time in which this one did not.
// - The node's answer ends a transaction from commitment "confirmed" on. Failed calls change nothing.
// - "expired" and "superseded" need a lifetime that is over (lifetimes.ts) and two answers of the node that
//   it does not know the transaction: one asked after the lifetime was first found to be over, one after
//   it was found so again. If a transaction landed with the same nonce value, one of each is enough,
//   from a node that knows the slot of the landing.
// - A node forgets results after some minutes, unless its whole history is searched. After a time without an
//   answer, only a search of the history shows that it does not know a transaction. The history is also
//   searched, once, if the lifetime was over at the call: the transaction may have landed long before.

import type { Clock } from "../../core/clock.ts";
import { lifetimeSlots } from "../../core/solana-constants.ts";
import { TimerWheel } from "../../core/timer-wheel.ts";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import { type Lifetime, Lifetimes } from "../../core/transactions/lifetimes.ts";
import type { SubmissionEvents } from "./events.ts";
import { appended } from "./lifecycle.ts";
import type { ObserverLimits } from "./limits.ts";
import { nsPerMs, type TrackedTransaction } from "./tracked-transaction.ts";
import type {
  LandingObservation,
  LandingObservations,
  Outcomes,
  SignatureOutcome,
  WithdrawalReason,
} from "./types.ts";

export interface ObserverDependencies {
  readonly clock: Clock;
  /** Null: no node is configured. */
  readonly outcomes: Outcomes | null;
  /** Null: the relay does not decode transactions. */
  readonly landings: LandingObservations | null;
  /** Measured length of a slot; null: not measured yet. */
  slotNs(): bigint | null;
}

export interface ObserverCounts {
  readonly questions: bigint;
  readonly failures: bigint;
  readonly observations: bigint;
  readonly watchesRefused: bigint;
  readonly blocksAbandoned: bigint;
  readonly lifetimes: number;
}

const signaturesPerQuestion = 256;
/** Most transactions land within this time, and callers wait for it: the node is asked often. */
const recentMs = 5_000;
const middleMs = 30_000;
const middleQuestionMs = 2_000;
const oldQuestionMs = 10_000;
const observedSlotsMax = 16;
/** Half of the node's cache, which holds 300 rooted slots: at least 60 s with slots of 200 ms. */
const answerGapMs = 30_000;

/** Transactions of one question to the node. */
interface Group {
  readonly members: readonly TrackedTransaction[];
  readonly searchHistory: boolean;
}

export class OutcomeObserver {
  readonly #dependencies: ObserverDependencies;
  readonly #events: SubmissionEvents;
  readonly #limits: ObserverLimits;
  readonly #lifetimes: Lifetimes<TrackedTransaction> | null;
  readonly #nextQuestion: TimerWheel<TrackedTransaction>;
  readonly #observationEnd: TimerWheel<TrackedTransaction>;
  /** Without a node: transactions whose block may still begin again. */
  readonly #settling: TimerWheel<TrackedTransaction>;
  readonly #urgent = new Set<TrackedTransaction>();
  readonly #ordinary = new Set<TrackedTransaction>();
  #nextRoundMs = 0;
  #questionsUnderWay = 0;
  #questions = 0n;
  #failures = 0n;
  #observations = 0n;
  #watchesRefused = 0n;
  #blocksAbandoned = 0n;

  constructor(
    dependencies: ObserverDependencies,
    events: SubmissionEvents,
    limits: ObserverLimits,
  ) {
    this.#dependencies = dependencies;
    this.#events = events;
    this.#limits = limits;
    const nowMs = this.#nowMs;
    this.#nextQuestion = new TimerWheel(50, nowMs);
    this.#observationEnd = new TimerWheel(100, nowMs);
    this.#settling = new TimerWheel(100, nowMs);
    const { outcomes } = dependencies;
    this.#lifetimes =
      outcomes &&
      new Lifetimes<TrackedTransaction>(
        {
          outcomes,
          nowMs: () => this.#nowMs,
          onExpired: (lifetime) => this.#askAboutAll(lifetime),
          failed: (error) => this.#failed(error),
        },
        limits,
      );
  }

  /** Observes it until `remove`. It may have landed while the service was down. */
  add(tracked: TrackedTransaction): void {
    const { facts, acceptedMs: bornMs } = tracked;
    if (!facts) return;
    const { questionMs: checkMs, ageMaxMs, unobservedMs } = this.#limits;
    const nowMs = this.#nowMs;
    if (this.#lifetimes) {
      this.#lifetimes.join(tracked, facts, bornMs);
      this.#nextQuestion.set(tracked, nowMs + checkMs);
      this.#observationEnd.set(tracked, bornMs + ageMaxMs);
    } else {
      const slotNs = this.#dependencies.slotNs();
      const boundMs =
        slotNs === null ? unobservedMs : (Number(slotNs) / 1e6) * Number(lifetimeSlots);
      this.#observationEnd.set(tracked, nowMs + boundMs);
      if (tracked.observedSlots.length > 0) this.#settle(tracked);
    }
    this.#watch(tracked, facts.signatureBytes);
  }

  /** An earlier process observed it in this slot. Called before `add`. */
  observedBefore(tracked: TrackedTransaction, slot: bigint): void {
    // A node is asked; without one nothing else would report it again.
    if (this.#dependencies.outcomes || tracked.observedSlots.includes(slot)) return;
    tracked.observedSlots = appended(tracked.observedSlots, slot);
  }

  /** Stops observing it. */
  remove(tracked: TrackedTransaction): void {
    this.#nextQuestion.delete(tracked);
    this.#observationEnd.delete(tracked);
    this.#settling.delete(tracked);
    this.#urgent.delete(tracked);
    this.#ordinary.delete(tracked);
    if (tracked.facts) this.#lifetimes?.leave(tracked, tracked.facts);
    tracked.unwatch?.();
    tracked.unwatch = null;
  }

  /** A transaction landed with this nonce value: asks at once about the others that have it. */
  nonceSpent(facts: TransactionFacts, slot: bigint): void {
    const lifetime = this.#lifetimes?.landed(facts, slot);
    if (lifetime) this.#askAboutAll(lifetime);
  }

  turn(nowMs: number): void {
    for (const tracked of this.#observationEnd.turn(nowMs)) {
      const isSettling = !this.#dependencies.outcomes && tracked.observedSlots.length > 0;
      if (isSettling) this.#observationEnd.set(tracked, nowMs + this.#limits.restartMs);
      else this.#lifetimeOver(tracked, "unobserved");
    }
    for (const tracked of this.#settling.turn(nowMs)) this.#landedWithoutNode(tracked);
    if (!this.#dependencies.outcomes) return;
    this.#lifetimes?.turn(nowMs);
    for (const tracked of this.#nextQuestion.turn(nowMs)) this.#queue(tracked, nowMs);
    if (nowMs < this.#nextRoundMs) return;
    this.#nextRoundMs = nowMs + this.#limits.questionMs;
    while (this.#questionsUnderWay < this.#limits.questionsMax) {
      const group = this.#takeGroup(nowMs);
      if (group.members.length === 0) break;
      void this.#ask(this.#dependencies.outcomes, group, nowMs);
    }
  }

  get counts(): ObserverCounts {
    return {
      questions: this.#questions,
      failures: this.#failures,
      observations: this.#observations,
      watchesRefused: this.#watchesRefused,
      blocksAbandoned: this.#blocksAbandoned,
      lifetimes: this.#lifetimes?.size ?? 0,
    };
  }

  #watch(tracked: TrackedTransaction, signature: Uint8Array): void {
    try {
      const unwatch = this.#dependencies.landings?.watch(
        signature,
        (observation) => {
          if (tracked.end === null) this.#observed(tracked, observation);
        },
        ({ slot, seenNs }) => {
          if (tracked.end === null) this.#withdrawn(tracked, slot, seenNs);
        },
      );
      if (tracked.end === null) tracked.unwatch = unwatch ?? null;
      else unwatch?.(); // `watch` reported a landing at once, which ended it
    } catch (error) {
      this.#watchesRefused++; // the list is full; the node will report it later
      this.#events.handle({ kind: "observer_failed", error });
    }
  }

  get #nowMs(): number {
    return Number(this.#dependencies.clock.monotonicNs() / nsPerMs);
  }

  #observed(tracked: TrackedTransaction, { slot, seenNs, mayRestart }: LandingObservation): void {
    this.#observations++;
    this.#reportLanding(tracked, slot, seenNs);
    if (!this.#dependencies.outcomes) {
      if (mayRestart) this.#settle(tracked);
      else this.#landedWithoutNode(tracked);
    } else if (!tracked.isAsked) {
      this.#nextQuestion.delete(tracked);
      this.#queue(tracked, this.#nowMs);
    }
  }

  #settle(tracked: TrackedTransaction): void {
    this.#settling.set(tracked, this.#nowMs + this.#limits.restartMs);
  }

  #landedWithoutNode(tracked: TrackedTransaction): void {
    const slot = tracked.observedSlots.at(-1) ?? null;
    const reason = "seen_in_shreds";
    this.#events.handle({ kind: "landing_confirmed", tracked, reason, slot, err: null });
  }

  /** The block of this slot began again without it. */
  #withdrawn(tracked: TrackedTransaction, slot: bigint, atNs: bigint): void {
    if (!tracked.observedSlots.includes(slot)) return;
    tracked.observedSlots = tracked.observedSlots.filter((one) => one !== slot);
    const cause = "update_parent";
    if (tracked.observedSlots.length > 0) {
      this.#events.handle({ kind: "landing_withdrawn", tracked, slot, atNs, cause });
      return;
    }
    this.#settling.delete(tracked);
    this.#abandoned(tracked, { slot, atNs, cause });
  }

  #abandoned(
    tracked: TrackedTransaction,
    line: { readonly slot: bigint; readonly atNs: bigint; readonly cause: WithdrawalReason },
  ): void {
    tracked.observedMs = null;
    tracked.observedSlots = [];
    this.#blocksAbandoned++;
    this.#events.handle({ kind: "block_abandoned", tracked, ...line });
  }

  #reportLanding(tracked: TrackedTransaction, slot: bigint, atNs: bigint): void {
    tracked.observedMs = this.#nowMs;
    tracked.absentMs = null;
    const { observedSlots } = tracked;
    if (observedSlots.includes(slot) || observedSlots.length >= observedSlotsMax) {
      this.#events.handle({ kind: "landing_repeated", tracked });
      return;
    }
    tracked.observedSlots = appended(observedSlots, slot);
    this.#events.handle({ kind: "landing_observed", tracked, slot, atNs });
  }

  #queue(tracked: TrackedTransaction, nowMs: number): void {
    if (tracked.isAsked || tracked.facts === null) return;
    const isUrgent =
      tracked.observedMs !== null ||
      tracked.absentMs !== null ||
      nowMs - tracked.acceptedMs < recentMs;
    (isUrgent ? this.#urgent : this.#ordinary).add(tracked);
    if (isUrgent) this.#ordinary.delete(tracked);
  }

  #askAboutAll(lifetime: Lifetime<TrackedTransaction>): void {
    for (const tracked of lifetime.members) {
      if (tracked.isAsked) continue;
      this.#nextQuestion.delete(tracked);
      this.#ordinary.delete(tracked);
      this.#urgent.add(tracked);
    }
  }

  /** All members of a group are asked alike: with or without a search of the history. */
  #takeGroup(nowMs: number): Group {
    const members: TrackedTransaction[] = [];
    let searchHistory = false;
    for (const queue of [this.#urgent, this.#ordinary]) {
      for (const tracked of queue) {
        if (members.length === signaturesPerQuestion) return { members, searchHistory };
        const needsHistory = this.#needsHistory(tracked, nowMs);
        if (members.length === 0) searchHistory = needsHistory;
        if (needsHistory !== searchHistory) continue;
        queue.delete(tracked);
        members.push(tracked);
      }
    }
    return { members, searchHistory };
  }

  /** Whether the node may have forgotten its result, and a wrong answer would change its state. */
  #needsHistory(tracked: TrackedTransaction, nowMs: number): boolean {
    const { facts, observedMs, answeredMs, acceptedMs } = tracked;
    const lifetime = facts && this.#lifetimes?.of(facts);
    const isGone = typeof lifetime?.goneMs === "number";
    if (nowMs - answeredMs > answerGapMs) return isGone || observedMs !== null;
    if (!isGone || !tracked.mayPrecedeCall) return false;
    // If its lifetime was valid after the call, any landing was recent then, and the cache had it.
    return lifetime.validMs === null || lifetime.validMs < acceptedMs;
  }

  async #ask(
    outcomes: Outcomes,
    { members, searchHistory }: Group,
    askedMs: number,
  ): Promise<void> {
    this.#questionsUnderWay++;
    this.#questions++;
    for (const tracked of members) tracked.isAsked = true;
    let answers: readonly (SignatureOutcome | null)[] | null = null;
    try {
      const signatures = members.map(({ signature }) => signature);
      answers = await outcomes.signatureStatuses(signatures, { searchHistory });
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#questionsUnderWay--;
    }
    const isProof = (
      answer: SignatureOutcome | null,
      { answeredMs }: TrackedTransaction,
    ): boolean => answer !== null || searchHistory || askedMs - answeredMs <= answerGapMs;
    for (const [i, tracked] of members.entries()) {
      tracked.isAsked = false;
      const answer = answers?.[i];
      // It may have ended, or been revoked, since the question.
      if (tracked.facts && answer !== undefined && isProof(answer, tracked)) {
        tracked.answeredMs = askedMs;
        if (searchHistory) tracked.mayPrecedeCall = false;
        this.#answered(tracked, answer, askedMs);
      }
      if (tracked.facts) this.#scheduleQuestion(tracked);
    }
  }

  #answered(tracked: TrackedTransaction, answer: SignatureOutcome | null, askedMs: number): void {
    if (answer === null) {
      this.#absent(tracked, askedMs);
    } else if (answer.commitment === "processed") {
      this.#reportLanding(tracked, answer.slot, this.#dependencies.clock.nowNs());
    } else {
      const { slot, err, commitment } = answer;
      const kind = err === null ? "landing_confirmed" : "failure_confirmed";
      this.#events.handle({ kind, tracked, reason: commitment, slot, err });
    }
  }

  #absent(tracked: TrackedTransaction, askedMs: number): void {
    const { facts, observedMs } = tracked;
    if (observedMs !== null) {
      if (askedMs - observedMs < this.#limits.observationMs) return; // the node may lag behind the shreds
      const atNs = this.#dependencies.clock.nowNs();
      const slot = tracked.observedSlots.at(-1) ?? 0n;
      this.#abandoned(tracked, { slot, atNs, cause: "block_abandoned" });
    }
    const lifetime = facts && this.#lifetimes?.of(facts);
    if (!lifetime) return;
    const { goneMs, goneAgainMs } = lifetime;
    if (goneMs === null) {
      // This node lags behind the one that reported the landing.
      if (this.#isSpent(lifetime, this.#nowMs)) this.#lifetimes?.pollFaster(lifetime);
      return;
    }
    if (askedMs < goneMs) return;
    if (this.#isSpent(lifetime, goneMs)) {
      this.#superseded(tracked);
      return;
    }
    if (tracked.absentMs === null || tracked.absentMs < goneMs) {
      tracked.absentMs = askedMs;
      return;
    }
    const isSettled = askedMs - tracked.absentMs >= this.#limits.settleMs;
    if (goneAgainMs === null || askedMs < goneAgainMs || !isSettled) return;
    if (!facts?.nonce) this.#lifetimeOver(tracked, "blockhash_expired");
    else if (lifetime.isUnknownAccount) this.#lifetimeOver(tracked, "nonce_unknown");
    else this.#superseded(tracked);
  }

  /**
   * Whether `atMs` is shortly after a transaction landed with this value. A blockhash would still be valid
   * then, so the value must be a nonce.
   */
  #isSpent(lifetime: Lifetime<TrackedTransaction>, atMs: number): boolean {
    const { landed } = lifetime;
    return landed !== null && atMs - landed.atMs <= this.#limits.settleMs;
  }

  #scheduleQuestion(tracked: TrackedTransaction): void {
    const nowMs = this.#nowMs;
    const { questionMs: checkMs, settleMs } = this.#limits;
    const lifetime = tracked.facts && this.#lifetimes?.of(tracked.facts);
    const ageMs = nowMs - tracked.acceptedMs;
    const isGone = typeof lifetime?.goneMs === "number";
    let waitMs = ageMs < middleMs ? middleQuestionMs : oldQuestionMs;
    const isSpent = lifetime && this.#isSpent(lifetime, nowMs);
    if (tracked.observedMs !== null || ageMs < recentMs || isSpent) waitMs = checkMs;
    else if (isGone) waitMs = tracked.absentMs === null ? checkMs : settleMs;
    this.#nextQuestion.set(tracked, nowMs + waitMs);
  }

  #lifetimeOver(tracked: TrackedTransaction, reason: string): void {
    this.#events.handle({ kind: "lifetime_over", tracked, reason, slot: null, err: null });
  }

  #superseded(tracked: TrackedTransaction): void {
    const reason = "nonce_advanced";
    this.#events.handle({ kind: "nonce_advanced", tracked, reason, slot: null, err: null });
  }

  #failed(error: unknown): void {
    this.#failures++;
    this.#events.handle({ kind: "observer_failed", error });
  }
}
