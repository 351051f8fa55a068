// Simulated time: the events of a run in the order of (time, sequence), and the clocks of its processes.
//
// Nothing here reads a real clock. Between two events all promises settle, so that the order of a run
// depends only on the events.

import { type Clock, sleepWith, type Timer } from "../../src/core/clock.ts";

/** A slot of the cluster. */
export const slotMs = 400;

/** The real one, taken before the guard replaces it. It runs after all settled promises. */
const afterPromises = setImmediate;

interface Due {
  readonly atNs: number;
  readonly sequence: number;
  /** null: cancelled. */
  action: (() => void) | null;
}

function isBefore(a: Due, b: Due): boolean {
  return a.atNs < b.atNs || (a.atNs === b.atNs && a.sequence < b.sequence);
}

/** Settles after all promises that can settle without a further event. */
export function settle(): Promise<void> {
  return new Promise((resolve) => void afterPromises(resolve));
}

export class SimulatedTime {
  /** A binary heap. */
  readonly #queue: Due[] = [];
  #sequence = 0;
  #nowNs = 0;
  /** Events so far. */
  events = 0;

  /** Since the begin of the run. */
  get nowNs(): number {
    return this.#nowNs;
  }

  get nowMs(): number {
    return this.#nowNs / 1e6;
  }

  /** Runs `action` at that time, after all events of the same time that were added before. */
  at(atNs: number, action: () => void): Timer {
    const due: Due = { atNs: Math.max(atNs, this.#nowNs), sequence: this.#sequence++, action };
    this.#add(due);
    return {
      cancel: () => {
        due.action = null;
      },
    };
  }

  /** Runs all events up to that time, inclusive. */
  async runUntil(endNs: number): Promise<void> {
    await settle();
    for (;;) {
      const next = this.#queue[0];
      if (!next || next.atNs > endNs) break;
      this.#removeFirst();
      if (!next.action) continue;
      this.#nowNs = next.atNs;
      this.events++;
      next.action();
      await settle();
    }
    this.#nowNs = endNs;
  }

  #add(due: Due): void {
    const queue = this.#queue;
    let place = queue.length;
    queue.push(due);
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = queue[above];
      if (!parent || !isBefore(due, parent)) break;
      queue[place] = parent;
      place = above;
    }
    queue[place] = due;
  }

  #removeFirst(): void {
    const queue = this.#queue;
    const last = queue.pop();
    if (!last || queue.length === 0) return;
    let place = 0;
    for (;;) {
      const left = 2 * place + 1;
      const [a, b] = [queue[left], queue[left + 1]];
      if (!a) break;
      const below = b && isBefore(b, a) ? left + 1 : left;
      const child = queue[below];
      if (!child || !isBefore(child, last)) break;
      queue[place] = child;
      place = below;
    }
    queue[place] = last;
  }
}

/** Begin of every run: 2026-01-01. */
const startNs = 1_767_225_600_000_000_000n;

/** The wall clock of the machine, which survives its processes and can be set. */
export class WallTime {
  readonly time: SimulatedTime;
  #setNs = 0n;

  constructor(time: SimulatedTime) {
    this.time = time;
  }

  nowNs(): bigint {
    return startNs + BigInt(this.time.nowNs) + this.#setNs;
  }

  nowMs(): number {
    return Number(this.nowNs() / 1_000_000n);
  }

  /** Positive: forward. */
  set(byMs: number): void {
    this.#setNs += BigInt(byMs) * 1_000_000n;
  }
}

/** The clock of one process: its timers end with it. */
export class ProcessClock implements Clock {
  readonly sleep: Clock["sleep"];
  readonly #wall: WallTime;
  readonly #bornNs: number;
  #isOver = false;

  constructor(wall: WallTime) {
    this.#wall = wall;
    this.#bornNs = wall.time.nowNs;
    this.sleep = sleepWith(this);
  }

  nowNs(): bigint {
    return this.#wall.nowNs();
  }

  monotonicNs(): bigint {
    return BigInt(this.#wall.time.nowNs - this.#bornNs);
  }

  after(delayMs: number, action: () => void): Timer {
    const atNs = this.#wall.time.nowNs + Math.round(Math.max(0, delayMs) * 1e6);
    return this.#wall.time.at(atNs, () => {
      if (!this.#isOver) action();
    });
  }

  every(periodMs: number, action: () => void): Timer {
    if (!(periodMs > 0)) throw new RangeError(`expected a period above 0 ms, got ${periodMs}`);
    let timer = { cancel: () => {} };
    const arm = (): void => {
      timer = this.after(periodMs, () => {
        arm();
        action();
      });
    };
    arm();
    return { cancel: () => timer.cancel() };
  }

  /** The process is killed. */
  end(): void {
    this.#isOver = true;
  }
}
