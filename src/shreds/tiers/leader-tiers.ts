// Leader's tiers: passes tips, expiries and ends of grace periods to the tier engine in time order.
//
// Opened by account-tiers.ts for one term of this node, and started before any tip is counted. It
// persists the results as checkpoints of one time each. After a restart, or on another node, the engine
// continues from the last checkpoint and replays later events. While the store cannot return the next
// expiries, counted tips wait for them.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { RareWarning } from "../../core/rare-warning.ts";
import type { ClaimedTip, TierAccounting } from "../registrations/registration-types.ts";
import { CheckpointWriter } from "./checkpoint-writer.ts";
import { TierEngine } from "./tier-engine.ts";
import { TipExpiryQueue } from "./tip-expiry-queue.ts";
import { type SettledOrder, TipSequencer } from "./tip-sequencer.ts";
import type {
  CountedTip,
  TierCheckpoint,
  TierEvent,
  TierListener,
  TierRules,
  TierSource,
  TierStore,
  Tiers,
  TierView,
} from "./types.ts";

/**
 * Delay until a wall clock that is set forward is noticed. Far below setTimeout's limit of 2^31 ms.
 */
const checkIntervalMs = 5000;
const replayMax = 8192;
/** A clock that was set back by less is not reported. */
const behindMaxMs = 60_000;
const warnEveryMs = 3_600_000;

export interface LeaderTiersOptions {
  readonly rules: TierRules;
  readonly store: TierStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** The result of TierStore.takeOver. */
  readonly epoch: bigint;
  /** Called once or more: memory and store differ, and the term is over. */
  readonly onOver?: () => void;
  /** Counted tips in memory, and in one read; tests use small numbers. */
  readonly headMax?: number;
  readonly pageMax?: number;
}

export class LeaderTiers implements Tiers, TierSource, TierAccounting {
  readonly #options: LeaderTiersOptions;
  readonly #expiries: TipExpiryQueue;
  readonly #checkpoints: CheckpointWriter;
  readonly #listeners = new Set<TierListener>();
  readonly #warning: RareWarning;
  #engine: TierEngine;
  /** null: not started. */
  #sequencer: TipSequencer | null = null;
  /** All tips up to this order number are in the engine, and no later ones. */
  #countedOrder = 0n;
  #lastMs = 0;
  /** Orders of claimed tips that left their sums already; each until its window ends. */
  readonly #claimed = new Set<bigint>();
  /** Not part of a checkpoint yet. */
  #events: TierEvent[] = [];
  #timer: Timer | null = null;
  /** The time of the timer. */
  #timerMs = 0;
  #isRunning = false;
  #closing: Promise<void> | null = null;

  constructor(options: LeaderTiersOptions) {
    const { rules, store, clock, log, epoch } = options;
    this.#options = options;
    this.#warning = new RareWarning(options, warnEveryMs);
    this.#engine = new TierEngine(rules, { evaluatedMs: 0, states: [] });
    this.#expiries = new TipExpiryQueue({
      ...options,
      windowMs: rules.windowMs,
      onMore: () => this.#catchUp(),
    });
    this.#checkpoints = new CheckpointWriter({
      store,
      clock,
      log,
      epoch,
      take: () => this.#take(),
      onOver: () => this.giveUp(),
    });
  }

  get epoch(): bigint {
    return this.#options.epoch;
  }

  /**
   * Continues from the last checkpoint and applies all later events up to now, under the thresholds of that
   * checkpoint. Changed thresholds apply from now on. Until then no account has a tier. Call it once. Rejects like
   * the store; then it does not continue.
   */
  async start(): Promise<void> {
    const { store, rules } = this.#options;
    const persisted = await store.load();
    if (persisted) {
      const tiers = persisted.tiers ?? rules.tiers;
      this.#engine = new TierEngine({ ...rules, tiers }, persisted);
      this.#countedOrder = persisted.countedOrder;
    }
    this.#expiries.begin(this.#engine.evaluatedMs);
    await this.#replay();
    // Counted tips may have times that the wall clock has not reached again.
    this.#lastMs = Math.max(this.#lastMs, this.#engine.evaluatedMs);
    await this.#replayUntil(this.nowMs());
    this.#engine.adopt(rules);
    this.#sequencer = new TipSequencer(this.#countedOrder);
    this.#events = this.#engine.takeEvents();
    if (this.#closing) return;
    this.#isRunning = true;
    this.#resume();
    this.#checkpoints.now();
  }

  /** Settles when the last state is persisted, or could not be. Later counts wait for a restart. */
  close(): Promise<void> {
    this.#closing ??= this.#finish();
    return this.#closing;
  }

  /** Freezes the tiers and stops persisting, because another node leads. */
  abandon(): void {
    this.#closing ??= Promise.resolve();
    this.#stop();
    this.#checkpoints.abandon();
  }

  giveUp(): void {
    this.#options.onOver?.();
  }

  tiers(): Iterable<readonly [accountId: string, tier: string]> {
    return this.#engine.tiers();
  }

  view(accountId: string): TierView {
    return this.#engine.view(accountId);
  }

  tierOf(accountId: string): string | null {
    return this.#engine.view(accountId).tier;
  }

  onChange(listener: TierListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Only persisted events, because others could differ after a crash. Waits for the checkpoint in
   * progress.
   */
  async history(accountId: string, before: bigint | null, limit: number): Promise<TierEvent[]> {
    await this.#checkpoints.attempted();
    return this.#options.store.events(accountId, before, limit);
  }

  nowMs(): number {
    this.#lastMs = Math.max(this.#lastMs, this.#wallMs());
    return this.#lastMs;
  }

  /** The order number of the next counted tip. The caller must call `settleOrder` in every case. */
  takeOrder(): bigint {
    return this.#started().take();
  }

  /**
   * The tip with that order number is persisted as counted, or (null) never will be. Tips take effect in
   * the turn in which all earlier numbers are settled.
   */
  settleOrder(order: bigint, tip: CountedTip | null): void {
    this.#started().settle(order, tip, this.nowMs());
    this.#catchUp();
  }

  #started(): TipSequencer {
    if (this.#sequencer) return this.#sequencer;
    throw new RangeError("the tier engine was not started");
  }

  #wallMs(): number {
    return Number(this.#options.clock.nowNs() / 1_000_000n);
  }

  /**
   * Tips that were counted after the checkpoint, each at its time, or as soon after it as the order
   * allows.
   */
  async #replay(): Promise<void> {
    const { store } = this.#options;
    for (;;) {
      const tips = await store.countedAfter(this.#countedOrder, replayMax);
      for (const tip of tips) {
        const atMs = Math.max(tip.countedMs, this.#engine.evaluatedMs);
        await this.#replayUntil(atMs);
        this.#count({ order: tip.order, tip, atMs });
      }
      if (tips.length < replayMax) return;
    }
  }

  async #replayUntil(toMs: number): Promise<void> {
    while (!this.#evaluate(toMs)) await this.#expiries.read();
  }

  /**
   * Expiries and ends of grace periods. False: the expiries up to that time are not all known; known
   * ones are applied.
   */
  #evaluate(toMs: number): boolean {
    const untilMs = Math.min(toMs, this.#expiries.knownUntilMs);
    for (;;) {
      const tip = this.#expiries.take(untilMs);
      if (!tip) break;
      this.#leave(tip);
    }
    if (untilMs > this.#engine.evaluatedMs) this.#engine.advance(untilMs);
    return untilMs === toMs;
  }

  #leave(tip: CountedTip): void {
    // Persisted but not counted yet: its window will be over at that time.
    if (tip.order > this.#countedOrder) return;
    const { accountId, lamports, registeredMs, order, claimedOrder } = tip;
    // Read from the store before or after its claim took effect.
    if (this.#claimed.delete(order)) return;
    if (claimedOrder !== undefined && claimedOrder <= this.#countedOrder) return;
    const atMs = registeredMs + this.#options.rules.windowMs;
    const { sumLamports } = this.#engine.view(accountId);
    if (this.#engine.leave(accountId, lamports, atMs)) return;
    this.#reportSum(`tip ${order} of ${lamports} lamports expires`, accountId, sumLamports);
  }

  #reportSum(what: string, accountId: string, sumLamports: bigint): void {
    this.#options.log.error(
      `tiers: ${what}, but the sum of account ${accountId} is only ${sumLamports}`,
    );
  }

  #count({ order, tip, atMs }: SettledOrder): void {
    this.#countedOrder = order;
    // The window of a claimed tip ends with that of its claim: both or none of them changes a sum.
    if (!tip || !this.#engine.count(tip, atMs)) return;
    if (tip.claimedFrom) this.#withdraw(tip.claimedFrom, tip);
    this.#expiries.add(tip);
  }

  #withdraw({ accountId, order }: ClaimedTip, { lamports }: CountedTip): void {
    const { sumLamports } = this.#engine.view(accountId);
    this.#claimed.add(order);
    if (this.#engine.withdraw(accountId, lamports)) return;
    this.#reportSum(`tip ${order} of ${lamports} lamports is claimed`, accountId, sumLamports);
  }

  #catchUp(): void {
    if (this.#isRunning) this.#notify(this.#resume());
  }

  /** Applies everything up to now, as far as it is known, and returns the result. */
  #resume(): TierEvent[] {
    const before = this.#countedOrder;
    this.#started().handle((next) => {
      if (!this.#evaluate(next.atMs)) return false;
      this.#count(next);
      return true;
    });
    this.#evaluate(this.nowMs());
    this.#checkClock();
    this.#expiries.fill();
    this.#arm();
    const events = this.#engine.takeEvents();
    for (const event of events) this.#events.push(event);
    if (events.length > 0) this.#checkpoints.now();
    else if (this.#countedOrder !== before || this.#engine.hasChanged) this.#checkpoints.soon();
    return events;
  }

  /** After a clock that was ahead, no tip leaves its sum and no tier falls for as long. */
  #checkClock(): void {
    const behindMs = this.#lastMs - this.#wallMs();
    if (behindMs <= behindMaxMs) return;
    this.#warning.give(() => {
      const untilText = new Date(this.#lastMs).toISOString();
      return (
        `tiers: the clock is ${Math.round(behindMs / 1000)} s behind an earlier time; windows and grace ` +
        `periods are frozen until ${untilText}; run chronyc tracking`
      );
    });
  }

  #arm(): void {
    const nextMs = Math.min(
      this.#expiries.nextMs ?? Number.POSITIVE_INFINITY,
      this.#engine.nextGraceEndMs ?? Number.POSITIVE_INFINITY,
    );
    if (this.#timer && nextMs === this.#timerMs) return;
    this.#timer?.cancel();
    this.#timer = null;
    // Unknown expiries arrive with the queue's own read.
    if (nextMs > this.#expiries.knownUntilMs || nextMs === Number.POSITIVE_INFINITY) return;
    this.#timerMs = nextMs;
    // Uses the real wall clock: while it is set back, nothing is due.
    const delayMs = Math.min(nextMs - this.#wallMs(), checkIntervalMs);
    this.#timer = this.#options.clock.after(delayMs, () => {
      this.#timer = null;
      this.#catchUp();
    });
  }

  #notify(events: readonly TierEvent[]): void {
    const accountIds = new Set(
      events.filter(({ from, to }) => from !== to).map(({ accountId }) => accountId),
    );
    for (const accountId of accountIds) {
      for (const listener of this.#listeners) {
        try {
          // The current state, because an earlier listener may have settled a tip.
          listener(accountId, this.tierOf(accountId));
        } catch (error) {
          this.#options.log.error(`tiers: a listener failed: ${messageOf(error)}`);
        }
      }
    }
  }

  #take(): TierCheckpoint {
    const events = this.#events;
    this.#events = [];
    return {
      evaluatedMs: this.#engine.evaluatedMs,
      countedOrder: this.#countedOrder,
      tiers: this.#options.rules.tiers,
      states: this.#engine.takeStates(),
      events,
    };
  }

  async #finish(): Promise<void> {
    if (!this.#isRunning) return;
    this.#catchUp();
    this.#stop();
    await this.#checkpoints.close();
  }

  #stop(): void {
    this.#isRunning = false;
    this.#timer?.cancel();
    this.#expiries.close();
  }
}
