// MovableClock: real time that a test can push forward, hours at once.
//
// For tests in which sockets and chains run in real time and a rule waits for days. Timers that are
// overdue after a push run at once, in order of their times; those of others are not touched.

import { type Clock, sleepWith, systemClock, type Timer } from "../../../src/core/clock.ts";

interface Waiting {
  readonly dueNs: bigint;
  readonly action: () => void;
  timer: Timer;
}

const longestMs = 2 ** 31 - 1;

export class MovableClock implements Clock {
  readonly sleep: Clock["sleep"] = sleepWith(this);
  readonly #waiting = new Set<Waiting>();
  #aheadNs = 0n;

  nowNs(): bigint {
    return systemClock.nowNs() + this.#aheadNs;
  }

  monotonicNs(): bigint {
    return systemClock.monotonicNs() + this.#aheadNs;
  }

  after(delayMs: number, action: () => void): Timer {
    const dueNs = this.monotonicNs() + BigInt(Math.round(delayMs * 1e6));
    const waiting: Waiting = { dueNs, action, timer: { cancel: () => {} } };
    this.#waiting.add(waiting);
    this.#arm(waiting);
    return {
      cancel: () => {
        waiting.timer.cancel();
        this.#waiting.delete(waiting);
      },
    };
  }

  every(periodMs: number, action: () => void): Timer {
    let timer: Timer;
    const next = (): void => {
      timer = this.after(periodMs, () => {
        next();
        action();
      });
    };
    next();
    return { cancel: () => timer.cancel() };
  }

  move(ms: number): void {
    this.#aheadNs += BigInt(ms) * 1_000_000n;
    const byTime = [...this.#waiting].toSorted((a, b) => (a.dueNs < b.dueNs ? -1 : 1));
    for (const waiting of byTime) this.#arm(waiting);
  }

  #arm(waiting: Waiting): void {
    waiting.timer.cancel();
    const leftMs = Number(waiting.dueNs - this.monotonicNs()) / 1e6;
    waiting.timer = systemClock.after(Math.min(Math.max(0, leftMs), longestMs), () => {
      if (this.monotonicNs() < waiting.dueNs) {
        this.#arm(waiting);
      } else if (this.#waiting.delete(waiting)) {
        waiting.action();
      }
    });
  }
}
