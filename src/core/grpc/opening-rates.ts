// Rate at which callers open calls, before anything about them is known.
//
// Owned by grpc-server.ts. A caller could open and cancel calls without end, on many connections, and each of
// them costs the event loop time. Memory is bounded.

import type { Clock } from "../clock.ts";
import { RateBudget } from "../rate-budget.ts";

const callersMax = 10_000;

export interface OpeningRate {
  readonly perSecond: number;
  readonly burst: number;
}

export class OpeningRates {
  readonly #rate: OpeningRate;
  readonly #clock: Clock;
  readonly #budgets = new Map<string, RateBudget>();

  constructor(rate: OpeningRate, clock: Clock) {
    this.#rate = rate;
    this.#clock = clock;
  }

  /** Counts a call of `caller`. False: it exceeds the rate and is not counted. */
  count(caller: string): boolean {
    let budget = this.#budgets.get(caller);
    if (!budget) {
      budget = new RateBudget(this.#rate, this.#clock);
      this.#budgets.set(caller, budget);
      this.#forgetOldest();
    }
    if (!budget.isOpen) return false;
    budget.spend(1);
    return true;
  }

  #forgetOldest(): void {
    if (this.#budgets.size <= callersMax) return;
    const oldest = this.#budgets.keys().next();
    if (!oldest.done) this.#budgets.delete(oldest.value);
  }
}
