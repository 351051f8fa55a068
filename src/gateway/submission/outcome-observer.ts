// Outcome watch: in which way, and when, did each open transaction end?
//
// Called by state-machine.ts, which adds and removes transactions; what shreds, the node and timers
// say goes back to it as events. An observation in the relay's own shreds comes first and is no end
// while a node can be asked, since its block may be abandoned. The node's word counts from commitment
// "confirmed" on. An end by absence (expired, superseded) needs a lifetime that is gone (lifetimes.ts)
// and two looks that found nothing, the first asked after the first finding, the second after the
// second. Of a nonce value with which something landed one finding and one look are enough: they only
// make sure that it is no blockhash. Answers that fail change nothing.

import type { Clock } from "../../core/clock.ts";
import { lifetimeSlots } from "../../core/solana-constants.ts";
import { TimerWheel } from "../../core/timer-wheel.ts";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import { type Lifetime, Lifetimes } from "../../core/transactions/lifetimes.ts";
import type { SubmissionEvents } from "./events.ts";
import type { WatchLimits } from "./limits.ts";
import { nsPerMs, type TrackedTransaction } from "./tracked-transaction.ts";
import type { Outcomes, Sights, SignatureOutcome } from "./types.ts";

export interface WatchDependencies {
  readonly clock: Clock;
  /** Null: no node is configured. */
  readonly outcomes: Outcomes | null;
  /** Null: the relay does not deshred. */
  readonly sights: Sights | null;
  /** Measured length of a slot; null: not yet. */
  slotNs(): bigint | null;
}

export interface WatchCounts {
  readonly looks: bigint;
  readonly failures: bigint;
  readonly sights: bigint;
  readonly sightsRefused: bigint;
  readonly lost: bigint;
  readonly lifetimes: number;
}

const signaturesPerLook = 256;
/** It has just come: most land within this time, and callers wait. */
const youngMs = 5_000;
const middleMs = 30_000;
const middleLookMs = 2_000;
const oldLookMs = 10_000;
const seenSlotsMax = 16;

export class OutcomeObserver {
  readonly #parts: WatchDependencies;
  readonly #events: SubmissionEvents;
  readonly #limits: WatchLimits;
  readonly #lifetimes: Lifetimes<TrackedTransaction> | null;
  readonly #looks: TimerWheel<TrackedTransaction>;
  readonly #bounds: TimerWheel<TrackedTransaction>;
  readonly #urgent = new Set<TrackedTransaction>();
  readonly #ordinary = new Set<TrackedTransaction>();
  /** When something landed with this nonce value. */
  readonly #spentMs = new WeakMap<Lifetime<TrackedTransaction>, number>();
  #nextLookMs = 0;
  #looksUnderWay = 0;
  #lookCount = 0n;
  #failures = 0n;
  #sights = 0n;
  #sightsRefused = 0n;
  #lost = 0n;

  constructor(parts: WatchDependencies, events: SubmissionEvents, limits: WatchLimits) {
    this.#parts = parts;
    this.#events = events;
    this.#limits = limits;
    const nowMs = this.#nowMs;
    this.#looks = new TimerWheel(50, nowMs);
    this.#bounds = new TimerWheel(100, nowMs);
    const { outcomes } = parts;
    this.#lifetimes =
      outcomes &&
      new Lifetimes<TrackedTransaction>(
        {
          outcomes,
          nowMs: () => this.#nowMs,
          gone: (lifetime) => this.#lookAtAll(lifetime),
          failed: (error) => this.#failed(error),
        },
        limits,
      );
  }

  /** From now on until `remove`. What was open when the process ended may have landed meanwhile. */
  add(tracked: TrackedTransaction): void {
    const { facts, bornMs } = tracked;
    if (!facts) return;
    const { lookMs, ageMaxMs, unobservedMs } = this.#limits;
    const nowMs = this.#nowMs;
    if (this.#lifetimes) {
      this.#lifetimes.join(tracked, facts, bornMs);
      this.#looks.set(tracked, nowMs + lookMs);
      this.#bounds.set(tracked, bornMs + ageMaxMs);
    } else {
      const slotNs = this.#parts.slotNs();
      const boundMs =
        slotNs === null ? unobservedMs : (Number(slotNs) / 1e6) * Number(lifetimeSlots);
      this.#bounds.set(tracked, nowMs + boundMs);
    }
    this.#watch(tracked, facts.signatureBytes);
  }

  /** It ended. */
  remove(tracked: TrackedTransaction): void {
    this.#looks.delete(tracked);
    this.#bounds.delete(tracked);
    this.#urgent.delete(tracked);
    this.#ordinary.delete(tracked);
    if (tracked.facts) this.#lifetimes?.leave(tracked, tracked.facts);
    tracked.unwatch?.();
    tracked.unwatch = null;
  }

  /** Something landed with this nonce value: what else has it is asked about at once. */
  spent(facts: TransactionFacts): void {
    const lifetime = this.#lifetimes?.of(facts);
    if (!lifetime) return;
    this.#spentMs.set(lifetime, this.#nowMs);
    this.#lifetimes?.hurry(facts);
    this.#lookAtAll(lifetime);
  }

  turn(nowMs: number): void {
    for (const tracked of this.#bounds.turn(nowMs)) this.#over(tracked, "unobserved");
    if (!this.#parts.outcomes) return;
    this.#lifetimes?.turn(nowMs);
    for (const tracked of this.#looks.turn(nowMs)) this.#queue(tracked, nowMs);
    if (nowMs < this.#nextLookMs) return;
    this.#nextLookMs = nowMs + this.#limits.lookMs;
    while (this.#looksUnderWay < this.#limits.looksMax) {
      const group = this.#takeGroup();
      if (group.length === 0) break;
      void this.#look(this.#parts.outcomes, group, nowMs);
    }
  }

  get counts(): WatchCounts {
    return {
      looks: this.#lookCount,
      failures: this.#failures,
      sights: this.#sights,
      sightsRefused: this.#sightsRefused,
      lost: this.#lost,
      lifetimes: this.#lifetimes?.size ?? 0,
    };
  }

  #watch(tracked: TrackedTransaction, signature: Uint8Array): void {
    try {
      const unwatch = this.#parts.sights?.watch(signature, ({ slot, seenNs }) => {
        if (tracked.end === null) this.#sighted(tracked, slot, seenNs);
      });
      if (tracked.end === null) tracked.unwatch = unwatch ?? null;
      else unwatch?.(); // told at once, and that was the end
    } catch (error) {
      this.#sightsRefused++; // the list is full: the node will tell, later
      this.#events.handle({ kind: "observer_failed", error });
    }
  }

  get #nowMs(): number {
    return Number(this.#parts.clock.monotonicNs() / nsPerMs);
  }

  #sighted(tracked: TrackedTransaction, slot: bigint, atNs: bigint): void {
    this.#sights++;
    this.#told(tracked, slot, atNs);
    if (!this.#parts.outcomes) {
      this.#events.handle({
        kind: "landing_confirmed",
        tracked,
        reason: "seen_in_shreds",
        slot,
        err: null,
      });
    } else if (!tracked.isAsked) {
      this.#looks.delete(tracked);
      this.#queue(tracked, this.#nowMs);
    }
  }

  #told(tracked: TrackedTransaction, slot: bigint, atNs: bigint): void {
    tracked.seenMs = this.#nowMs;
    tracked.absentMs = null;
    const { seenSlots } = tracked;
    if (seenSlots.has(slot) || seenSlots.size >= seenSlotsMax) {
      this.#events.handle({ kind: "landing_repeated", tracked });
      return;
    }
    seenSlots.add(slot);
    this.#events.handle({ kind: "landing_observed", tracked, slot, atNs });
  }

  #queue(tracked: TrackedTransaction, nowMs: number): void {
    if (tracked.isAsked || tracked.end) return;
    const isUrgent =
      tracked.seenMs !== null || tracked.absentMs !== null || nowMs - tracked.bornMs < youngMs;
    (isUrgent ? this.#urgent : this.#ordinary).add(tracked);
    if (isUrgent) this.#ordinary.delete(tracked);
  }

  #lookAtAll(lifetime: Lifetime<TrackedTransaction>): void {
    for (const tracked of lifetime.members) {
      if (tracked.isAsked) continue;
      this.#looks.delete(tracked);
      this.#ordinary.delete(tracked);
      this.#urgent.add(tracked);
    }
  }

  #takeGroup(): TrackedTransaction[] {
    const group: TrackedTransaction[] = [];
    for (const queue of [this.#urgent, this.#ordinary]) {
      for (const tracked of queue) {
        if (group.length === signaturesPerLook) return group;
        queue.delete(tracked);
        group.push(tracked);
      }
    }
    return group;
  }

  async #look(
    outcomes: Outcomes,
    group: readonly TrackedTransaction[],
    askedMs: number,
  ): Promise<void> {
    this.#looksUnderWay++;
    this.#lookCount++;
    for (const tracked of group) tracked.isAsked = true;
    let answers: readonly (SignatureOutcome | null)[] | null = null;
    try {
      answers = await outcomes.signatureStatuses(group.map(({ signature }) => signature));
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#looksUnderWay--;
    }
    for (const [i, tracked] of group.entries()) {
      tracked.isAsked = false;
      const answer = answers?.[i];
      if (!tracked.end && answer !== undefined) this.#answered(tracked, answer, askedMs);
      if (!tracked.end) this.#lookAgain(tracked);
    }
  }

  #answered(tracked: TrackedTransaction, answer: SignatureOutcome | null, askedMs: number): void {
    if (answer === null) {
      this.#absent(tracked, askedMs);
    } else if (answer.commitment === "processed") {
      this.#told(tracked, answer.slot, this.#parts.clock.nowNs());
    } else {
      const { slot, err, commitment } = answer;
      const kind = err === null ? "landing_confirmed" : "failure_confirmed";
      this.#events.handle({ kind, tracked, reason: commitment, slot, err });
    }
  }

  #absent(tracked: TrackedTransaction, askedMs: number): void {
    const { facts, seenMs } = tracked;
    if (seenMs !== null) {
      if (askedMs - seenMs < this.#limits.sightMs) return; // the node may be behind the shreds
      tracked.seenMs = null;
      this.#lost++;
      this.#events.handle({ kind: "block_abandoned", tracked });
    }
    const lifetime = facts && this.#lifetimes?.of(facts);
    if (!lifetime) return;
    const { goneMs, goneAgainMs } = lifetime;
    if (goneMs === null) {
      // The node that was asked was behind the one that said what landed.
      if (this.#isSpent(lifetime, this.#nowMs)) this.#lifetimes?.hurry(facts);
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
    if (!facts?.nonce) this.#over(tracked, "blockhash_expired");
    else if (lifetime.isUnknownAccount) this.#over(tracked, "nonce_unknown");
    else this.#superseded(tracked);
  }

  /**
   * Whether `atMs` is so soon after something landed with this nonce value that it is no blockhash: one
   * of those would still be valid. Later it may have expired, as any other.
   */
  #isSpent(lifetime: Lifetime<TrackedTransaction>, atMs: number): boolean {
    const spentMs = this.#spentMs.get(lifetime);
    return spentMs !== undefined && atMs - spentMs <= this.#limits.settleMs;
  }

  #lookAgain(tracked: TrackedTransaction): void {
    const nowMs = this.#nowMs;
    const { lookMs, settleMs } = this.#limits;
    const lifetime = tracked.facts && this.#lifetimes?.of(tracked.facts);
    const ageMs = nowMs - tracked.bornMs;
    const isGone = typeof lifetime?.goneMs === "number";
    let waitMs = ageMs < middleMs ? middleLookMs : oldLookMs;
    const isSpent = lifetime && this.#isSpent(lifetime, nowMs);
    if (tracked.seenMs !== null || ageMs < youngMs || isSpent) waitMs = lookMs;
    else if (isGone) waitMs = tracked.absentMs === null ? lookMs : settleMs;
    this.#looks.set(tracked, nowMs + waitMs);
  }

  #over(tracked: TrackedTransaction, reason: string): void {
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
