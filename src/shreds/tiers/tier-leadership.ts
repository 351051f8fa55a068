// Tier leadership: decides whether this node is the leader or a follower.
//
// Created in app/compose-shreds.ts. One node holds the lock and leads: it counts registrations and
// writes checkpoints of the tiers. The others follow its checkpoints in memory. This class switches the
// two dependent states, AccountTiers and the pending registrations.
//
// The lock decides which node tries to lead. The epoch, which every leader raises first, decides what
// the store accepts. A leader that was superseded without noticing cannot write any more, steps down and
// reads everything again. While the database is unreachable, the leader continues in memory, with or
// without the lock, until the database reports a later term.

import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type { TipCounting } from "../registrations/registration-types.ts";
import type { AccountTiers } from "./account-tiers.ts";
import type { LeaderTiers } from "./leader-tiers.ts";
import type { HeldTierLock, Locks, TierNewsListener, TierStore } from "./types.ts";

const tierLock = "tiers";
/** Time between two attempts at the lock or the epoch, with 10 % random jitter. */
const attemptIntervalMs = 1000;
const jitter = 0.2;

interface TierLeadershipOptions {
  readonly store: Pick<TierStore, "takeOver" | "epoch" | "onNews">;
  readonly locks: Locks;
  readonly tiers: AccountTiers;
  readonly registrations: TipCounting;
  readonly clock: Clock;
  readonly log: Logger;
  /** From 0 to below 1. */
  readonly random: () => number;
}

/** From takeover to stepping down. */
interface Term {
  readonly leader: LeaderTiers;
  /** null: lost, and no other node is known to have begun a term. */
  lock: HeldTierLock | null;
  /** No further change of this term can be persisted. */
  isOver: boolean;
  /** Another node may have taken over. */
  isDoubted: boolean;
}

export class TierLeadership {
  readonly #options: TierLeadershipOptions;
  readonly #closing = new AbortController();
  /** null: another node leads. */
  #term: Term | null = null;
  #endNews: (() => void) | null = null;
  #sleeping = new AbortController();
  #running: Promise<void> | null = null;
  #closed: Promise<void> | null = null;

  constructor(options: TierLeadershipOptions) {
    this.#options = options;
  }

  /**
   * Leads, or follows the leading node; until then no account has a tier. Call it once. Rejects like the
   * store; then it does not continue.
   */
  async start(): Promise<void> {
    const onNews: TierNewsListener = (news) => this.#receive(news);
    this.#endNews = this.#options.store.onNews(onNews);
    const { log, tiers } = this.#options;
    const isLeader = await this.#tryToTakeOver().catch((error: unknown) => {
      log.warn(`tiers: takeover failed; retrying: ${messageOf(error)}`);
      return false;
    });
    if (!isLeader) {
      await tiers.load();
      log.info("tiers: running as follower");
    }
    if (!this.#closing.signal.aborted) this.#running = this.#run();
  }

  get isLeader(): boolean {
    return this.#term !== null;
  }

  /** Settles when the last state is persisted, or could not be; another node may then take over. */
  close(): Promise<void> {
    this.#closed ??= this.#finish();
    return this.#closed;
  }

  #receive(news: Parameters<TierNewsListener>[0]): void {
    this.#options.tiers.receive(news);
    if (!this.#term) return;
    // No other node writes checkpoints, unless it took over.
    this.#term.isDoubted = true;
    this.#wake();
  }

  async #run(): Promise<void> {
    const { log } = this.#options;
    for (;;) {
      await this.#sleep();
      if (this.#closing.signal.aborted) return;
      try {
        if (this.#term) await this.#examine(this.#term);
        else if (await this.#tryToTakeOver()) log.info("tiers: this node is the leader now");
      } catch (error) {
        log.debug(`tiers: the leader is unknown: ${messageOf(error)}`);
      }
    }
  }

  /** A leader whose term is not in doubt sleeps until it is. */
  async #sleep(): Promise<void> {
    const { signal } = this.#sleeping;
    const isQuiet = this.#term !== null && !this.#isInDoubt(this.#term);
    if (isQuiet && !signal.aborted) {
      await new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    } else {
      const share = 1 + jitter * (this.#options.random() - 0.5);
      await this.#options.clock.sleep(attemptIntervalMs * share, signal);
    }
    if (!this.#closing.signal.aborted) this.#sleeping = new AbortController();
  }

  #wake(): void {
    this.#sleeping.abort();
  }

  #isInDoubt({ isOver, isDoubted, lock }: Term): boolean {
    return isOver || isDoubted || lock === null;
  }

  /** Rejects while the database is unreachable; then the term continues. */
  async #examine(term: Term): Promise<void> {
    if (!this.#isInDoubt(term)) return;
    const wasDoubted = term.isDoubted;
    term.isDoubted = false;
    try {
      const epoch = await this.#options.store.epoch();
      if (term.isOver || epoch !== term.leader.epoch) {
        await this.#stepDown(term);
        return;
      }
    } catch (error) {
      term.isDoubted ||= wasDoubted;
      throw error;
    }
    // The node that holds it may be about to begin a term, which the epoch will show.
    term.lock ??= await this.#tryLock(() => this.#lost(term));
  }

  #tryLock(onLost: () => void): Promise<HeldTierLock | null> {
    return this.#options.locks.tryLock(tierLock, onLost);
  }

  #lost(term: Term): void {
    term.lock = null;
    this.#wake();
  }

  /** False: another node has the lock. Rejects like the store; then nothing changed. */
  async #tryToTakeOver(): Promise<boolean> {
    const { store, tiers, registrations } = this.#options;
    const held: { isLost: boolean; term: Term | null } = { isLost: false, term: null };
    const lock = await this.#tryLock(() => {
      held.isLost = true;
      if (held.term) this.#lost(held.term);
    });
    if (!lock) return false;
    let leader: LeaderTiers | null = null;
    try {
      const over = { isOver: false };
      const onOver = (): void => {
        over.isOver = true;
        if (held.term) held.term.isOver = true;
        this.#wake();
      };
      leader = await tiers.open(await store.takeOver(), onOver);
      await registrations.lead(leader);
      held.term = { leader, lock: held.isLost ? null : lock, ...over, isDoubted: false };
    } catch (error) {
      await registrations.follow();
      leader?.abandon();
      if (!held.isLost) await lock.release();
      throw error;
    }
    this.#term = held.term;
    tiers.lead(leader);
    return true;
  }

  async #stepDown(term: Term): Promise<void> {
    const { log, tiers, registrations, clock } = this.#options;
    log.warn("tiers: leadership lost; running as follower");
    tiers.follow();
    this.#term = null;
    const ended = registrations.follow();
    // Another node may lead from now on; the epoch guards operations of this term that are still in
    // progress.
    await term.lock?.release();
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        await tiers.load();
        break;
      } catch (error) {
        log.debug(`tiers: the last known tiers stay valid: ${messageOf(error)}`);
        await clock.sleep(attemptIntervalMs, signal);
      }
    }
    await ended;
  }

  async #finish(): Promise<void> {
    this.#closing.abort();
    this.#wake();
    this.#endNews?.();
    await this.#running;
    const { registrations, tiers } = this.#options;
    await registrations.follow();
    await tiers.close();
    await this.#term?.lock?.release();
  }
}
