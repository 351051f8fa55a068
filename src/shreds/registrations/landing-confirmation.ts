// Landing confirmation: did the transaction of a pending registration land, and what did it pay?
//
// Made by pending-registrations.ts for each term in which this node leads; asks the node about each
// pending registration soon, then in growing steps. The relay's own shreds only hurry the question.
// Counted: landed at "confirmed" without error, and the addresses gained. Dropped: it failed, they gained
// nothing, or it is absent although its lifetime is gone (found so twice, and absent after each). Failed
// answers change nothing. Memory and questions are bounded, and accounts take turns.

import type { Clock, Timer } from "../../core/clock.ts";
import { TimerWheel } from "../../core/timer-wheel.ts";
import {
  type Lifetime,
  type LifetimeAnswers,
  type LifetimeLimits,
  Lifetimes,
} from "../../core/transactions/lifetimes.ts";
import { FairQueue } from "./fair-queue.ts";
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
  /** Questions under way at once. */
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
const turnMs = 100;

export class LandingConfirmation {
  readonly #options: LandingConfirmationOptions;
  readonly #limits: ConfirmationLimits;
  readonly #lifetimes: Lifetimes<PendingTip>;
  readonly #queries: TimerWheel<PendingTip>;
  /** Due. */
  readonly #queue = new FairQueue<PendingTip>();
  readonly #watched = new Set<PendingTip>();
  /** Every shred-tip address so far: a reload takes none from tips that were paid before. */
  readonly #addresses = new Set<string>();
  #currentAddresses: ReadonlySet<string> | null = null;
  #looksUnderWay = 0;
  #lookCount = 0n;
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
  }

  /** Nothing is asked before. Once. */
  start(): void {
    if (!this.#isClosed) this.#timer = this.#options.clock.every(turnMs, () => this.#turn());
  }

  /** Nothing ends afterwards. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = null;
    for (const { unwatch } of this.#watched) unwatch?.();
  }

  /** One that was registered just now, on any node. */
  add(registration: Registration): SettledTip {
    const pending = this.#watch(registration);
    // Asked at once: most tips landed before they are registered, and their shreds are waited for.
    this.#queue.add(pending);
    this.#ask();
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
    this.#queue.delete(tip);
    this.#release(tip);
  }

  get counts(): ConfirmationCounts {
    return {
      lifetimes: this.#lifetimes.size,
      watched: this.#watched.size,
      queries: this.#lookCount,
    };
  }

  #watch(registration: Registration): PendingTip {
    const { lifetime, nonceAccount, registeredMs } = registration;
    const bornMs = this.#nowMs() - Math.max(0, this.#options.wallMs() - registeredMs);
    const pending = new PendingTip(registration, bornMs, this.#limits.firstCheckMs);
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
    for (const pending of this.#queries.turn(nowMs)) this.#queue.add(pending);
    this.#ask();
  }

  #ask(): void {
    while (this.#timer && this.#looksUnderWay < this.#limits.queriesMax) {
      const pending = this.#queue.take();
      if (!pending) return;
      void this.#poll(pending);
    }
  }

  async #poll(pending: PendingTip): Promise<void> {
    this.#looksUnderWay++;
    this.#lookCount++;
    const askedMs = this.#nowMs();
    let result: LandingResult | null = null;
    try {
      const { signature } = pending;
      const answer = await this.#options.landed.landedTransaction(signature, this.#allAddresses());
      result = answer ? resultOf(answer, pending) : this.#absent(pending, askedMs);
      // Another node may offer an address that this one does not know yet.
      if (result?.state === "dropped" && result.reason === "refunded" && (await this.#knowsMore()))
        result = null;
    } catch (error) {
      this.#options.failed(error);
      // It could not count any more; twice the time spares what a node could not answer for a while.
      const isOver = askedMs - pending.bornMs >= 2 * this.#limits.ageMaxMs;
      if (isOver) result = { state: "dropped", reason: "expired" };
    }
    this.#looksUnderWay--;
    if (this.#isClosed) return; // pending again at the next start
    if (result && !pending.isForgotten) this.#end(pending, result);
    else if (!pending.isForgotten) this.#scheduleLook(pending);
    this.#ask();
  }

  #release(pending: PendingTip): void {
    pending.unwatch?.();
    if (pending.lifetime) this.#lifetimes.leave(pending, pending.lifetime.facts);
  }

  async #knowsMore(): Promise<boolean> {
    const { size } = this.#allAddresses();
    await this.#options.refreshAddresses?.();
    return this.#allAddresses().size > size;
  }

  #absent(pending: PendingTip, askedMs: number): LandingResult | null {
    const { ageMaxMs, settleMs } = this.#limits;
    const expired: LandingResult = { state: "dropped", reason: "expired" };
    if (askedMs - pending.bornMs >= ageMaxMs) return expired;
    const { goneMs = null, goneAgainMs = null } = pending.lifetime ?? {};
    if (goneMs === null || askedMs < goneMs) return null;
    if (pending.absentMs === null || pending.absentMs < goneMs) {
      pending.absentMs = askedMs;
      return null;
    }
    const isSettled = askedMs - pending.absentMs >= settleMs;
    return goneAgainMs !== null && askedMs >= goneAgainMs && isSettled ? expired : null;
  }

  #scheduleLook(pending: PendingTip): void {
    const { queryIntervalMaxMs, firstCheckMs, settleMs } = this.#limits;
    let { waitMs } = pending;
    if (typeof pending.lifetime?.goneMs === "number") {
      waitMs = pending.absentMs === null ? firstCheckMs : settleMs;
    } else if (waitMs >= queryIntervalMaxMs) {
      pending.unwatch?.(); // others land sooner
    }
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
