// Outcome watch: in which way, and when, did each open transaction end?
//
// Called by pipeline.ts, which adds and removes transactions and is told of sights and ends. A sight
// in the relay's own shreds comes first and is no end while a node can be asked, since its block may
// be abandoned. The node's word counts from commitment "confirmed" on. An end by absence (expired,
// superseded) needs a lifetime that is gone (lifetimes.ts) and two looks that found nothing, the
// first asked after the first finding, the second after the second. Of a nonce value with which
// something landed one finding and one look are enough: they only make sure that it is no blockhash.
// Answers that fail change nothing.

import { TimerWheel } from "../../core/timer-wheel.ts";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import {
  type Lifetime,
  type LifetimeLimits,
  Lifetimes,
} from "../../core/transactions/lifetimes.ts";
import type { TrackedTransaction } from "./tracked-transaction.ts";
import type { EndState, Outcomes, Sights, SignatureOutcome } from "./types.ts";

export interface WatchLimits extends LifetimeLimits {
  /** Between two looks at what was seen or has just come. */
  readonly lookMs: number;
  /** `getSignatureStatuses` calls under way at once, of 256 signatures each. */
  readonly looksMax: number;
  /** So long a sight counts as proof that it is in a block. */
  readonly sightMs: number;
  /** Without a node: so long it is waited for a sight, when the slot length is not known. */
  readonly unobservedMs: number;
  /** With a node: nothing is watched longer. */
  readonly ageMaxMs: number;
}

export interface Ending {
  readonly state: EndState;
  readonly reason: string;
  readonly slot: bigint | null;
  readonly err: unknown;
  /** Superseded by this transaction, where an earlier process knew it. */
  readonly sibling?: string;
}

interface WatchDependencies {
  readonly outcomes: Outcomes | null;
  readonly sights: Sights | null;
  nowMs(): number;
  nowNs(): bigint;
  slotNs(): bigint | null;
  /** A block that holds it, each told once. */
  seen(tracked: TrackedTransaction, slot: bigint, atNs: bigint): void;
  /** The block that held it is gone. */
  lost(tracked: TrackedTransaction): void;
  end(tracked: TrackedTransaction, ending: Ending): void;
  failed(error: unknown): void;
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
const lifetimeSlots = 150;

export class OutcomeObserver {
  readonly #parts: WatchDependencies;
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

  constructor(parts: WatchDependencies, limits: WatchLimits) {
    this.#parts = parts;
    this.#limits = limits;
    const nowMs = parts.nowMs();
    this.#looks = new TimerWheel(50, nowMs);
    this.#bounds = new TimerWheel(100, nowMs);
    const { outcomes } = parts;
    this.#lifetimes =
      outcomes &&
      new Lifetimes<TrackedTransaction>(
        {
          outcomes,
          nowMs: () => parts.nowMs(),
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
    const nowMs = this.#parts.nowMs();
    if (this.#lifetimes) {
      this.#lifetimes.join(tracked, facts, bornMs);
      this.#looks.set(tracked, nowMs + lookMs);
      this.#bounds.set(tracked, bornMs + ageMaxMs);
    } else {
      const slotNs = this.#parts.slotNs();
      const boundMs = slotNs === null ? unobservedMs : (Number(slotNs) / 1e6) * lifetimeSlots;
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
    this.#spentMs.set(lifetime, this.#parts.nowMs());
    this.#lifetimes?.hurry(facts);
    this.#lookAtAll(lifetime);
  }

  /** Seen so lately that it need not be sent again; a node that fails cannot say otherwise. */
  isInBlock({ seenMs }: TrackedTransaction): boolean {
    return seenMs !== null && this.#parts.nowMs() - seenMs < 2 * this.#limits.sightMs;
  }

  turn(nowMs: number): void {
    for (const tracked of this.#bounds.turn(nowMs)) this.#end(tracked, "expired", "unobserved");
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
      this.#parts.failed(error);
    }
  }

  #sighted(tracked: TrackedTransaction, slot: bigint, atNs: bigint): void {
    this.#sights++;
    this.#told(tracked, slot, atNs);
    if (!this.#parts.outcomes) {
      this.#end(tracked, "landed", "seen_in_shreds", slot);
    } else if (!tracked.isAsked) {
      this.#looks.delete(tracked);
      this.#queue(tracked, this.#parts.nowMs());
    }
  }

  #told(tracked: TrackedTransaction, slot: bigint, atNs: bigint): void {
    tracked.seenMs = this.#parts.nowMs();
    tracked.absentMs = null;
    if (tracked.seenSlots.has(slot) || tracked.seenSlots.size >= seenSlotsMax) return;
    tracked.seenSlots.add(slot);
    this.#parts.seen(tracked, slot, atNs);
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
      this.#told(tracked, answer.slot, this.#parts.nowNs());
    } else {
      const { slot, err, commitment } = answer;
      const state = err === null ? "landed" : "landed_failed";
      this.#parts.end(tracked, { state, reason: commitment, slot, err });
    }
  }

  #absent(tracked: TrackedTransaction, askedMs: number): void {
    const { facts, seenMs } = tracked;
    if (seenMs !== null) {
      if (askedMs - seenMs < this.#limits.sightMs) return; // the node may be behind the shreds
      tracked.seenMs = null;
      this.#lost++;
      this.#parts.lost(tracked);
    }
    const lifetime = facts && this.#lifetimes?.of(facts);
    if (!lifetime) return;
    const { goneMs, goneAgainMs } = lifetime;
    if (goneMs === null) {
      // The node that was asked was behind the one that said what landed.
      if (this.#isSpent(lifetime, this.#parts.nowMs())) this.#lifetimes?.hurry(facts);
      return;
    }
    if (askedMs < goneMs) return;
    if (this.#isSpent(lifetime, goneMs)) {
      this.#end(tracked, "superseded", "nonce_advanced");
      return;
    }
    if (tracked.absentMs === null || tracked.absentMs < goneMs) {
      tracked.absentMs = askedMs;
      return;
    }
    const isSettled = askedMs - tracked.absentMs >= this.#limits.settleMs;
    if (goneAgainMs === null || askedMs < goneAgainMs || !isSettled) return;
    if (!facts?.nonce) this.#end(tracked, "expired", "blockhash_expired");
    else if (lifetime.isUnknownAccount) this.#end(tracked, "expired", "nonce_unknown");
    else this.#end(tracked, "superseded", "nonce_advanced");
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
    const nowMs = this.#parts.nowMs();
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

  #end(
    tracked: TrackedTransaction,
    state: EndState,
    reason: string,
    slot: bigint | null = null,
  ): void {
    this.#parts.end(tracked, { state, reason, slot, err: null });
  }

  #failed(error: unknown): void {
    this.#failures++;
    this.#parts.failed(error);
  }
}
