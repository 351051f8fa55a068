// One database and its nodes. Connections are slow, lost or lose answers, notifications are late, a lock
// ends with its connection, and clocks differ. The rows are in memory or in a real database.

import { type Clock, sleepWith, type Timer } from "../../../src/core/clock.ts";
import { ShredwayError } from "../../../src/core/errors.ts";
import type { ForeignChangeListener, SqlDriver } from "../../../src/platform/store/driver.ts";
import type { RegistrationStore } from "../../../src/shreds/registrations/registration-types.ts";
import type {
  HeldTierLock,
  Locks,
  TierCheckpoint,
  TierStore,
} from "../../../src/shreds/tiers/types.ts";
import type { ManualClock } from "../../support/clocks/manual-clock.ts";

/** A node's clock: skewed, and frozen together with its process. */
export class NodeClock implements Clock {
  readonly sleep: Clock["sleep"];
  readonly #clock: ManualClock;
  readonly #skewNs: bigint;
  readonly #timers = new Set<Timer>();
  #late: (() => void)[] = [];
  #isFrozen = false;
  #isOver = false;

  constructor(clock: ManualClock, skewMs: number) {
    this.#clock = clock;
    this.#skewNs = BigInt(skewMs) * 1_000_000n;
    this.sleep = sleepWith(this);
  }

  get isFrozen(): boolean {
    return this.#isFrozen;
  }

  get pending(): number {
    return this.#timers.size;
  }

  nowNs(): bigint {
    return this.#clock.nowNs() + this.#skewNs;
  }

  monotonicNs(): bigint {
    return this.#clock.monotonicNs();
  }

  after(delayMs: number, action: () => void): Timer {
    const timer = this.#clock.after(delayMs, () => {
      if (this.#isFrozen) this.#late.push(run);
      else run();
    });
    const run = (): void => {
      if (this.#timers.delete(timer) && !this.#isOver) action();
    };
    this.#timers.add(timer);
    return {
      cancel: () => {
        timer.cancel();
        this.#timers.delete(timer);
      },
    };
  }

  every(periodMs: number, action: () => void): Timer {
    const timer = this.#clock.every(periodMs, () => {
      if (!this.#isFrozen && !this.#isOver) action();
    });
    this.#timers.add(timer);
    return {
      cancel: () => {
        timer.cancel();
        this.#timers.delete(timer);
      },
    };
  }

  freeze(): void {
    this.#isFrozen = true;
  }

  thaw(): void {
    this.#isFrozen = false;
    for (const run of this.#late.splice(0)) run();
  }

  /** kill -9. */
  end(): void {
    this.#isOver = true;
    for (const timer of this.#timers) timer.cancel();
  }
}

export interface Stores {
  readonly tiers: TierStore;
  readonly registrations: RegistrationStore;
}

/**
 * The storage of the rows. `driver` sends and receives notifications; its other calls belong to a
 * database.
 */
export interface Rows {
  connect(
    driver: Pick<SqlDriver, "onForeignChange">,
    tell: (news: readonly string[]) => void,
  ): Stores;
  /** Settles when it has no operation in progress. */
  idle(): Promise<void>;
}

function failed(what: string, code?: string): ShredwayError {
  return new ShredwayError("store_failed", `made up: ${what}`, code ? { details: { code } } : {});
}

/** The accepted checkpoints. */
export interface Accepted {
  readonly checkpoint: TierCheckpoint;
  readonly epoch: bigint;
}

export class Simulation {
  readonly clock: ManualClock;
  readonly rows: Rows;
  readonly accepted: Accepted[] = [];
  /** Applies to all nodes. */
  isAway = false;
  readonly links = new Set<Link>();
  #holder: { link: Link; onLost: () => void } | null = null;

  constructor(clock: ManualClock, rows: Rows) {
    this.clock = clock;
    this.rows = rows;
  }

  get holder(): Link | null {
    return this.#holder?.link ?? null;
  }

  tell(from: Link, news: readonly string[]): void {
    for (const link of this.links) if (link !== from) link.receive(news);
  }

  tryLock(link: Link, onLost: () => void): HeldTierLock | null {
    if (this.#holder) return null;
    const held = { link, onLost };
    this.#holder = held;
    return {
      release: () => {
        if (this.#holder === held) this.#holder = null;
        return Promise.resolve();
      },
    };
  }

  /** The server notices that the holder's connection is lost. */
  dropLock(link: Link): void {
    if (this.#holder?.link !== link) return;
    const { onLost } = this.#holder;
    this.#holder = null;
    link.clock.after(0, onLost);
  }

  /** The same, without a notification of the holder. */
  forgetLock(): void {
    this.#holder = null;
  }

  away(isAway: boolean): void {
    this.isAway = isAway;
    if (isAway && this.#holder) this.dropLock(this.#holder.link);
    if (!isAway) for (const link of this.links) link.gap();
  }
}

/** One node's connections. */
export class Link implements Locks {
  readonly clock: NodeClock;
  readonly stores: Stores;
  readonly #simulation: Simulation;
  readonly #delayMs: () => number;
  readonly #listeners = new Set<ForeignChangeListener>();
  #isCut = false;
  /** The answer of the next change is lost, so its result is unknown. */
  losesAnswer = false;
  #newsUntilMs = 0;

  constructor(simulation: Simulation, clock: NodeClock, delayMs: () => number) {
    this.#simulation = simulation;
    this.clock = clock;
    this.#delayMs = delayMs;
    const driver = {
      onForeignChange: (listener: ForeignChangeListener) => {
        this.#listeners.add(listener);
        return () => void this.#listeners.delete(listener);
      },
    };
    const tell = (news: readonly string[]): void => simulation.tell(this, news);
    this.stores = this.#faulty(simulation.rows.connect(driver, tell));
    simulation.links.add(this);
  }

  get isCut(): boolean {
    return this.#isCut || this.#simulation.isAway;
  }

  cut(isCut: boolean): void {
    this.#isCut = isCut;
    if (!isCut) this.gap();
  }

  /** In order, with a delay. */
  receive(news: readonly string[] | null): void {
    if (this.isCut && news !== null) return;
    const nowMs = Number(this.#simulation.clock.monotonicNs() / 1_000_000n);
    this.#newsUntilMs = Math.max(this.#newsUntilMs, nowMs + this.#delayMs());
    this.clock.after(this.#newsUntilMs - nowMs, () => {
      for (const listener of this.#listeners) listener(news);
    });
  }

  gap(): void {
    if (!this.isCut) this.receive(null);
  }

  async tryLock(_name: string, onLost: () => void): Promise<HeldTierLock | null> {
    await this.#pass();
    const lock = this.#simulation.tryLock(this, onLost);
    await this.clock.sleep(this.#delayMs());
    return lock;
  }

  /** Answers arrive through the node's clock, so a frozen process receives none. */
  async #pass(): Promise<void> {
    await this.clock.sleep(this.#delayMs());
    if (this.isCut) throw failed("no connection");
  }

  async #ask<T>(work: () => Promise<T>, isChange = false): Promise<T> {
    await this.#pass();
    const result = await work();
    await this.clock.sleep(this.#delayMs());
    if (isChange && this.losesAnswer) {
      this.losesAnswer = false;
      throw failed("nobody knows", "UNKNOWN");
    }
    if (!isChange && this.isCut) throw failed("the connection was lost");
    return result;
  }

  #faulty({ tiers, registrations }: Stores): Stores {
    const change = <T>(work: () => Promise<T>): Promise<T> => this.#ask(work, true);
    const { accepted } = this.#simulation;
    return {
      tiers: {
        takeOver: () => change(() => tiers.takeOver()),
        epoch: () => this.#ask(() => tiers.epoch()),
        load: () => this.#ask(() => tiers.load()),
        checkpoint: (checkpoint, epoch) => {
          const copy = { ...checkpoint, events: [...checkpoint.events] };
          return change(async () => {
            const isKept = await tiers.checkpoint(copy, epoch);
            if (isKept) accepted.push({ checkpoint: copy, epoch });
            return isKept;
          });
        },
        statesChangedAfter: (number) => this.#ask(() => tiers.statesChangedAfter(number)),
        onNews: (listener) => tiers.onNews(listener),
        countedAfter: (...question) => this.#ask(() => tiers.countedAfter(...question)),
        leavingAfter: (...question) => this.#ask(() => tiers.leavingAfter(...question)),
        events: (...question) => this.#ask(() => tiers.events(...question)),
      },
      registrations: {
        add: (one) => change(() => registrations.add(one)),
        addCounted: (one, epoch) => change(() => registrations.addCounted(one, epoch)),
        settle: (...question) => change(() => registrations.settle(...question)),
        claim: (...question) => change(() => registrations.claim(...question)),
        claimable: (...question) => this.#ask(() => registrations.claimable(...question)),
        hasOrder: (order) => this.#ask(() => registrations.hasOrder(order)),
        owners: (signatures) => this.#ask(() => registrations.owners(signatures)),
        pending: (...question) => this.#ask(() => registrations.pending(...question)),
        pendingOf: (signatures) => this.#ask(() => registrations.pendingOf(signatures)),
        onNews: (listener) => registrations.onNews(listener),
        ofAccount: (...question) => this.#ask(() => registrations.ofAccount(...question)),
        lastOrder: () => this.#ask(() => registrations.lastOrder()),
      },
    };
  }
}
