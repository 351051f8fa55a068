// RareWarning: logs a repeated warning at most once per interval.

import type { Clock } from "./clock.ts";

/** Use this for a warning that the caller logs itself, for example with fields. */
export class WarningInterval {
  readonly #clock: Pick<Clock, "monotonicNs">;
  readonly #everyNs: bigint;
  #nextNs: bigint | null = null;

  constructor(clock: Pick<Clock, "monotonicNs">, everyMs: number) {
    this.#clock = clock;
    this.#everyNs = BigInt(everyMs) * 1_000_000n;
  }

  /**
   * Returns true if the warning should be logged now, and restarts the interval. False: the last
   * warning was too recent.
   */
  begin(): boolean {
    const nowNs = this.#clock.monotonicNs();
    if (this.#nextNs !== null && nowNs < this.#nextNs) return false;
    this.#nextNs = nowNs + this.#everyNs;
    return true;
  }
}

interface RareWarningOptions {
  readonly clock: Pick<Clock, "monotonicNs">;
  readonly log: { warn(text: string): void };
}

export class RareWarning {
  readonly #log: RareWarningOptions["log"];
  readonly #interval: WarningInterval;

  constructor({ clock, log }: RareWarningOptions, everyMs: number) {
    this.#log = log;
    this.#interval = new WarningInterval(clock, everyMs);
  }

  /** Calls `text` only if the warning is logged. */
  give(text: () => string): void {
    if (this.#interval.begin()) this.#log.warn(text());
  }
}
