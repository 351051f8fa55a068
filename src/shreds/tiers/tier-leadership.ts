// Tier seat: who keeps the tiers, this node or another, and what are they either way?
//
// Made by main-shreds.ts; the Tiers of the rest of the house, whoever keeps them. One node in the world
// holds the lock and is the keeper: it has a tier book, counts registrations, writes checkpoints. The
// others follow its checkpoints in memory. The lock decides who tries; what the store keeps is decided by
// the epoch alone, which every keeper raises first: whoever was overtaken without noticing changes nothing
// any more, steps down and reads everything anew. While the database is away a keeper goes on in memory,
// lock or no lock, until the database says that a later term has begun.

import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type { Counting } from "../registrations/tier-accounting.ts";
import { FollowerTiers } from "./follower-tiers.ts";
import { LeaderTiers } from "./leader-tiers.ts";
import type {
  HeldTierLock,
  Locks,
  TierEvent,
  TierListener,
  TierNewsListener,
  TierRules,
  TierSource,
  TierStore,
  Tiers,
  TierView,
} from "./types.ts";

const tierLock = "tiers";
/** Between two attempts at the lock, or at the epoch; a tenth more or less, by chance. */
const lookMs = 1000;
const jitter = 0.2;

interface TierSeatOptions {
  readonly rules: TierRules;
  readonly store: TierStore;
  readonly locks: Locks;
  readonly counting: Counting;
  readonly clock: Clock;
  readonly log: Logger;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** See TierBookOptions. */
  readonly headMax?: number;
  readonly pageMax?: number;
}

/** From taking over to stepping down. */
interface Term {
  readonly book: LeaderTiers;
  /** null: lost, and nobody else was seen to begin a term. */
  lock: HeldTierLock | null;
  /** Nothing more can be kept in it. */
  isOver: boolean;
  /** Another node may have taken over. */
  isDoubted: boolean;
}

export class TierLeadership implements Tiers {
  readonly #options: TierSeatOptions;
  readonly #listeners = new Set<TierListener>();
  readonly #closing = new AbortController();
  #followed: FollowerTiers;
  #source: TierSource;
  /** null: another node keeps the tiers. */
  #term: Term | null = null;
  #lastMs = 0;
  #endNews: (() => void) | null = null;
  #sleeping = new AbortController();
  #running: Promise<void> | null = null;
  #closed: Promise<void> | null = null;

  constructor(options: TierSeatOptions) {
    this.#options = options;
    this.#followed = this.#newFollowed();
    this.#source = this.#followed;
  }

  /**
   * Keeps the tiers, or follows whoever does; until then nobody has a tier. Once. Rejects as the store:
   * then nothing goes on.
   */
  async start(): Promise<void> {
    const onNews: TierNewsListener = (news) => this.#hear(news);
    this.#endNews = this.#options.store.onNews(onNews);
    const { log } = this.#options;
    const keeps = await this.#tryToTakeOver().catch((error: unknown) => {
      log.warn(`tiers: not taken over, tried again: ${messageOf(error)}`);
      return false;
    });
    if (!keeps) {
      await this.#followed.load();
      log.info("tiers: another node keeps them; this one follows");
    }
    if (!this.#closing.signal.aborted) this.#running = this.#run();
  }

  /** Whether this node does. */
  get isKeeper(): boolean {
    return this.#term !== null;
  }

  view(accountId: string): TierView {
    return this.#source.view(accountId);
  }

  tierOf(accountId: string): string | null {
    return this.#source.tierOf(accountId);
  }

  /** Accounts by tier, 0 for those without any, and how many of them are in their grace. */
  census(): { readonly tiers: ReadonlyMap<string, number>; readonly inGrace: number } {
    const tiers = new Map(this.#options.rules.tiers.map(({ name }): [string, number] => [name, 0]));
    let inGrace = 0;
    for (const [accountId, tier] of this.#source.tiers()) {
      tiers.set(tier, (tiers.get(tier) ?? 0) + 1);
      if (this.#source.view(accountId).graceEndsMs !== null) inGrace++;
    }
    return { tiers, inGrace };
  }

  onChange(listener: TierListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  history(accountId: string, before: bigint | null, limit: number): Promise<TierEvent[]> {
    const keeper = this.#term?.book;
    if (keeper) return keeper.history(accountId, before, limit);
    return this.#options.store.events(accountId, before, limit);
  }

  nowMs(): number {
    const nowMs = this.#term?.book.nowMs() ?? Number(this.#options.clock.nowNs() / 1_000_000n);
    this.#lastMs = Math.max(this.#lastMs, nowMs);
    return this.#lastMs;
  }

  /** Settles when the last moment is kept, or could not be, and another node may take over. */
  close(): Promise<void> {
    this.#closed ??= this.#finish();
    return this.#closed;
  }

  #newFollowed(): FollowerTiers {
    const { rules, store, clock, log } = this.#options;
    const followed: FollowerTiers = new FollowerTiers({
      rules,
      store,
      clock,
      log,
      onChange: (accountId) => {
        if (this.#source === followed) this.#tell(accountId);
      },
    });
    return followed;
  }

  #hear(news: Parameters<TierNewsListener>[0]): void {
    this.#followed.hear(news);
    if (!this.#term) return;
    // Nobody else writes checkpoints, unless he took over.
    this.#term.isDoubted = true;
    this.#wake();
  }

  async #run(): Promise<void> {
    const { log } = this.#options;
    for (;;) {
      await this.#sleep();
      if (this.#closing.signal.aborted) return;
      try {
        if (this.#term) await this.#lookAt(this.#term);
        else if (await this.#tryToTakeOver()) log.info("tiers: this node keeps them now");
      } catch (error) {
        log.debug(`tiers: who keeps them is not known: ${messageOf(error)}`);
      }
    }
  }

  /** A keeper whom nobody doubts sleeps until somebody does. */
  async #sleep(): Promise<void> {
    const { signal } = this.#sleeping;
    const isQuiet = this.#term !== null && !this.#isInDoubt(this.#term);
    if (isQuiet && !signal.aborted) {
      await new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    } else {
      const share = 1 + jitter * (this.#options.random() - 0.5);
      await this.#options.clock.sleep(lookMs * share, signal);
    }
    if (!this.#closing.signal.aborted) this.#sleeping = new AbortController();
  }

  #wake(): void {
    this.#sleeping.abort();
  }

  #isInDoubt({ isOver, isDoubted, lock }: Term): boolean {
    return isOver || isDoubted || lock === null;
  }

  /** Rejects while the database is away: then the term goes on. */
  async #lookAt(term: Term): Promise<void> {
    if (!this.#isInDoubt(term)) return;
    const wasDoubted = term.isDoubted;
    term.isDoubted = false;
    try {
      const epoch = await this.#options.store.epoch();
      if (term.isOver || epoch !== term.book.epoch) {
        await this.#stepDown(term);
        return;
      }
    } catch (error) {
      term.isDoubted ||= wasDoubted;
      throw error;
    }
    // Whoever has it may be about to begin a term: then the epoch will tell.
    term.lock ??= await this.#tryLock(() => this.#lost(term));
  }

  #tryLock(onLost: () => void): Promise<HeldTierLock | null> {
    return this.#options.locks.tryLock(tierLock, onLost);
  }

  #lost(term: Term): void {
    term.lock = null;
    this.#wake();
  }

  /** False: another node has the lock. Rejects as the store: nothing changed then. */
  async #tryToTakeOver(): Promise<boolean> {
    const { rules, store, clock, log, counting } = this.#options;
    const { headMax, pageMax } = this.#options;
    const held: { isLost: boolean; term: Term | null } = { isLost: false, term: null };
    const lock = await this.#tryLock(() => {
      held.isLost = true;
      if (held.term) this.#lost(held.term);
    });
    if (!lock) return false;
    let book: LeaderTiers | null = null;
    try {
      const epoch = await store.takeOver();
      const over = { isOver: false };
      const onOver = (): void => {
        over.isOver = true;
        if (held.term) held.term.isOver = true;
        this.#wake();
      };
      const limits = { ...(headMax && { headMax }), ...(pageMax && { pageMax }) };
      book = new LeaderTiers({ rules, store, clock, log, epoch, onOver, ...limits });
      await book.start();
      await counting.keep(book);
      held.term = { book, lock: held.isLost ? null : lock, ...over, isDoubted: false };
    } catch (error) {
      await counting.follow();
      book?.abandon();
      if (!held.isLost) await lock.release();
      throw error;
    }
    this.#begin(held.term);
    return true;
  }

  #begin(term: Term): void {
    const { book } = term;
    book.onChange((accountId) => {
      if (this.#source === book) this.#tell(accountId);
    });
    this.#term = term;
    this.#followed.close();
    this.#show(book);
  }

  /** The last tiers that were kept here hold until those that are kept are read. */
  async #stepDown(term: Term): Promise<void> {
    const { log, counting, clock } = this.#options;
    log.warn("tiers: another node may keep them; this one follows");
    term.book.abandon();
    this.#lastMs = this.nowMs();
    this.#term = null;
    const ended = counting.follow();
    // Others may keep them from now on: what this term still has under way its number guards.
    await term.lock?.release();
    const followed = this.#newFollowed();
    this.#followed = followed;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        await followed.load();
        this.#show(followed);
        break;
      } catch (error) {
        log.debug(`tiers: the last known ones hold: ${messageOf(error)}`);
        await clock.sleep(lookMs, signal);
      }
    }
    await ended;
  }

  /** Tells what differs, once. */
  #show(source: TierSource): void {
    const before = new Map(this.#source.tiers());
    this.#source = source;
    const accountIds = new Set(before.keys());
    for (const [accountId] of source.tiers()) accountIds.add(accountId);
    for (const accountId of accountIds) {
      if (this.tierOf(accountId) !== (before.get(accountId) ?? null)) this.#tell(accountId);
    }
  }

  #tell(accountId: string): void {
    for (const listener of this.#listeners) {
      try {
        // As it is now: a listener before this one may have changed it.
        listener(accountId, this.tierOf(accountId));
      } catch (error) {
        this.#options.log.error(`after a change of an account's tier: ${messageOf(error)}`);
      }
    }
  }

  async #finish(): Promise<void> {
    this.#closing.abort();
    this.#wake();
    this.#endNews?.();
    await this.#running;
    await this.#options.counting.follow();
    this.#followed.close();
    const term = this.#term;
    if (!term) return;
    await term.book.close();
    await term.lock?.release();
  }
}
