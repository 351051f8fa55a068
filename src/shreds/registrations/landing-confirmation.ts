// Registration watch: what became of tips that were registered and had not landed yet?
//
// Made by registration-seat.ts for each term in which this node counts. Told of each pending
// registration by registrar.ts, and by the store of those of an earlier process and of other nodes.
// Asks the node about each soon, then in growing steps; a sight in the relay's own shreds hurries the
// question and is no answer. Counted: landed at "confirmed" without error, and the addresses gained.
// Dropped: it failed, they gained nothing, or it is absent although its lifetime is gone (found so
// twice, and absent after each). Answers that fail change nothing. Memory and questions are bounded,
// and accounts take turns.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { RareWarning } from "../../core/rare-warning.ts";
import { TimerWheel } from "../../core/timer-wheel.ts";
import {
  type Lifetime,
  type LifetimeAnswers,
  type LifetimeLimits,
  Lifetimes,
} from "../../core/transactions/lifetimes.ts";
import { FairQueue } from "./fair-queue.ts";
import { PendingCapacity, type PlaceLimits } from "./pending-capacity.ts";
import { type Ending, RegistrationResults, type SettledTip } from "./registration-results.ts";
import type { LandedTransactions, Registration, RegistrationStore } from "./registration-types.ts";
import type { TipBook } from "./tier-accounting.ts";

/** First sights in the relay's own shreds; see Sights of submission/types.ts. */
interface TipSights {
  /** Throws when the list is full. */
  watch(signature: Uint8Array, listener: (sight: { readonly slot: bigint }) => void): () => void;
}

export interface RegistrationWatchLimits extends LifetimeLimits, PlaceLimits {
  /** From the first question, at once, to the second; each next one after twice the time. */
  readonly firstLookMs: number;
  readonly lookMaxMs: number;
  /** From a sight to the next question: blocks are confirmed a moment after their shreds. */
  readonly sightLookMs: number;
  /** Questions under way at once. */
  readonly looksMax: number;
  /** Signatures looked for in shreds: the list is shared with submissions. */
  readonly sightsMax: number;
  /** Older ones count for nothing any more; those of durable nonces would be watched for ever. */
  readonly ageMaxMs: number;
}

export const defaultWatchLimits: RegistrationWatchLimits = {
  firstLookMs: 1_000,
  lookMaxMs: 120_000,
  sightLookMs: 700,
  looksMax: 16,
  sightsMax: 10_000,
  ageMaxMs: 24 * 3_600_000,
  pendingMax: 1_000_000,
  // At 500 a second, so long as a blockhash lives.
  pendingPerAccountMax: 50_000,
  firstAskMs: 20_000,
  askMs: 10_000,
  askAgeShare: 0.25,
  settleMs: 5_000,
  asksMax: 8,
};

export interface LandingConfirmationDependencies {
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  readonly store: Pick<RegistrationStore, "pending" | "settle">;
  readonly tiers: TipBook;
  /** This node's; absent: its own. */
  readonly places?: PendingCapacity;
  /** See RegistrationResultsParts. */
  readonly settled?: ((outcome: string) => void) | undefined;
  readonly landed: LandedTransactions;
  readonly outcomes: LifetimeAnswers;
  readonly sights: TipSights | null;
  /** Base58; nothing when it is none. */
  decode(signature: string): Uint8Array | null | undefined;
  /** Shred-tip addresses of now, base58. */
  addresses(): ReadonlySet<string>;
}

interface RegistrationWatchCounts {
  readonly pending: number;
  readonly lifetimes: number;
  readonly sighted: number;
  readonly looks: bigint;
  readonly failures: bigint;
}

/** One pending registration; there may be a million of them. */
class Pending implements SettledTip {
  readonly signature: string;
  readonly accountId: string;
  readonly lamports: bigint;
  readonly registeredMs: number;
  readonly slot: bigint;
  /** Monotonic. */
  readonly bornMs: number;
  lifetime: Lifetime<Pending> | null = null;
  /** To the question after the next one. */
  waitMs: number;
  /** When the first question was asked that found it absent after its lifetime was gone. */
  absentMs: number | null = null;
  unwatch: (() => void) | null = null;

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

/** No 24 hours hold more. */
const slotsOfWindow = 288_000n;
const turnMs = 100;
const restoredAtOnce = 2_000;
const warnEveryMs = 60_000;

export class LandingConfirmation {
  readonly #parts: LandingConfirmationDependencies;
  readonly #warning: RareWarning;
  readonly #limits: RegistrationWatchLimits;
  readonly #settlements: RegistrationResults<Pending>;
  readonly #lifetimes: Lifetimes<Pending>;
  readonly #looks: TimerWheel<Pending>;
  /** Due. */
  readonly #queue = new FairQueue<Pending>();
  readonly #pending = new Map<string, Pending>();
  readonly #places: PendingCapacity;
  /** Every shred-tip address so far: a reload takes none from tips that were paid before. */
  readonly #addresses = new Set<string>();
  #addressesOfNow: ReadonlySet<string> | null = null;
  #looksUnderWay = 0;
  #sighted = 0;
  #lookCount = 0n;
  #failures = 0n;
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(
    parts: LandingConfirmationDependencies,
    limits: Partial<RegistrationWatchLimits> = {},
  ) {
    this.#parts = parts;
    this.#warning = new RareWarning(parts, warnEveryMs);
    this.#limits = { ...defaultWatchLimits, ...limits };
    this.#places = parts.places ?? new PendingCapacity(this.#limits);
    const nowMs = (): number => this.#nowMs();
    const failed = (error: unknown): void => this.#failed(error);
    const { store, tiers, outcomes, settled } = parts;
    this.#looks = new TimerWheel(turnMs, nowMs());
    const ended = (tip: Pending): void => this.#forget(tip);
    this.#settlements = new RegistrationResults({ store, tiers, nowMs, ended, failed, settled });
    const gone = (lifetime: Lifetime<Pending>): void => this.#lookAtAll(lifetime);
    this.#lifetimes = new Lifetimes({ outcomes, nowMs, gone, failed }, this.#limits);
  }

  /**
   * Takes up what an earlier process left pending, and other nodes registered. Returns how many; rejects
   * with "store_failed". Again: those that it does not know.
   */
  async start(): Promise<number> {
    const { clock, store } = this.#parts;
    let restored = 0;
    let behind: Registration | null = null;
    for (;;) {
      const page: Registration[] = await store.pending(behind, restoredAtOnce);
      for (const registration of page) if (this.take(registration)) restored++;
      behind = page.at(-1) ?? null;
      if (!behind) break;
    }
    if (!this.#isClosed) this.#timer ??= clock.every(turnMs, () => this.#turn());
    return restored;
  }

  /** Settles when what is being kept is kept. Whatever is pending is taken up by the next start. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = null;
    for (const { unwatch } of this.#pending.values()) unwatch?.();
    await this.#settlements.stop();
  }

  /** See PendingCapacity; to be followed by `add` or `release`. */
  reserve(accountId: string): boolean {
    return this.#places.reserve(accountId);
  }

  release(accountId: string): void {
    this.#places.release(accountId);
  }

  /** A pending registration that is kept, for which there is a place. */
  add(registration: Registration): void {
    if (this.#pending.has(registration.signature)) {
      this.release(registration.accountId);
      return;
    }
    // Asked at once: most tips landed before they are registered, and their shreds are waited for.
    this.#queue.add(this.#watch(registration));
    this.#ask();
  }

  /**
   * A pending one that was registered elsewhere, or before. More than there is room for are taken all
   * the same: they were acknowledged. False: it is known.
   */
  take(registration: Registration): boolean {
    if (this.#isClosed || this.#pending.has(registration.signature)) return false;
    this.#places.take(registration.accountId);
    this.#looks.set(this.#watch(registration), this.#nowMs());
    return true;
  }

  /** What is pending, with its account: each has a place. */
  *pending(): Iterable<readonly [signature: string, accountId: string]> {
    for (const { signature, accountId } of this.#pending.values()) yield [signature, accountId];
  }

  get counts(): RegistrationWatchCounts {
    return {
      pending: this.#pending.size,
      lifetimes: this.#lifetimes.size,
      sighted: this.#sighted,
      looks: this.#lookCount,
      failures: this.#failures,
    };
  }

  #watch(registration: Registration): Pending {
    const { tiers } = this.#parts;
    const { signature, lifetime, nonceAccount, registeredMs } = registration;
    const bornMs = this.#nowMs() - Math.max(0, tiers.nowMs() - registeredMs);
    const pending = new Pending(registration, bornMs, this.#limits.firstLookMs);
    this.#pending.set(signature, pending);
    const nonce = nonceAccount && { account: nonceAccount };
    pending.lifetime = this.#lifetimes.join(pending, { lifetime, nonce }, bornMs);
    this.#watchShreds(pending);
    return pending;
  }

  #watchShreds(pending: Pending): void {
    const { sights } = this.#parts;
    if (!sights || this.#sighted >= this.#limits.sightsMax) return;
    const signature = this.#parts.decode(pending.signature);
    if (!signature) return;
    let isSeen = false;
    try {
      const unwatch = sights.watch(signature, () => {
        isSeen = true;
        this.#seen(pending);
      });
      this.#sighted++;
      pending.unwatch = () => {
        pending.unwatch = null;
        this.#sighted--;
        unwatch();
      };
      if (isSeen) pending.unwatch(); // told before there was a way to end it
    } catch {
      // The list is full: the node will tell, later.
    }
  }

  #seen(pending: Pending): void {
    pending.unwatch?.();
    pending.waitMs = this.#limits.firstLookMs;
    if (this.#looks.has(pending)) {
      this.#looks.set(pending, this.#nowMs() + this.#limits.sightLookMs);
    }
  }

  #lookAtAll({ members }: Lifetime<Pending>): void {
    const nowMs = this.#nowMs();
    for (const pending of members) if (this.#looks.has(pending)) this.#looks.set(pending, nowMs);
  }

  #turn(): void {
    const nowMs = this.#nowMs();
    this.#settlements.turn(nowMs);
    this.#lifetimes.turn(nowMs);
    for (const pending of this.#looks.turn(nowMs)) this.#queue.add(pending);
    this.#ask();
  }

  #ask(): void {
    while (this.#timer && this.#looksUnderWay < this.#limits.looksMax) {
      const pending = this.#queue.take();
      if (!pending) return;
      void this.#look(pending);
    }
  }

  async #look(pending: Pending): Promise<void> {
    this.#looksUnderWay++;
    this.#lookCount++;
    const askedMs = this.#nowMs();
    let ending: Ending | null = null;
    try {
      const { signature } = pending;
      const answer = await this.#parts.landed.landedTransaction(signature, this.#allAddresses());
      if (answer === null) ending = this.#absent(pending, askedMs);
      else if (answer.err !== null) ending = { state: "dropped", reason: "landed_failed" };
      else if (answer.gainLamports <= 0n) ending = { state: "dropped", reason: "refunded" };
      else if (answer.slot + slotsOfWindow < pending.slot) {
        ending = { state: "dropped", reason: "slot_too_old" };
      } else ending = { state: "counted", lamports: least(pending.lamports, answer.gainLamports) };
    } catch (error) {
      this.#failed(error);
      // It could not count any more; twice the time spares what a node could not tell for a while.
      const isOver = askedMs - pending.bornMs >= 2 * this.#limits.ageMaxMs;
      if (isOver) ending = { state: "dropped", reason: "expired" };
    }
    this.#looksUnderWay--;
    if (this.#isClosed) return; // pending again at the next start
    if (ending) this.#end(pending, ending);
    else this.#lookAgain(pending);
    this.#ask();
  }

  #absent(pending: Pending, askedMs: number): Ending | null {
    const { ageMaxMs, settleMs } = this.#limits;
    const expired: Ending = { state: "dropped", reason: "expired" };
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

  #lookAgain(pending: Pending): void {
    const { lookMaxMs, firstLookMs, settleMs } = this.#limits;
    let { waitMs } = pending;
    if (typeof pending.lifetime?.goneMs === "number") {
      waitMs = pending.absentMs === null ? firstLookMs : settleMs;
    } else if (waitMs >= lookMaxMs) {
      pending.unwatch?.(); // others land sooner
    }
    pending.waitMs = Math.min(2 * pending.waitMs, lookMaxMs);
    this.#looks.set(pending, this.#nowMs() + waitMs);
  }

  #end(pending: Pending, ending: Ending): void {
    pending.unwatch?.();
    if (pending.lifetime) this.#lifetimes.leave(pending, pending.lifetime.facts);
    this.#settlements.end(pending, ending);
  }

  #forget(pending: Pending): void {
    this.#pending.delete(pending.signature);
    this.release(pending.accountId);
  }

  #allAddresses(): ReadonlySet<string> {
    const ofNow = this.#parts.addresses();
    if (ofNow !== this.#addressesOfNow) {
      this.#addressesOfNow = ofNow;
      for (const address of ofNow) this.#addresses.add(address);
    }
    return this.#addresses;
  }

  #failed(error: unknown): void {
    this.#failures++;
    this.#warning.give(
      () => `registrations: ${messageOf(error)}; tried again, ${this.#pending.size} are pending`,
    );
  }

  #nowMs(): number {
    return Number(this.#parts.clock.monotonicNs() / 1_000_000n);
  }
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
