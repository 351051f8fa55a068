// One life of a process: a clock whose wall time can be set, and which stops with the process.

import { type Clock, sleepWith, type Timer } from "../../../src/core/clock.ts";
import type { ManualClock } from "../../support/clocks/manual-clock.ts";

export class RestartableClock implements Clock {
  readonly sleep: Clock["sleep"];
  /** Number of timers set so far. */
  timersSet = 0;
  readonly #clock: ManualClock;
  readonly #timers = new Set<Timer>();
  #isOver = false;
  #setNs: bigint;

  constructor(clock: ManualClock, setMs = 0) {
    this.#clock = clock;
    this.#setNs = BigInt(setMs) * 1_000_000n;
    this.sleep = sleepWith(this);
  }

  nowNs(): bigint {
    return this.#clock.nowNs() + this.#setNs;
  }

  monotonicNs(): bigint {
    return this.#clock.monotonicNs();
  }

  after(delayMs: number, action: () => void): Timer {
    if (delayMs >= 2 ** 31) throw new RangeError(`expected less than 2^31 ms, got ${delayMs}`);
    this.timersSet++;
    const timer = this.#clock.after(delayMs, () => {
      this.#timers.delete(timer);
      if (!this.#isOver) action();
    });
    this.#timers.add(timer);
    return {
      cancel: () => {
        timer.cancel();
        this.#timers.delete(timer);
      },
    };
  }

  every(periodMs: number, action: () => void): Timer {
    const timer = this.#clock.every(periodMs, action);
    this.#timers.add(timer);
    return timer;
  }

  /** Number of pending timers in this life. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Sets the wall clock. */
  set(byMs: number): void {
    this.#setNs += BigInt(byMs) * 1_000_000n;
  }

  /** The process is killed. */
  end(): void {
    this.#isOver = true;
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
  }
}
