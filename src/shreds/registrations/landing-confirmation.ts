// Landing confirmation: did the transaction of a pending registration land, and what did it pay?
//
// Made by pending-registrations.ts for each term in which this node leads; asks the node about each
// pending registration soon, then in growing steps. The relay's own shreds only hurry the question.
// Counted: landed at "confirmed" without error, and the addresses gained. Dropped: it failed, they gained
// nothing, or it is absent although its lifetime is gone (found so twice, and absent after each, the
// second time so late that no fork could hide it). Failed answers change nothing. Memory and questions are
// bounded, and accounts take turns.

import type { Clock, Timer } from "../../core/clock.ts";
import { TimerWheel } from "../../core/timer-wheel.ts";
import {
  type Lifetime,
  type LifetimeAnswers,
  type LifetimeLimits,
  Lifetimes,
} from "../../core/transactions/lifetimes.ts";
import { type LandingAnswer, LandingQuestions } from "./landing-questions.ts";
import type { LandingResult } from "./registration-results.ts";
import type {
  LandedTransaction,
  LandedTransactions,
  Registration,
  SettledTip,
} from "./registration-types.ts";

/** Landings that the relay observes in its own shreds; the list is shared with submissions. */
interface ShredObservations {
  /** Throws when the list is full. */
  watch(signature: Uint8Array, listener: () => void): () => void;
}

export interface ConfirmationLimits extends LifetimeLimits {
  /** From the first question, at once, to the second; each next one after twice the time. */
  readonly firstCheckMs: number;
  readonly queryIntervalMaxMs: number;
  /** From an observation to the next question: blocks are confirmed a moment after their shreds. */
  readonly observationQueryMs: number;
  /** Calls under way at once. */
  readonly queriesMax: number;
  /** Signatures looked for in shreds. */
  readonly watchedMax: number;
  /** Older tips no longer count; those of durable nonces would be asked about for ever. */
  readonly ageMaxMs: number;
}

const defaultLimits: ConfirmationLimits = {
  firstCheckMs: 1_000,
  queryIntervalMaxMs: 120_000,
  observationQueryMs: 700,
  queriesMax: 16,
  watchedMax: 10_000,
  ageMaxMs: 24 * 3_600_000,
  firstAskMs: 20_000,
  askMs: 10_000,
  askAgeShare: 0.25,
  settleMs: 5_000,
  asksMax: 8,
};

/** Where landings are learned from. */
export interface LandingSources {
  readonly landed: LandedTransactions;
  readonly outcomes: LifetimeAnswers;
  readonly observations: ShredObservations | null;
  /** Reads base58; null or undefined: invalid. */
  decode(signature: string): Uint8Array | null | undefined;
  /** Shred-tip addresses of all nodes, base58. */
  addresses(): ReadonlySet<string>;
  /** Reads the addresses of other nodes again; absent: the database is not shared. */
  refreshAddresses?(): Promise<void>;
}

interface LandingConfirmationOptions extends LandingSources {
  readonly clock: Clock;
  /** Wall time of the tiers. */
  wallMs(): number;
  /** Once for each; nothing more is asked about it. */
  ended(tip: SettledTip, result: LandingResult): void;
  failed(error: unknown): void;
}

export interface ConfirmationCounts {
  readonly lifetimes: number;
  readonly watched: number;
  readonly queries: bigint;
}

/** One pending registration; there may be a million of them. */
class PendingTip implements SettledTip {
  readonly signature: string;
  readonly accountId: string;
  readonly lamports: bigint;
  readonly registeredMs: number;
  readonly slot: bigint;
  /** Monotonic. */
  readonly bornMs: number;
  lifetime: Lifetime<PendingTip> | null = null;
  /** To the question after the next one. */
  waitMs: number;
  /** When the first question was asked that found it absent after its lifetime was gone. */
  absentMs: number | null = null;
  /** When the last question was asked that had an answer. */
  answeredMs = Number.NEGATIVE_INFINITY;
  unwatch: (() => void) | null = null;
  isForgotten = false;

  constructor(
    { signature, accountId, lamports, registeredMs, slot }: Registration,
    bornMs: number,
    waitMs: number,
  ) {
    this.signature = signature;
    this.accountId = accountId;
    this.lamports = lamports;
    this.registeredMs = registeredMs;
    this.slot = slot;
    this.bornMs = bornMs;
    this.waitMs = waitMs;
  }
}

/** 24 hours of the shortest slots that the network plans, 200 ms. Longer slots make the bound wider. */
const slotsOfWindow = 432_000n;
/**
 * Twice the slots from a block to its finality. So long after the end of its lifetime, a landing is in the
 * history of every node that has that slot, on each of its forks.
 */
const finalSlots = 64n;
/** They take about this time. */
const finalMs = 25_600;
/** Half of the node's cache, which holds 300 rooted slots: at least 60 s with slots of 200 ms. */
const answerGapMs = 30_000;
const turnMs = 100;

export class LandingConfirmation {
  readonly #options: LandingConfirmationOptions;
  readonly #limits: ConfirmationLimits;
  readonly #lifetimes: Lifetimes<PendingTip>;
  readonly #queries: TimerWheel<PendingTip>;
  readonly #questions: LandingQuestions<PendingTip>;
  readonly #watched = new Set<PendingTip>();
  /** Every shred-tip address so far: a reload takes none from tips that were paid before. */
  readonly #addresses = new Set<string>();
  #currentAddresses: ReadonlySet<string> | null = null;
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(options: LandingConfirmationOptions, limits: Partial<ConfirmationLimits> = {}) {
    this.#options = options;
    this.#limits = { ...defaultLimits, ...limits };
    const { outcomes } = options;
    const nowMs = (): number => this.#nowMs();
    const failed = (error: unknown): void => options.failed(error);
    const gone = (lifetime: Lifetime<PendingTip>): void => this.#checkAll(lifetime);
    this.#queries = new TimerWheel(turnMs, nowMs());
    this.#lifetimes = new Lifetimes({ outcomes, nowMs, onExpired: gone, failed }, this.#limits);
    this.#questions = new LandingQuestions({
      landed: options.landed,
      callsMax: this.#limits.queriesMax,
      nowMs,
      addresses: () => this.#allAddresses(),
      answered: (pending, answer, askedMs) => this.#answered(pending, answer, askedMs),
      failed,
    });
  }

  /** Nothing is asked before. Once. */
  start(): void {
    if (this.#isClosed) return;
    this.#timer = this.#options.clock.every(turnMs, () => this.#turn());
    this.#questions.open();
  }

  /** Nothing ends afterwards. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = null;
    this.#questions.close();
    for (const { unwatch } of this.#watched) unwatch?.();
  }

  /** One that was registered just now, on any node. */
  add(registration: Registration): SettledTip {
    const pending = this.#watch(registration);
    // Asked at once: most tips landed before they are registered, and their shreds are waited for.
    this.#questions.add(pending, true);
    return pending;
  }

  /** One that was registered before this term. */
  resume(registration: Registration): SettledTip {
    const pending = this.#watch(registration);
    this.#queries.set(pending, this.#nowMs());
    return pending;
  }

  /** One that `add` or `resume` returned and that has not ended: another account claimed it. */
  forget(tip: SettledTip): void {
    if (!(tip instanceof PendingTip)) return;
    tip.isForgotten = true;
    this.#queries.delete(tip);
    this.#questions.delete(tip);
    this.#release(tip);
  }

  get counts(): ConfirmationCounts {
    return {
      lifetimes: this.#lifetimes.size,
      watched: this.#watched.size,
      queries: this.#questions.callCount,
    };
  }

  #watch(registration: Registration): PendingTip {
    const { lifetime, nonceAccount, registeredMs } = registration;
    const bornMs = this.#nowMs() - Math.max(0, this.#options.wallMs() - registeredMs);
    const pending = new PendingTip(registration, bornMs, this.#limits.firstCheckMs);
    this.#allAddresses(); // it may have paid one that a reload removes before it is read
    const nonce = nonceAccount && { account: nonceAccount };
    pending.lifetime = this.#lifetimes.join(pending, { lifetime, nonce }, bornMs);
    this.#watchShreds(pending);
    return pending;
  }

  #watchShreds(pending: PendingTip): void {
    const { observations } = this.#options;
    if (!observations || this.#watched.size >= this.#limits.watchedMax) return;
    const signature = this.#options.decode(pending.signature);
    if (!signature) return;
    let isObserved = false;
    try {
      const unwatch = observations.watch(signature, () => {
        isObserved = true;
        this.#observed(pending);
      });
      this.#watched.add(pending);
      pending.unwatch = () => {
        pending.unwatch = null;
        this.#watched.delete(pending);
        unwatch();
      };
      if (isObserved) pending.unwatch(); // notified before there was a way to end it
    } catch {
      // The list is full: the node will answer, later.
    }
  }

  #observed(pending: PendingTip): void {
    pending.unwatch?.();
    pending.waitMs = this.#limits.firstCheckMs;
    if (this.#queries.has(pending)) {
      this.#queries.set(pending, this.#nowMs() + this.#limits.observationQueryMs);
    }
  }

  #checkAll({ members }: Lifetime<PendingTip>): void {
    const nowMs = this.#nowMs();
    for (const pending of members)
      if (this.#queries.has(pending)) this.#queries.set(pending, nowMs);
  }

  #turn(): void {
    const nowMs = this.#nowMs();
    this.#lifetimes.turn(nowMs);
    for (const pending of this.#queries.turn(nowMs)) {
      this.#questions.add(pending, this.#needsHistory(pending, nowMs));
    }
  }

  /** Whether the node's recent blocks may not have its landing any more, or its absence would drop it. */
  #needsHistory({ lifetime, answeredMs, bornMs }: PendingTip, nowMs: number): boolean {
    if (nowMs - answeredMs > answerGapMs || nowMs - bornMs >= this.#limits.ageMaxMs) return true;
    return typeof lifetime?.goneMs === "number";
  }

  async #answered(pending: PendingTip, answer: LandingAnswer, askedMs: number): Promise<void> {
    let result = this.#resultOf(pending, answer, askedMs);
    // Another node may offer an address that this one does not know yet.
    if (result?.state === "dropped" && result.reason === "refunded" && (await this.#mayKnowMore()))
      result = null;
    if (this.#isClosed || pending.isForgotten) return; // if closed, pending again at the next start
    if (result) this.#end(pending, result);
    else this.#scheduleLook(pending, askedMs);
  }

  #resultOf(pending: PendingTip, answer: LandingAnswer, askedMs: number): LandingResult | null {
    const ageMs = askedMs - pending.bornMs;
    const { ageMaxMs } = this.#limits;
    if (answer.kind === "failed") {
      // It could not count any more; twice the time spares what a node could not answer for a while.
      return ageMs >= 2 * ageMaxMs ? { state: "dropped", reason: "expired" } : null;
    }
    pending.answeredMs = askedMs;
    if (answer.kind === "landed") return resultOf(answer.transaction, pending);
    if (answer.kind === "unclear") pending.absentMs = null;
    const isAbsent = answer.kind === "absent" && this.#isAbsent(pending, answer.slot, askedMs);
    return isAbsent || ageMs >= ageMaxMs ? { state: "dropped", reason: "expired" } : null;
  }

  #release(pending: PendingTip): void {
    pending.unwatch?.();
    if (pending.lifetime) this.#lifetimes.leave(pending, pending.lifetime.facts);
  }

  /** True also if the addresses could not be read. */
  async #mayKnowMore(): Promise<boolean> {
    const { size } = this.#allAddresses();
    try {
      await this.#options.refreshAddresses?.();
    } catch (error) {
      this.#options.failed(error);
      return true;
    }
    return this.#allAddresses().size > size;
  }

  /** Whether it can never land. `slot`: of the node that searched its history; null: it did not. */
  #isAbsent(pending: PendingTip, slot: bigint | null, askedMs: number): boolean {
    const { goneMs = null, goneAgainMs = null, goneSlot = 0n } = pending.lifetime ?? {};
    if (goneMs === null || askedMs < goneMs || slot === null || slot < goneSlot) return false;
    if (pending.absentMs === null || pending.absentMs < goneMs) {
      pending.absentMs = askedMs;
      return false;
    }
    if (goneAgainMs === null || askedMs < goneAgainMs) return false;
    return askedMs - pending.absentMs >= this.#limits.settleMs && slot >= goneSlot + finalSlots;
  }

  #scheduleLook(pending: PendingTip, askedMs: number): void {
    const { queryIntervalMaxMs, firstCheckMs, settleMs } = this.#limits;
    const goneMs = pending.lifetime?.goneMs ?? null;
    let { waitMs } = pending;
    if (goneMs !== null && askedMs < goneMs) waitMs = firstCheckMs;
    else if (goneMs !== null) waitMs = pending.absentMs === null ? settleMs : finalMs;
    else if (waitMs >= queryIntervalMaxMs) pending.unwatch?.(); // others land sooner
    pending.waitMs = Math.min(2 * pending.waitMs, queryIntervalMaxMs);
    this.#queries.set(pending, this.#nowMs() + waitMs);
  }

  #end(pending: PendingTip, result: LandingResult): void {
    this.#release(pending);
    this.#options.ended(pending, result);
  }

  #allAddresses(): ReadonlySet<string> {
    const current = this.#options.addresses();
    if (current !== this.#currentAddresses) {
      this.#currentAddresses = current;
      for (const address of current) this.#addresses.add(address);
    }
    return this.#addresses;
  }

  #nowMs(): number {
    return Number(this.#options.clock.monotonicNs() / 1_000_000n);
  }
}

/** The result of a landed transaction. */
function resultOf({ slot, err, gainLamports }: LandedTransaction, tip: PendingTip): LandingResult {
  if (err !== null) return { state: "dropped", reason: "landed_failed" };
  if (gainLamports <= 0n) return { state: "dropped", reason: "refunded" };
  if (slot + slotsOfWindow < tip.slot) return { state: "dropped", reason: "slot_too_old" };
  return { state: "counted", lamports: least(tip.lamports, gainLamports) };
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
