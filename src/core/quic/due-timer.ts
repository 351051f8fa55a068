// Due timer: one timer for something whose due time moves often, mostly to later.
//
// Used by QUIC connections, whose every packet moves the due time.

import type { Clock, Timer } from "../clock.ts";

export class DueTimer {
  readonly #clock: Clock;
  readonly #action: () => void;
  #timer: Timer | undefined;
  #dueNs = 0n;

  /** `action` may find that nothing is due yet; it then sets the timer again. */
  constructor(clock: Clock, action: () => void) {
    this.#clock = clock;
    this.#action = action;
  }

  /** `dueNs` is monotonic. A timer that fires earlier stays, because moving it would cost more. */
  set(dueNs: bigint): void {
    if (this.#timer) {
      if (this.#dueNs <= dueNs) return;
      this.#timer.cancel();
    }
    this.#dueNs = dueNs;
    const restMs = Math.ceil(Number(dueNs - this.#clock.monotonicNs()) / 1e6);
    this.#timer = this.#clock.after(Math.max(1, restMs), () => {
      this.#timer = undefined;
      this.#action();
    });
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
