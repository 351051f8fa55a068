// Registration results: persists whether the tip of each registration counts or is dropped.
//
// Created by pending-registrations.ts for each term in which this node leads; called with each result that
// landing-confirmation.ts found. A counted tip keeps its order while a failed commit may have been
// persisted, because the tiers must not pass an order that the store may hold. Failed commits are
// retried, so every order is settled. If the store reports that the term is over, no further order is
// settled, and the next leader handles the pending registrations.

import { backOffMs } from "../../core/back-off.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { storeCodeOf } from "../../core/errors.ts";
import { TimerWheel } from "../../core/timer-wheel.ts";
import type {
  CountedTip,
  RegistrationReason,
  RegistrationStore,
  SettledTip,
  Settlement,
  TierAccounting,
} from "./registration-types.ts";

export type LandingResult =
  | { readonly state: "counted"; readonly lamports: bigint }
  | { readonly state: "dropped"; readonly reason: RegistrationReason };

interface RegistrationResultsOptions {
  readonly clock: Clock;
  readonly store: Pick<RegistrationStore, "settle" | "hasOrder">;
  readonly tiers: TierAccounting;
  /** Called when the result is persisted. */
  ended(tip: SettledTip): void;
  /** See PendingRegistrationsOptions. */
  readonly onResult: ((outcome: string) => void) | undefined;
  failed(error: unknown): void;
}

interface Attempt {
  readonly tip: SettledTip;
  readonly result: LandingResult;
  settlement: Settlement;
  counted: CountedTip | null;
  failures: number;
  /** One of the failed commits may have been persisted. */
  mayBePersisted: boolean;
}

const tickMs = 100;
const retryDelaysMs = { firstMs: 500, maxMs: 15_000 } as const;
/** Retries before a new order is taken: the old one might be the cause, and later tips wait for it. */
const failuresMax = 12;

function outcomeOf(result: LandingResult): string {
  return result.state === "counted" ? result.state : result.reason;
}

/** True if the store failed and the commit may have been persisted. */
export function isUnknown(error: unknown): boolean {
  return storeCodeOf(error) === "UNKNOWN";
}

export class RegistrationResults {
  readonly #options: RegistrationResultsOptions;
  readonly #retries: TimerWheel<Attempt>;
  readonly #underWay = new Set<Promise<void>>();
  #timer: Timer | null = null;
  #isStopped = false;

  constructor(options: RegistrationResultsOptions) {
    this.#options = options;
    this.#retries = new TimerWheel(tickMs, this.#nowMs());
  }

  /** Persists the result of `tip`, then calls `ended` unless the term ends first. */
  end(tip: SettledTip, result: LandingResult): void {
    if (this.#isStopped) return;
    this.#try({ tip, result, ...this.#decide(tip, result), failures: 0, mayBePersisted: false });
  }

  /** Stops retries. Settles when the commits in progress have ended. */
  async close(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#timer = null;
    await Promise.all(this.#underWay);
  }

  /** The timer runs only while failed attempts wait for a retry. */
  #arm(): void {
    if (this.#isStopped || this.#retries.size === 0) return;
    this.#timer ??= this.#options.clock.after(tickMs, () => {
      this.#timer = null;
      if (this.#isStopped) return; // the term is over
      for (const attempt of this.#retries.turn(this.#nowMs())) this.#try(attempt);
      this.#arm();
    });
  }

  #decide(tip: SettledTip, result: LandingResult): Pick<Attempt, "settlement" | "counted"> {
    const { tiers } = this.#options;
    if (result.state === "dropped") {
      const { state, reason } = result;
      const settledMs = tiers.nowMs();
      return {
        settlement: { state, settledMs, countedLamports: null, countedOrder: null, reason },
        counted: null,
      };
    }
    const { state, lamports } = result;
    const { accountId, registeredMs, claimedFrom } = tip;
    const order = tiers.takeOrder();
    const countedMs = tiers.nowMs();
    return {
      settlement: {
        state,
        settledMs: countedMs,
        countedLamports: lamports,
        countedOrder: order,
        reason: null,
      },
      counted: {
        order,
        accountId,
        lamports,
        registeredMs,
        countedMs,
        ...(claimedFrom && { claimedFrom }),
      },
    };
  }

  #try(attempt: Attempt): void {
    const work = this.#persist(attempt)
      .catch((error: unknown) => this.#options.failed(error))
      .finally(() => this.#underWay.delete(work));
    this.#underWay.add(work);
  }

  async #persist(attempt: Attempt): Promise<void> {
    const { store, tiers } = this.#options;
    const { tip, settlement, counted } = attempt;
    let isChanged: boolean | null;
    let isPersisted: boolean;
    try {
      isChanged = await store.settle(tip, settlement, tiers.epoch);
      isPersisted = isChanged === true || (await this.#wasPersisted(attempt));
    } catch (error) {
      this.#options.failed(error);
      attempt.mayBePersisted ||= isUnknown(error);
      this.#failed(attempt);
      return;
    }
    if (isChanged === null) {
      this.#isStopped = true;
      tiers.giveUp();
      return;
    }
    if (counted) tiers.settleOrder(counted.order, isPersisted ? counted : null);
    if (isPersisted) this.#options.onResult?.(outcomeOf(attempt.result));
    this.#options.ended(tip);
  }

  /**
   * After a failure, an earlier attempt may have persisted this settlement. Otherwise the tip belongs to
   * another account now.
   */
  #wasPersisted({ failures, counted }: Attempt): Promise<boolean> {
    const hasFailed = failures > 0;
    if (!hasFailed || !counted) return Promise.resolve(hasFailed);
    return this.#options.store.hasOrder(counted.order);
  }

  #failed(attempt: Attempt): void {
    attempt.failures++;
    // An order that may be persisted is retried until the store answers.
    if (attempt.counted && attempt.failures > failuresMax && !attempt.mayBePersisted) {
      this.#options.tiers.settleOrder(attempt.counted.order, null);
      Object.assign(attempt, this.#decide(attempt.tip, attempt.result), { failures: 0 });
    }
    if (this.#isStopped) return;
    const waitMs = backOffMs(retryDelaysMs, attempt.failures);
    this.#retries.set(attempt, this.#nowMs() + waitMs);
    this.#arm();
  }

  #nowMs(): number {
    return Number(this.#options.clock.monotonicNs() / 1_000_000n);
  }
}
