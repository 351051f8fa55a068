// Pending registrations: which acknowledged registrations wait for their result, and is there room for more?
//
// Composed in app/compose-shreds.ts; lives as long as the service. registrar.ts reserves places and adds
// registrations; tier-leadership.ts switches between the two roles. The leader has all pending
// registrations of all nodes: landing-confirmation.ts finds out what has landed (where no node is asked,
// each counts as soon as it is known), registration-results.ts persists the result. A follower remembers
// only those that took places here, until the store says that the leader settled them. News of other
// nodes are no more than a hint: the store is read for it.

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
import { RegistrationResults, type SettledTip } from "./registration-results.ts";
import type {
  Registration,
  RegistrationStore,
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
  readonly store: Pick<RegistrationStore, "pending" | "pendingOf" | "onNews" | "settle">;
  /** null: no node is asked; tips count when they are registered, or as soon as they are known here. */
  readonly sources: LandingSources | null;
  readonly limits?: Partial<CapacityLimits & ConfirmationLimits>;
  /** Called with each persisted result, for the metrics: "counted", or why the tip was dropped. */
  readonly onResult?: (outcome: string) => void;
}

interface PendingCounts extends ConfirmationCounts {
  /** Pending registrations that this node knows. */
  readonly pending: number;
  /** Places that they and the reservations take. */
  readonly places: number;
  /** Questions and commits that failed. */
  readonly failures: bigint;
}

/** From `lead` to `follow`. */
interface Term {
  readonly tiers: TierAccounting;
  /** By signature; each has a place. */
  readonly pending: Map<string, SettledTip>;
  readonly results: RegistrationResults;
  /** null: no node is asked. */
  readonly confirmation: LandingConfirmation | null;
}

const defaultLimits: CapacityLimits = {
  pendingMax: 1_000_000,
  // At 500 a second, so long as a blockhash lives.
  pendingPerAccountMax: 50_000,
};
const againMs = 1000;
/** News of a settlement may come before the answer to its registration: then nothing waits for it yet. */
const sweepMs = 30_000;
const perRead = 2_000;
const warnEveryMs = 60_000;
const noCounts: ConfirmationCounts = { lifetimes: 0, watched: 0, looks: 0n };

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
  /** The term has everything that was pending before it. */
  #isComplete = false;
  /** Signature -> account; have places here, and another node settles them. */
  readonly #awaited = new Map<string, string>();
  /** Signatures to read. */
  #notified = new Set<string>();
  /** Everything has to be read. */
  #hasGap = false;
  #reading: Promise<void> | null = null;
  #timer: Timer | null = null;
  /** No node is notified of a registration of which it is unknown whether it was persisted. */
  readonly #sweeping: Timer;
  #failures = 0n;
  #isClosed = false;

  constructor(options: PendingRegistrationsOptions) {
    this.#options = options;
    this.#limits = { ...defaultLimits, ...options.limits };
    this.#warning = new RareWarning(options, warnEveryMs);
    this.#endNews = options.store.onNews((signatures) => this.#hear(signatures));
    this.#sweeping = options.clock.every(sweepMs, () => {
      if (this.#term || this.#awaited.size > 0) this.#hear(null);
    });
  }

  /** Counts tips when they are registered; null: they are pending first. */
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

  /** A place for one more of the account, to be followed by `add` or `release`. False: none is left. */
  reserve(accountId: string): boolean {
    const own = this.#places.get(accountId) ?? 0;
    const { pendingMax, pendingPerAccountMax } = this.#limits;
    if (this.#placesTaken >= pendingMax || own >= pendingPerAccountMax) return false;
    this.#takePlace(accountId);
    return true;
  }

  release(accountId: string): void {
    this.#placesTaken--;
    const left = (this.#places.get(accountId) ?? 1) - 1;
    if (left > 0) this.#places.set(accountId, left);
    else this.#places.delete(accountId);
  }

  /** A pending registration that is persisted, for which there is a place. */
  add(registration: Registration): void {
    const { signature, accountId } = registration;
    const term = this.#term;
    if (!term) this.#await(signature, accountId);
    else if (term.pending.has(signature)) this.release(accountId);
    else if (term.confirmation) term.pending.set(signature, term.confirmation.add(registration));
    else this.#count(term, registration);
  }

  async lead(tiers: TierAccounting): Promise<void> {
    const term = this.#newTerm(tiers);
    this.#term = term; // what is registered meanwhile belongs to it, too
    const found = await this.#resumeAll(term);
    if (this.#term !== term) return;
    term.confirmation?.start();
    this.#isComplete = true;
    this.#giveBack([...this.#awaited.keys()]); // settled since
    if (found > 0) this.#options.log.info({ registrations: found }, "pending tips taken up");
  }

  async follow(): Promise<void> {
    const term = this.#term;
    this.#term = null;
    this.#isComplete = false;
    if (!term) return;
    term.confirmation?.close();
    await term.results.close();
    for (const [signature, { accountId }] of term.pending) this.#await(signature, accountId);
    // Settled by another node while the term ended: its news were not looked at.
    this.#hear(null);
  }

  /** Nothing is read afterwards. What is pending is resumed by the next start. */
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
    const ended = ({ signature, accountId }: SettledTip): void => {
      pending.delete(signature);
      this.release(accountId);
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

  /** Where no node is asked. */
  #count({ pending, results }: Term, registration: Registration): void {
    pending.set(registration.signature, registration);
    results.end(registration, { state: "counted", lamports: registration.lamports });
  }

  /** What an earlier process left pending, and other nodes registered. Returns how many were unknown. */
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
   * More than there is room for are resumed all the same: they were acknowledged. False: it is known, or
   * the term is over.
   */
  #resume(term: Term, registration: Registration): boolean {
    const { signature, accountId } = registration;
    if (this.#term !== term || term.pending.has(signature)) return false;
    if (!this.#awaited.delete(signature)) this.#takePlace(accountId);
    if (term.confirmation) term.pending.set(signature, term.confirmation.resume(registration));
    else this.#count(term, registration);
    return true;
  }

  #takePlace(accountId: string): void {
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

  #hear(signatures: readonly string[] | null): void {
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
    this.#timer ??= this.#options.clock.after(againMs, () => {
      this.#timer = null;
      this.#read();
    });
  }

  /** Until nothing is left to read, or the store failed. Never rejects. */
  async #readAll(): Promise<void> {
    while ((this.#hasGap || this.#notified.size > 0) && !this.#isClosed) {
      const hadGap = this.#hasGap;
      const notified = this.#notified;
      this.#hasGap = false;
      this.#notified = new Set();
      try {
        await (hadGap ? this.#readGap() : this.#readThese([...notified]));
      } catch (error) {
        this.#hasGap ||= hadGap;
        for (const signature of notified) this.#notified.add(signature);
        this.#options.log.warn(`registrations of other nodes: ${messageOf(error)}; tried again`);
        return;
      }
    }
  }

  async #readThese(signatures: readonly string[]): Promise<void> {
    const pending = await this.#options.store.pendingOf(signatures);
    if (this.#term) {
      for (const registration of pending) this.#resume(this.#term, registration);
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
    // Only those: the others may have been registered since.
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
      () => `registrations: ${messageOf(error)}; tried again, ${this.counts.pending} are pending`,
    );
  }
}
