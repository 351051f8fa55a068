// Pending registrations: acknowledged registrations without a result, and the limits of their number.
//
// Composed in app/compose-shreds.ts; lives as long as the service. registrar.ts reserves places and adds
// registrations; tier-leadership.ts switches between the two roles. The leader has all pending
// registrations of all nodes. landing-confirmation.ts confirms landings (without a Solana node, each
// registration counts immediately), and registration-results.ts persists the results. A follower holds
// only the registrations that it accepted itself, until the leader has settled them. A notification of
// another node is only a hint: the store is read to confirm it.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { RareWarning } from "../../core/rare-warning.ts";
import {
  type ConfirmationCounts,
  type ConfirmationLimits,
  LandingConfirmation,
  type LandingSources,
} from "./landing-confirmation.ts";
import { RegistrationResults } from "./registration-results.ts";
import type {
  Registration,
  RegistrationStore,
  SettledTip,
  TierAccounting,
  TipCounting,
} from "./registration-types.ts";

interface CapacityLimits {
  readonly pendingMax: number;
  readonly pendingPerAccountMax: number;
}

export interface PendingRegistrationsOptions {
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "warn">;
  readonly store: Pick<
    RegistrationStore,
    "pending" | "pendingOf" | "onNews" | "settle" | "hasOrder"
  >;
  /** null: no Solana node is queried; tips count as soon as this node knows their registration. */
  readonly sources: LandingSources | null;
  readonly limits?: Partial<CapacityLimits & ConfirmationLimits>;
  /** Called with each persisted result, for the metrics: "counted", or why the tip was dropped. */
  readonly onResult?: (outcome: string) => void;
}

interface PendingCounts extends ConfirmationCounts {
  /** Number of pending registrations that this node knows. */
  readonly pending: number;
  /** Number of places that pending registrations and reservations take. */
  readonly places: number;
  /** Number of failed queries and commits. */
  readonly failures: bigint;
}

/** State from `lead` to `follow`. */
interface Term {
  readonly tiers: TierAccounting;
  /** Pending registrations by signature; each takes one place. */
  readonly pending: Map<string, SettledTip>;
  readonly results: RegistrationResults;
  /** null: no Solana node is queried. */
  readonly confirmation: LandingConfirmation | null;
}

const defaultLimits: CapacityLimits = {
  pendingMax: 1_000_000,
  // About 500 a second during the lifetime of a blockhash.
  pendingPerAccountMax: 50_000,
};
const retryMs = 1000;
/** Repairs a notification that arrived before `add`: it was ignored, because nothing waited for it. */
const sweepMs = 30_000;
const perRead = 2_000;
const warnEveryMs = 60_000;
const noCounts: ConfirmationCounts = { lifetimes: 0, watched: 0, queries: 0n };

export class PendingRegistrations implements TipCounting {
  readonly #options: PendingRegistrationsOptions;
  readonly #limits: CapacityLimits;
  readonly #warning: RareWarning;
  readonly #endNews: () => void;
  /** Places taken: pending registrations and reservations, by account. */
  readonly #places = new Map<string, number>();
  #placesTaken = 0;
  /** null: another node leads. */
  #term: Term | null = null;
  /** The term has read all registrations that were pending before it. */
  #isComplete = false;
  /** Signature -> account of the registrations that take places here and that another node settles. */
  readonly #awaited = new Map<string, string>();
  /** Signatures to read from the store. */
  #notified = new Set<string>();
  /** Notifications may have been missed: read all pending registrations. */
  #hasGap = false;
  #reading: Promise<void> | null = null;
  #timer: Timer | null = null;
  /** Periodic read: nodes are not notified of a registration if it is unknown whether it was persisted. */
  readonly #sweeping: Timer;
  #failures = 0n;
  #isClosed = false;

  constructor(options: PendingRegistrationsOptions) {
    this.#options = options;
    this.#limits = { ...defaultLimits, ...options.limits };
    this.#warning = new RareWarning(options, warnEveryMs);
    this.#endNews = options.store.onNews((signatures) => this.#receive(signatures));
    this.#sweeping = options.clock.every(sweepMs, () => {
      if (this.#term || this.#awaited.size > 0) this.#receive(null);
    });
  }

  /** Set if tips count when they are registered; null: registrations are pending first. */
  get accounting(): TierAccounting | null {
    return this.#isComplete && !this.#options.sources ? (this.#term?.tiers ?? null) : null;
  }

  get counts(): PendingCounts {
    return {
      pending: this.#term?.pending.size ?? this.#awaited.size,
      places: this.#placesTaken,
      failures: this.#failures,
      ...(this.#term?.confirmation?.counts ?? noCounts),
    };
  }

  /** Reserves a place; the caller must call `add` or `release`. False: no place is left. */
  reserve(accountId: string): boolean {
    const own = this.#places.get(accountId) ?? 0;
    const { pendingMax, pendingPerAccountMax } = this.#limits;
    if (this.#placesTaken >= pendingMax || own >= pendingPerAccountMax) return false;
    this.#reserve(accountId);
    return true;
  }

  release(accountId: string): void {
    this.#placesTaken--;
    const left = (this.#places.get(accountId) ?? 1) - 1;
    if (left > 0) this.#places.set(accountId, left);
    else this.#places.delete(accountId);
  }

  /** Adds a persisted pending registration for which a place is reserved. */
  add(registration: Registration): void {
    const { signature, accountId } = registration;
    const term = this.#term;
    if (!term) this.#await(signature, accountId);
    else if (term.pending.has(signature)) this.release(accountId);
    else if (term.confirmation) term.pending.set(signature, term.confirmation.add(registration));
    else this.#count(term, registration, registration.lamports);
  }

  /**
   * Adds a persisted claim of another account's registration, for which a place is reserved. Reads it from
   * the store, because that account's tip may be counted.
   */
  claimed(signature: string, accountId: string): void {
    this.#await(signature, accountId);
    this.#receive([signature]);
  }

  async lead(tiers: TierAccounting): Promise<void> {
    const term = this.#newTerm(tiers);
    this.#term = term; // registrations that arrive during the read belong to the new term, too
    const found = await this.#resumeAll(term);
    if (this.#term !== term) return;
    term.confirmation?.start();
    this.#isComplete = true;
    this.#giveBack([...this.#awaited.keys()]); // no longer pending in the store
    if (found > 0)
      this.#options.log.info(
        { registrations: found },
        "registrations: pending registrations resumed",
      );
  }

  async follow(): Promise<void> {
    const term = this.#term;
    this.#term = null;
    this.#isComplete = false;
    if (!term) return;
    term.confirmation?.close();
    await term.results.close();
    for (const [signature, { accountId }] of term.pending) this.#await(signature, accountId);
    // Notifications of other nodes were ignored while the term ended.
    this.#receive(null);
  }

  /** Stops all reads. The next start resumes the pending registrations. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#endNews();
    this.#sweeping.cancel();
    this.#timer?.cancel();
    this.#timer = null;
    await this.#reading;
    await this.follow();
  }

  #newTerm(tiers: TierAccounting): Term {
    const { clock, store, sources, limits, onResult } = this.#options;
    const failed = (error: unknown): void => this.#failed(error);
    const pending = new Map<string, SettledTip>();
    const ended = (tip: SettledTip): void => {
      if (pending.get(tip.signature) !== tip) return; // claimed meanwhile
      pending.delete(tip.signature);
      this.release(tip.accountId);
    };
    const results = new RegistrationResults({ clock, store, tiers, ended, onResult, failed });
    const confirmation =
      sources &&
      new LandingConfirmation(
        {
          ...sources,
          clock,
          wallMs: () => tiers.nowMs(),
          ended: (tip, ending) => results.end(tip, ending),
          failed,
        },
        limits,
      );
    return { tiers, pending, results, confirmation };
  }

  /** Counts a tip without a query to a Solana node. */
  #count({ pending, results }: Term, registration: Registration, lamports: bigint): void {
    pending.set(registration.signature, registration);
    results.end(registration, { state: "counted", lamports });
  }

  /** Resumes all pending registrations in the store. Returns how many this node did not know. */
  async #resumeAll(term: Term): Promise<number> {
    let found = 0;
    let behind: Registration | null = null;
    for (;;) {
      const page: Registration[] = await this.#options.store.pending(behind, perRead);
      for (const registration of page) if (this.#resume(term, registration)) found++;
      behind = page.at(-1) ?? null;
      if (!behind) return found;
    }
  }

  /**
   * Ignores the limits, because the registrations were acknowledged. False: it is already known, or the
   * term is over. A claim of a counted tip counts at once, because the tip is known to have landed.
   * `isNew`: another node registered it just now, so its landing is asked for at once.
   */
  #resume(term: Term, registration: Registration, isNew = false): boolean {
    const { signature, accountId, lamports, countedLamports } = registration;
    const known = term.pending.get(signature);
    if (this.#term !== term || known?.accountId === accountId) return false;
    if (known) this.#forget(term, known);
    if (!this.#awaited.delete(signature)) this.#reserve(accountId);
    if (countedLamports !== null) this.#count(term, registration, countedLamports);
    else if (!term.confirmation) this.#count(term, registration, lamports);
    else {
      const { confirmation } = term;
      const tip = isNew ? confirmation.add(registration) : confirmation.resume(registration);
      term.pending.set(signature, tip);
    }
    return true;
  }

  /** Another account claimed its tip. */
  #forget({ pending, confirmation }: Term, tip: SettledTip): void {
    pending.delete(tip.signature);
    confirmation?.forget(tip);
    this.release(tip.accountId);
  }

  #reserve(accountId: string): void {
    this.#placesTaken++;
    this.#places.set(accountId, (this.#places.get(accountId) ?? 0) + 1);
  }

  #await(signature: string, accountId: string): void {
    if (this.#awaited.has(signature)) this.release(accountId);
    else this.#awaited.set(signature, accountId);
  }

  #giveBack(signatures: readonly string[]): void {
    for (const signature of signatures) {
      const accountId = this.#awaited.get(signature);
      if (accountId === undefined) continue;
      this.#awaited.delete(signature);
      this.release(accountId);
    }
  }

  #receive(signatures: readonly string[] | null): void {
    if (this.#isClosed) return;
    if (signatures === null) this.#hasGap = true;
    else {
      for (const signature of signatures) {
        if (this.#term || this.#awaited.has(signature)) this.#notified.add(signature);
      }
    }
    if (this.#hasGap || this.#notified.size > 0) this.#read();
  }

  #read(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = null;
      if (this.#hasGap || this.#notified.size > 0) this.#readLater();
    });
  }

  #readLater(): void {
    if (this.#isClosed || this.#reading) return;
    this.#timer ??= this.#options.clock.after(retryMs, () => {
      this.#timer = null;
      this.#read();
    });
  }

  /** Reads until nothing is left or the store fails. Never rejects. */
  async #readAll(): Promise<void> {
    while ((this.#hasGap || this.#notified.size > 0) && !this.#isClosed) {
      const hadMissedNews = this.#hasGap;
      const notified = this.#notified;
      this.#hasGap = false;
      this.#notified = new Set();
      try {
        await (hadMissedNews ? this.#readGap() : this.#readThese([...notified]));
      } catch (error) {
        this.#hasGap ||= hadMissedNews;
        for (const signature of notified) this.#notified.add(signature);
        this.#options.log.warn(
          `registrations: reading the store failed: ${messageOf(error)}; retrying`,
        );
        return;
      }
    }
  }

  async #readThese(signatures: readonly string[]): Promise<void> {
    const pending = await this.#options.store.pendingOf(signatures);
    if (this.#term) {
      for (const registration of pending) this.#resume(this.#term, registration, true);
      this.#giveBack(signatures); // settled, or known before
      return;
    }
    const left = new Set(pending.map(({ signature }) => signature));
    this.#giveBack(signatures.filter((signature) => !left.has(signature)));
  }

  async #readGap(): Promise<void> {
    if (this.#term) {
      await this.#resumeAll(this.#term);
      return;
    }
    // Only these signatures can be released: later ones may have been registered during the read.
    const gone = new Set(this.#awaited.keys());
    let behind: Registration | null = null;
    while (gone.size > 0) {
      const page: Registration[] = await this.#options.store.pending(behind, perRead);
      for (const { signature } of page) gone.delete(signature);
      behind = page.at(-1) ?? null;
      if (!behind) break;
    }
    if (!this.#term) this.#giveBack([...gone]);
  }

  #failed(error: unknown): void {
    this.#failures++;
    this.#warning.give(
      () => `registrations: ${messageOf(error)}; retrying, ${this.counts.pending} pending`,
    );
  }
}
