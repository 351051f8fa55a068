// Backoff: growing delays between attempts, with a random part, so that many clients do not return together.

interface BackoffOptions {
  readonly firstMs: number;
  readonly maxMs: number;
  /** 0 to 1. */
  readonly random: () => number;
}

export class Backoff {
  readonly #options: BackoffOptions;
  #failures = 0;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  /** The delay after one more failure: each twice the one before, reduced by up to a half. */
  next(): number {
    const { firstMs, maxMs, random } = this.#options;
    const whole = Math.min(maxMs, firstMs * 2 ** Math.min(this.#failures++, 30));
    return Math.round(whole * (1 - random() / 2));
  }

  reset(): void {
    this.#failures = 0;
  }
}
