// BackOff: counts the failures of an action in a row, and gives the delay after each.
//
// Used by subscription.ts.

import { backOffMs } from "../../core/back-off.ts";

interface BackOffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  /** 0 to 1. */
  readonly random: () => number;
}

export class BackOff {
  readonly #options: BackOffOptions;
  #failures = 0;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  /** Failures in a row. */
  get failures(): number {
    return this.#failures;
  }

  /** Counts a failure and returns the delay after it. */
  next(): number {
    const { random } = this.#options;
    return Math.round(backOffMs(this.#options, this.#failures++, random()));
  }

  reset(): void {
    this.#failures = 0;
  }
}
