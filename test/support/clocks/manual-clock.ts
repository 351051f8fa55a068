// ManualClock: time that moves only when a test says so, in the order of the timers.

import { type Clock, sleepWith, type Timer } from "../../../src/core/clock.ts";

interface Due {
  atNs: bigint;
  order: number;
  periodNs: bigint | null;
  action: () => void;
}

export class ManualClock implements Clock {
  readonly sleep: Clock["sleep"];
  private readonly startNs: bigint;
  private elapsedNs = 0n;
  private nextOrder = 0;
  private readonly waiting = new Set<Due>();

  constructor(startNs = 1_767_225_600_000_000_000n) {
    this.startNs = startNs;
    this.sleep = sleepWith(this);
  }

  nowNs(): bigint {
    return this.startNs + this.elapsedNs;
  }

  monotonicNs(): bigint {
    return this.elapsedNs;
  }

  after(delayMs: number, action: () => void): Timer {
    return this.add(delayMs, null, action);
  }

  every(periodMs: number, action: () => void): Timer {
    if (!(periodMs > 0)) throw new RangeError(`expected a period above 0 ms, got ${periodMs}`);
    return this.add(periodMs, toNs(periodMs), action);
  }

  /** How many timers are waiting: a test can see that nothing was left behind. */
  get pending(): number {
    return this.waiting.size;
  }

  /** Moves time on, running every timer at its own moment; lets promises settle between them. */
  async advance(durationMs: number): Promise<void> {
    const endNs = this.elapsedNs + toNs(durationMs);
    for (;;) {
      await settle();
      const due = this.first();
      if (!due || due.atNs > endNs) break;
      this.elapsedNs = due.atNs;
      if (due.periodNs === null) this.waiting.delete(due);
      else due.atNs += due.periodNs;
      due.action();
    }
    this.elapsedNs = endNs;
    await settle();
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
    const atNs = this.elapsedNs + toNs(Math.max(0, delayMs));
    const due: Due = { atNs, order: this.nextOrder++, periodNs, action };
    this.waiting.add(due);
    return { cancel: () => void this.waiting.delete(due) };
  }
}

function toNs(ms: number): bigint {
  return BigInt(Math.round(ms * 1e6));
}

/** A few turns of the microtask queue: enough for chains of awaits on settled promises. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 8; turn++) await Promise.resolve();
}
