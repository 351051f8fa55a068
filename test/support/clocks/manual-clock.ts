// ManualClock: time that a test controls.
//
// By default the time does not change until `advance`, which runs every timer at its own time.
// ManualClock.running() follows the system's clock, for tests with real sockets, and `move`
// advances it by hours at once.

import { type Clock, sleepWith, systemClock, type Timer } from "../../../src/core/clock.ts";

interface Due {
  atNs: bigint;
  order: number;
  periodNs: bigint | null;
  action: () => void;
}

const longestTimerMs = 2 ** 31 - 1;

export class ManualClock implements Clock {
  readonly sleep: Clock["sleep"];
  private readonly startNs: bigint;
  private readonly isRunning: boolean;
  /** Time by which the test has moved the clock. */
  private movedNs = 0n;
  /** Time by which the test has set the wall clock forward. */
  private wallStepNs = 0n;
  private nextOrder = 0;
  private readonly waiting = new Set<Due>();
  /** Only for a running clock: wakes for the first timer. */
  private wake: Timer | null = null;

  static running(): ManualClock {
    return new ManualClock(0n, true);
  }

  constructor(startNs = 1_767_225_600_000_000_000n, isRunning = false) {
    this.startNs = startNs;
    this.isRunning = isRunning;
    this.sleep = sleepWith(this);
  }

  nowNs(): bigint {
    const beganNs = this.isRunning ? systemClock.nowNs() : this.startNs;
    return this.movedNs + this.wallStepNs + beganNs;
  }

  /** Sets the wall clock forward, or back if negative. The monotonic time goes on. */
  setWallForward(ms: number): void {
    this.wallStepNs += toNs(ms);
  }

  monotonicNs(): bigint {
    return this.movedNs + (this.isRunning ? systemClock.monotonicNs() : 0n);
  }

  after(delayMs: number, action: () => void): Timer {
    return this.add(delayMs, null, action);
  }

  every(periodMs: number, action: () => void): Timer {
    if (!(periodMs > 0)) throw new RangeError(`expected a period above 0 ms, got ${periodMs}`);
    return this.add(periodMs, toNs(periodMs), action);
  }

  /** Number of pending timers, so that a test can check that none is left. */
  get pending(): number {
    return this.waiting.size;
  }

  /** Advances a stopped clock. Timers run at their own times; promises settle between them. */
  async advance(durationMs: number): Promise<void> {
    const endNs = this.movedNs + toNs(durationMs);
    for (;;) {
      await settle();
      const due = this.first();
      if (!due || due.atNs > endNs) break;
      this.movedNs = due.atNs;
      this.run(due);
    }
    this.movedNs = endNs;
    await settle();
  }

  /**
   * Moves a running clock forward. Overdue timers run one after the other, in order of their times.
   */
  move(durationMs: number): void {
    this.movedNs += toNs(durationMs);
    this.arm();
  }

  private first(): Due | undefined {
    let first: Due | undefined;
    for (const due of this.waiting) {
      if (!first || due.atNs < first.atNs || (due.atNs === first.atNs && due.order < first.order)) {
        first = due;
      }
    }
    return first;
  }

  private add(delayMs: number, periodNs: bigint | null, action: () => void): Timer {
    const beginNs = this.isRunning ? this.monotonicNs() : this.movedNs;
    const atNs = beginNs + toNs(Math.max(0, delayMs));
    const due: Due = { atNs, order: this.nextOrder++, periodNs, action };
    this.waiting.add(due);
    this.arm();
    return {
      cancel: () => {
        if (this.waiting.delete(due)) this.arm();
      },
    };
  }

  private run(due: Due): void {
    if (due.periodNs === null) this.waiting.delete(due);
    else due.atNs = (this.isRunning ? this.monotonicNs() : due.atNs) + due.periodNs;
    due.action();
  }

  private arm(): void {
    if (!this.isRunning) return;
    this.wake?.cancel();
    const due = this.first();
    if (!due) {
      this.wake = null;
      return;
    }
    const leftMs = Number(due.atNs - this.monotonicNs()) / 1e6;
    this.wake = systemClock.after(Math.min(Math.max(0, leftMs), longestTimerMs), () => {
      const next = this.first();
      if (next && next.atNs <= this.monotonicNs()) this.run(next);
      this.arm();
    });
  }
}

function toNs(ms: number): bigint {
  return BigInt(Math.round(ms * 1e6));
}

/** A few turns of the microtask queue: enough for chains of awaits on settled promises. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 8; turn++) await Promise.resolve();
}
