// Pause after a failed connection to a leader. Pure: the caller provides clock and randomness.
//
// Owned by leader.ts. Each failure in a row doubles the pause, up to 30 s. Random jitter removes up
// to half of it, so that many senders that were disconnected together do not reconnect together.
// After an unanswered handshake, the pause lasts at most one leader window. A refusal starts with a
// longer pause, because leaders with a connection limit per minute would refuse again sooner.

import { backOffMs } from "../../core/back-off.ts";
import { isRefusal } from "../../core/quic/close-names.ts";
import type { SeededRandom } from "../../core/seeded-random.ts";

const failureMs = 250;
const refusalMs = 2000;
const pauseMsMax = 30_000;
/** Four slots: a leader that is back must not lose its whole next window. */
const unansweredMsMax = 1600;
/** After so long a connection counts as healthy, and its end does not increase the pause. */
const healthyMs = 5000;

export class BackOff {
  readonly #random: SeededRandom;
  #failures = 0;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  get failures(): number {
    return this.#failures;
  }

  /**
   * Records the end of a connection that was established for `connectedMs` (null: never
   * established).
   */
  noteEnd(connectedMs: number | null): void {
    if (connectedMs !== null && connectedMs >= healthyMs) this.#failures = 0;
  }

  /** Records a failed connection and returns the pause. `name`: see close-names.ts. */
  pauseMsAfter(name: string, connectedMs: number | null): number {
    this.noteEnd(connectedMs);
    const isHealthyEnd = connectedMs !== null && !isRefusal(name) && this.#failures === 0;
    const firstMs = isRefusal(name) ? refusalMs : isHealthyEnd ? failureMs / 2 : failureMs;
    const maxMs = name === "handshake_timeout" ? unansweredMsMax : pauseMsMax;
    return backOffMs({ firstMs, maxMs }, this.#failures++, this.#random.share());
  }
}
