// Registration results: is the result of a registration persisted, and does the tip count?
//
// Made by pending-registrations.ts for each term in which this node leads; called with each result that
// landing-confirmation.ts found. A tip that counts has its order from the first attempt to the last: a
// commit that failed may have been done all the same, and the tiers must not pass an order that the
// store may hold. Failed commits are tried again, so every order is settled. When the store says that
// the term is over none is: what is still pending is the next leader's.

import type { Clock, Timer } from "../../core/clock.ts";
import { storeCodeOf } from "../../core/errors.ts";
import { TimerWheel } from "../../core/timer-wheel.ts";
import type {
  CountedTip,
  Registration,
  RegistrationReason,
  RegistrationStore,
  Settlement,
  TierAccounting,
} from "./registration-types.ts";

export type SettledTip = Pick<Registration, "signature" | "accountId" | "registeredMs">;

export type LandingResult =
  | { readonly state: "counted"; readonly lamports: bigint }
  | { readonly state: "dropped"; readonly reason: RegistrationReason };

interface RegistrationResultsOptions {
  readonly clock: Clock;
  readonly store: Pick<RegistrationStore, "settle">;
  readonly tiers: TierAccounting;
  /** The result is persisted: nothing is left to do for the tip. */
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
  /** It is unknown whether one of the failed commits was done. */
  mayBePersisted: boolean;
}

const tickMs = 100;
const againMs = 500;
const againMaxMs = 15_000;
/** About two minutes. If it is the order that cannot be persisted, the tiers must not wait for ever. */
const failuresMax = 12;

function outcomeOf(result: LandingResult): string {
  return result.state === "counted" ? result.state : result.reason;
}

/** A failure of the store of which it is unknown whether the commit was done. */
export function isUnknown(error: unknown): boolean {
  return storeCodeOf(error) === "UNKNOWN";
}

export class RegistrationResults {
  readonly #options: RegistrationResultsOptions;
  readonly #again: TimerWheel<Attempt>;
  readonly #underWay = new Set<Promise<void>>();
  #timer: Timer | null = null;
  #isStopped = false;

  constructor(options: RegistrationResultsOptions) {
    this.#options = options;
    this.#again = new TimerWheel(tickMs, this.#nowMs());
  }

  /** Persists the result of `tip`; `ended` follows, unless the term ends before. */
  end(tip: SettledTip, result: LandingResult): void {
    if (this.#isStopped) return;
    this.#try({ tip, result, ...this.#decide(tip, result), failures: 0, mayBePersisted: false });
  }

  /** Settles when what is under way has ended; nothing is tried again. */
  async close(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#timer = null;
    await Promise.all(this.#underWay);
  }

  /** Nothing turns while nothing has failed. */
  #arm(): void {
    if (this.#isStopped || this.#again.size === 0) return;
    this.#timer ??= this.#options.clock.after(tickMs, () => {
      this.#timer = null;
      if (this.#isStopped) return; // the term is over
      for (const attempt of this.#again.turn(this.#nowMs())) this.#try(attempt);
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
    const { accountId, registeredMs } = tip;
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
      counted: { order, accountId, lamports, registeredMs, countedMs },
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
    try {
      isChanged = await store.settle(tip.signature, settlement, tiers.epoch);
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
    // After a failure it may be this settlement that is there already.
    const isPersisted = isChanged || attempt.failures > 0;
    if (counted) tiers.settleOrder(counted.order, isPersisted ? counted : null);
    if (isPersisted) this.#options.onResult?.(outcomeOf(attempt.result));
    this.#options.ended(tip);
  }

  #failed(attempt: Attempt): void {
    attempt.failures++;
    // An order that may be persisted is tried until the store answers.
    if (attempt.counted && attempt.failures > failuresMax && !attempt.mayBePersisted) {
      this.#options.tiers.settleOrder(attempt.counted.order, null);
      Object.assign(attempt, this.#decide(attempt.tip, attempt.result), { failures: 0 });
    }
    if (this.#isStopped) return;
    const waitMs = Math.min(againMaxMs, againMs * 2 ** attempt.failures);
    this.#again.set(attempt, this.#nowMs() + waitMs);
    this.#arm();
  }

  #nowMs(): number {
    return Number(this.#options.clock.monotonicNs() / 1_000_000n);
  }
}
