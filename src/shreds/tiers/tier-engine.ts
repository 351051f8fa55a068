// Tier engine: computes the tier of an account from its tips.
//
// Pure: leader-tiers.ts passes tips and the time in order. Within one millisecond, expiries come first,
// then ends of grace periods, then counted tips. An account gets the highest tier whose threshold its
// sum reaches, immediately and at equality. Below the threshold of its tier, a grace period runs until
// the sum recovers. At its end the tier falls by one. If the sum is also below the lower tier's
// threshold, that tier's grace period begins at the same time. An account therefore never has two. A tip
// that the payer assigned to another account leaves the sum without a grace period.

import { type GraceEntry, GracePeriodQueue } from "./grace-period-queue.ts";
import type {
  CountedTip,
  TierEvent,
  TierEventKind,
  TierRules,
  TierState,
  TierStore,
  TierView,
} from "./types.ts";

/** The stored state of the tiers, from which an engine continues. */
type TierStart = NonNullable<Awaited<ReturnType<TierStore["load"]>>>;

interface Account {
  readonly accountId: string;
  /** Index of its tier in the rules; -1: none. */
  level: number;
  sum: bigint;
  grace: GraceEntry<Account> | null;
  eventCount: bigint;
}

export class TierEngine {
  #rules: TierRules;
  readonly #accounts = new Map<string, Account>();
  readonly #graces = new GracePeriodQueue<Account>();
  readonly #changed = new Set<Account>();
  #events: TierEvent[] = [];
  #evaluatedMs: number;

  /**
   * Adapts states to changed rules at `evaluatedMs`: a removed tier becomes the one that the sum
   * reaches.
   */
  constructor(rules: TierRules, start: Pick<TierStart, "evaluatedMs" | "states">) {
    this.#rules = rules;
    this.#evaluatedMs = start.evaluatedMs;
    const states = start.states.toSorted((a, b) => (a.graceSinceMs ?? 0) - (b.graceSinceMs ?? 0));
    for (const state of states) this.#restore(state);
    for (const { accountId, tier } of states) this.#reconsider(accountId, tier);
  }

  /** All ends of grace periods up to here are applied, and all passed expiries. */
  get evaluatedMs(): number {
    return this.#evaluatedMs;
  }

  /** null: no grace period. */
  get nextGraceEndMs(): number | null {
    const first = this.#graces.first;
    return first && first.sinceMs + this.#rules.graceMs;
  }

  /** Whether `takeStates` returns it. */
  get hasChanged(): boolean {
    return this.#changed.size > 0;
  }

  view(accountId: string): TierView {
    const account = this.#accounts.get(accountId);
    const graceSinceMs = account?.grace?.sinceMs ?? null;
    return {
      tier: account ? this.#nameOf(account.level) : null,
      sumLamports: account?.sum ?? 0n,
      graceSinceMs,
      graceEndsMs: graceSinceMs === null ? null : graceSinceMs + this.#rules.graceMs,
    };
  }

  /** Every account that has a tier. */
  *tiers(): Iterable<readonly [accountId: string, tier: string]> {
    for (const { accountId, level } of this.#accounts.values()) {
      const tier = this.#nameOf(level);
      if (tier !== null) yield [accountId, tier];
    }
  }

  /**
   * Applies ends of grace periods up to `atMs`, then the tip. False: its window is over, so it changes
   * nothing; otherwise the caller must call `leave` at registeredMs + window.
   */
  count(tip: Pick<CountedTip, "accountId" | "lamports" | "registeredMs">, atMs: number): boolean {
    this.advance(atMs);
    if (tip.registeredMs + this.#rules.windowMs <= atMs) return false;
    const account = this.#accountOf(tip.accountId);
    account.sum += tip.lamports;
    this.#changed.add(account);
    this.#rise(account, atMs);
    return true;
  }

  /**
   * Applies ends of grace periods before `atMs`, then the tip's expiry. False: the sum was smaller,
   * which is a bug, and is 0 now.
   */
  leave(accountId: string, lamports: bigint, atMs: number): boolean {
    if (atMs <= this.#evaluatedMs) {
      throw new RangeError(`expected an expiry after ${this.#evaluatedMs} ms, got one at ${atMs}`);
    }
    this.advance(atMs - 1);
    const account = this.#accountOf(accountId);
    const isHeld = account.sum >= lamports;
    account.sum = isHeld ? account.sum - lamports : 0n;
    this.#changed.add(account);
    this.#sink(account, atMs);
    return isHeld;
  }

  /**
   * Takes a tip that another account claimed out of the sum, at the last evaluated time. If that brings
   * the sum below the threshold of the tier, the tier falls at once to the one that the sum reaches; a
   * grace period that was running continues. False: the sum was smaller, which is a bug, and is 0 now.
   */
  withdraw(accountId: string, lamports: bigint): boolean {
    const account = this.#accountOf(accountId);
    const isHeld = account.sum >= lamports;
    account.sum = isHeld ? account.sum - lamports : 0n;
    const from = account.level;
    if (!account.grace) account.level = Math.min(from, this.#reached(account.sum));
    this.#recordChange(account, "tip_claimed", from, this.#evaluatedMs);
    return isHeld;
  }

  /** Applies ends of grace periods up to `toMs`, inclusive. */
  advance(toMs: number): void {
    if (toMs < this.#evaluatedMs) {
      throw new RangeError(`expected a time of ${this.#evaluatedMs} ms or later, got ${toMs}`);
    }
    for (;;) {
      const index = this.#graces.first;
      if (!index) break;
      const endMs = index.sinceMs + this.#rules.graceMs;
      if (endMs > toMs) break;
      this.#downgrade(index.member, endMs);
    }
    this.#evaluatedMs = toMs;
  }

  /**
   * Applies changed rules from the last evaluated time on: a removed tier becomes the one that the sum
   * reaches.
   */
  adopt(rules: TierRules): void {
    const accounts = Array.from(this.#accounts.values(), (account) => ({
      account,
      tier: this.#nameOf(account.level),
    }));
    this.#rules = rules;
    for (const { account, tier } of accounts) {
      account.level = rules.tiers.findIndex(({ name }) => name === tier);
      if (account.level < 0) this.#endGrace(account);
    }
    for (const { account, tier } of accounts) this.#reconsider(account.accountId, tier);
  }

  /** Events since the last call, in order. */
  takeEvents(): TierEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** States that changed since the last call. */
  takeStates(): TierState[] {
    const states = Array.from(this.#changed, (account) => ({
      accountId: account.accountId,
      tier: this.#nameOf(account.level),
      graceSinceMs: account.grace?.sinceMs ?? null,
      sumLamports: account.sum,
      eventCount: account.eventCount,
    }));
    this.#changed.clear();
    return states;
  }

  #rise(account: Account, atMs: number): void {
    if (account.grace && account.sum >= this.#thresholdOf(account.level)) {
      this.#endGrace(account);
      this.#recordChange(account, "grace_cancelled", account.level, atMs);
    }
    const reached = this.#reached(account.sum);
    if (reached <= account.level) return;
    const from = account.level;
    account.level = reached;
    this.#recordChange(account, "upgraded", from, atMs);
  }

  #sink(account: Account, atMs: number): void {
    if (account.grace || account.level < 0) return;
    if (account.sum >= this.#thresholdOf(account.level)) return;
    account.grace = this.#graces.enter(account, atMs);
    this.#recordChange(account, "grace_started", account.level, atMs);
  }

  #downgrade(account: Account, atMs: number): void {
    this.#endGrace(account);
    this.#changed.add(account);
    const from = account.level--;
    this.#recordChange(account, "downgraded", from, atMs);
    this.#sink(account, atMs);
  }

  #endGrace(account: Account): void {
    if (account.grace) this.#graces.leave(account.grace);
    account.grace = null;
  }

  #recordChange(account: Account, kind: TierEventKind, fromLevel: number, atMs: number): void {
    this.#record(account, kind, this.#nameOf(fromLevel), atMs);
  }

  #record(account: Account, kind: TierEventKind, from: string | null, atMs: number): void {
    this.#changed.add(account);
    this.#events.push({
      accountId: account.accountId,
      number: ++account.eventCount,
      atMs,
      kind,
      from,
      to: this.#nameOf(account.level),
      sumLamports: account.sum,
    });
  }

  #restore(state: TierState): void {
    const account = this.#accountOf(state.accountId);
    account.level = this.#rules.tiers.findIndex(({ name }) => name === state.tier);
    account.sum = state.sumLamports;
    account.eventCount = state.eventCount;
    if (account.level >= 0 && state.graceSinceMs !== null) {
      account.grace = this.#graces.enter(account, state.graceSinceMs);
    }
  }

  #reconsider(accountId: string, tier: string | null): void {
    const account = this.#accountOf(accountId);
    if (tier !== null && account.level < 0) {
      account.level = this.#reached(account.sum);
      this.#record(account, "downgraded", tier, this.#evaluatedMs);
      return;
    }
    this.#rise(account, this.#evaluatedMs);
    this.#sink(account, this.#evaluatedMs);
  }

  #accountOf(accountId: string): Account {
    const known = this.#accounts.get(accountId);
    if (known) return known;
    const account = { accountId, level: -1, sum: 0n, grace: null, eventCount: 0n };
    this.#accounts.set(accountId, account);
    return account;
  }

  /** Index of the highest tier whose threshold is reached; -1: none. */
  #reached(sum: bigint): number {
    return this.#rules.tiers.findLastIndex(({ thresholdLamports }) => sum >= thresholdLamports);
  }

  #thresholdOf(level: number): bigint {
    return this.#rules.tiers[level]?.thresholdLamports ?? 0n;
  }

  #nameOf(level: number): string | null {
    return this.#rules.tiers[level]?.name ?? null;
  }
}
