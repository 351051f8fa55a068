// How long to leave a leader alone whose connection failed. Pure: the caller has clock and chance.
//
// Owned by leader.ts. Each failure in a row doubles the pause, up to half a minute, and chance cuts up
// to half of it off, so that many senders that were thrown out together do not come back together. A
// leader that said no gets a longer pause from the start: those that limit connections per minute
// would refuse sooner the more often somebody asks.

import type { SeededRandom } from "../../core/seeded-random.ts";
import { isRefusal } from "./close-names.ts";

const failureMs = 250;
const refusalMs = 2000;
const pauseMsMax = 30_000;
/** A connection that stood so long did not fail because it was made. */
const soundMs = 5000;

export class BackOff {
  readonly #random: SeededRandom;
  #failures = 0;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  get failures(): number {
    return this.#failures;
  }

  /** A connection ended in whatever way, after it stood for `stoodMs` (null: it never did). */
  noteEnd(stoodMs: number | null): void {
    if (stoodMs !== null && stoodMs >= soundMs) this.#failures = 0;
  }

  /** A connection failed so. Returns the pause. */
  pauseMsAfter(name: string, stoodMs: number | null): number {
    this.noteEnd(stoodMs);
    const isSoundEnd = stoodMs !== null && !isRefusal(name) && this.#failures === 0;
    const firstMs = isRefusal(name) ? refusalMs : isSoundEnd ? failureMs / 2 : failureMs;
    const pauseMs = Math.min(pauseMsMax, firstMs * 2 ** Math.min(this.#failures, 16));
    this.#failures++;
    return pauseMs * (1 - this.#random.share() / 2);
  }
}
