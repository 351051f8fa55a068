// Due timer: one timer for all items of a due heap.
//
// Created by destinations.ts. Times are wall time, and the wall clock may be set, so no timer is longer than
// a minute.

import type { Clock, Timer } from "../../core/clock.ts";
import { DueHeap } from "./due-heap.ts";

const timerMaxMs = 60_000;

export class DueTimer {
  readonly #due = new DueHeap();
  readonly #clock: Clock;
  readonly #visit: (id: string) => void;
  #timer: { readonly timer: Timer; readonly atMs: number } | null = null;
  #isClosed = false;

  /** `visit` is called with each due item. */
  constructor(clock: Clock, visit: (id: string) => void) {
    this.#clock = clock;
    this.#visit = visit;
  }

  /** Replaces an earlier time; null: never due. */
  set(id: string, atMs: number | null): void {
    this.#due.set(id, atMs);
    this.#arm();
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.timer.cancel();
    this.#timer = null;
  }

  #arm(): void {
    const { nextMs } = this.#due;
    if (this.#isClosed) return;
    if (nextMs === null) {
      this.#timer?.timer.cancel();
      this.#timer = null;
      return;
    }
    const nowMs = this.#nowMs();
    const atMs = Math.min(Math.max(nextMs, nowMs), nowMs + timerMaxMs);
    if (this.#timer && this.#timer.atMs <= atMs && this.#timer.atMs >= nowMs) return;
    this.#timer?.timer.cancel();
    const timer = this.#clock.after(atMs - nowMs, () => this.#turn());
    this.#timer = { timer, atMs };
  }

  #turn(): void {
    this.#timer = null;
    for (const id of this.#due.takeDue(this.#nowMs())) this.#visit(id);
    this.#arm();
  }

  #nowMs(): number {
    return Number(this.#clock.nowNs() / 1_000_000n);
  }
}
