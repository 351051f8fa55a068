// Rate budgets by key, such as an API key or the address of a caller, each made when its key first spends.
//
// What exceeds the rate of a key is refused. A key that was forgotten begins with a new burst.

import type { Clock } from "./clock.ts";
import { RateBudget, type RateLimit } from "./rate-budget.ts";

export class KeyedBudgets {
  readonly #limit: RateLimit;
  readonly #clock: Clock;
  readonly #keysMax: number;
  /** Oldest key first. */
  readonly #budgets = new Map<string, RateBudget>();

  /** `keysMax`: above it, the oldest key is forgotten. Without it, call `forgetFull`. */
  constructor(limit: RateLimit, clock: Clock, keysMax = Number.POSITIVE_INFINITY) {
    this.#limit = limit;
    this.#clock = clock;
    this.#keysMax = keysMax;
  }

  /** The budget of the key, to be spent from at once; null: nothing is left. */
  open(key: string): Pick<RateBudget, "spend"> | null {
    let budget = this.#budgets.get(key);
    if (!budget) {
      budget = new RateBudget(this.#limit, this.#clock);
      this.#budgets.set(key, budget);
      this.#forgetOldest();
    }
    return budget.isOpen ? budget : null;
  }

  /** Forgets the key if it has a whole burst left. */
  forgetFull(key: string): void {
    if (this.#budgets.get(key)?.isFull) this.#budgets.delete(key);
  }

  #forgetOldest(): void {
    if (this.#budgets.size <= this.#keysMax) return;
    const oldest = this.#budgets.keys().next();
    if (!oldest.done) this.#budgets.delete(oldest.value);
  }
}
