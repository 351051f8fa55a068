// A rate with a burst. Callers that exceed it wait, and take turns when it refills.
//
// Costs are not known before a caller has something to spend, so the balance may become negative once. The
// next caller waits until it is positive again.

import type { Clock, Timer } from "./clock.ts";

export interface RateLimit {
  readonly perSecond: number;
  readonly burst: number;
}

export class RateBudget {
  readonly #limit: RateLimit;
  readonly #clock: Pick<Clock, "monotonicNs" | "after">;
  /** In the order in which they came. */
  readonly #waiting = new Set<() => void>();
  #balance: number;
  #countedNs: bigint;
  #timer: Timer | undefined;

  constructor(limit: RateLimit, clock: Pick<Clock, "monotonicNs" | "after">) {
    this.#limit = limit;
    this.#clock = clock;
    this.#balance = limit.burst;
    this.#countedNs = clock.monotonicNs();
  }

  /** Something can be spent now, and nobody waits. */
  get isOpen(): boolean {
    return this.#waiting.size === 0 && this.#refilled() > 0;
  }

  /** A new budget would be the same. */
  get isFull(): boolean {
    return this.#waiting.size === 0 && this.#refilled() >= this.#limit.burst;
  }

  spend(cost: number): void {
    this.#balance = this.#refilled() - cost;
  }

  /** Calls `turn` once, when the balance is positive and all earlier callers had theirs. Returns a function that cancels it. */
  wait(turn: () => void): () => void {
    this.#waiting.add(turn);
    this.#arm();
    return () => {
      this.#waiting.delete(turn);
      this.#arm();
    };
  }

  #refilled(): number {
    const nowNs = this.#clock.monotonicNs();
    const seconds = Number(nowNs - this.#countedNs) / 1e9;
    const { perSecond, burst } = this.#limit;
    this.#balance = Math.min(burst, this.#balance + seconds * perSecond);
    this.#countedNs = nowNs;
    return this.#balance;
  }

  #arm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#waiting.size === 0) return;
    const waitMs = Math.max(0, (-this.#refilled() / this.#limit.perSecond) * 1000);
    this.#timer = this.#clock.after(Math.floor(waitMs) + 1, () => this.#serve());
  }

  #serve(): void {
    for (const turn of this.#waiting) {
      if (this.#refilled() <= 0) break;
      this.#waiting.delete(turn);
      turn();
    }
    this.#arm();
  }
}
