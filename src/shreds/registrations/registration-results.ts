// RegistrationResults: what became of a registration, until it is kept.
//
// Called by registration-watch.ts with each end that it found, and by registration-count.ts. A tip that counts has its order from the
// first attempt to the last: a commit that failed may have been done all the same, and the book must not
// pass an order that the store may hold. Failed commits are tried again, so every order is settled. When
// the store says that the book's term is over nothing is: what is pending still is the next keeper's.

import { ShredwayError } from "../../core/errors.ts";
import { TimerWheel } from "../../core/timer-wheel.ts";
import type {
  Registration,
  RegistrationReason,
  RegistrationStore,
  Settlement,
} from "./registration-types.ts";
import type { BookedTip, TipBook } from "./tier-accounting.ts";

export type SettledTip = Pick<Registration, "signature" | "accountId" | "registeredMs">;

export type Ending =
  | { readonly state: "counted"; readonly lamports: bigint }
  | { readonly state: "dropped"; readonly reason: RegistrationReason };

interface RegistrationResultsDependencies<T extends SettledTip> {
  readonly store: Pick<RegistrationStore, "settle">;
  readonly tiers: TipBook;
  /** Monotonic. */
  nowMs(): number;
  /** It is kept: nothing is left to do for it. */
  ended(tip: T): void;
  /** Hears of each that is kept, for the numbers: "counted", or why it was dropped. */
  readonly settled?: ((outcome: string) => void) | undefined;
  failed(error: unknown): void;
}

interface Attempt<T> {
  readonly tip: T;
  readonly ending: Ending;
  settlement: Settlement;
  counted: BookedTip | null;
  failures: number;
  /** Nobody knows of one of them whether it was one. */
  mayBeKept: boolean;
}

const tickMs = 100;
const againMs = 500;
const againMaxMs = 15_000;
/** About two minutes. Should it be the order that cannot be kept, the book must not wait for ever. */
const failuresMax = 12;

function outcomeOf(ending: Ending): string {
  return ending.state === "counted" ? ending.state : ending.reason;
}

/** A failure of the store of which nobody knows whether it was one. */
export function isUnknown(error: unknown): boolean {
  return error instanceof ShredwayError && error.details["code"] === "UNKNOWN";
}

export class RegistrationResults<T extends SettledTip> {
  readonly #parts: RegistrationResultsDependencies<T>;
  readonly #again: TimerWheel<Attempt<T>>;
  readonly #underWay = new Set<Promise<void>>();
  #isStopped = false;

  constructor(parts: RegistrationResultsDependencies<T>) {
    this.#parts = parts;
    this.#again = new TimerWheel(tickMs, parts.nowMs());
  }

  end(tip: T, ending: Ending): void {
    if (this.#isStopped) return;
    this.#try({ tip, ending, ...this.#decide(tip, ending), failures: 0, mayBeKept: false });
  }

  /** Tries again what is due. */
  turn(nowMs: number): void {
    if (this.#isStopped) return;
    for (const attempt of this.#again.turn(nowMs)) this.#try(attempt);
  }

  /** Settles when what is under way has ended; nothing is tried again. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#underWay);
  }

  #decide(tip: T, ending: Ending): Pick<Attempt<T>, "settlement" | "counted"> {
    const { tiers } = this.#parts;
    if (ending.state === "dropped") {
      const { state, reason } = ending;
      const settledMs = tiers.nowMs();
      return {
        settlement: { state, settledMs, countedLamports: null, countedOrder: null, reason },
        counted: null,
      };
    }
    const { state, lamports } = ending;
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

  #try(attempt: Attempt<T>): void {
    const work = this.#settle(attempt)
      .catch((error: unknown) => this.#parts.failed(error))
      .finally(() => this.#underWay.delete(work));
    this.#underWay.add(work);
  }

  async #settle(attempt: Attempt<T>): Promise<void> {
    const { store, tiers } = this.#parts;
    const { tip, settlement, counted } = attempt;
    let isChanged: boolean | null;
    try {
      isChanged = await store.settle(tip.signature, settlement, tiers.epoch);
    } catch (error) {
      this.#parts.failed(error);
      attempt.mayBeKept ||= isUnknown(error);
      this.#failed(attempt);
      return;
    }
    if (isChanged === null) {
      this.#isStopped = true;
      tiers.giveUp();
      return;
    }
    // After a failure it may be this settlement that is there already.
    const isKept = isChanged || attempt.failures > 0;
    if (counted) tiers.settleOrder(counted.order, isKept ? counted : null);
    if (isKept) this.#parts.settled?.(outcomeOf(attempt.ending));
    this.#parts.ended(tip);
  }

  #failed(attempt: Attempt<T>): void {
    attempt.failures++;
    // An order that may be kept is tried until the store tells.
    if (attempt.counted && attempt.failures > failuresMax && !attempt.mayBeKept) {
      this.#parts.tiers.settleOrder(attempt.counted.order, null);
      Object.assign(attempt, this.#decide(attempt.tip, attempt.ending), { failures: 0 });
    }
    if (this.#isStopped) return;
    const waitMs = Math.min(againMaxMs, againMs * 2 ** attempt.failures);
    this.#again.set(attempt, this.#parts.nowMs() + waitMs);
  }
}
