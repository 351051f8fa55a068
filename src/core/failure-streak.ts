// FailureStreak: chooses which of many consecutive failures of a retried action to log.
//
// A node may be unavailable for hours. Each kind of failure is logged once, and then every
// `logEvery`th failure of a streak.

export class FailureStreak {
  readonly #logEvery: number;
  #count = 0;
  #last = "";

  constructor(logEvery: number) {
    this.#logEvery = logEvery;
  }

  /** True: the last attempt failed. */
  get isFailing(): boolean {
    return this.#count > 0;
  }

  /** Counts a failure. Returns true if it should be logged. */
  add(message: string): boolean {
    this.#count++;
    const isNew = message !== this.#last;
    this.#last = message;
    return isNew || this.#count % this.#logEvery === 1;
  }

  /** Ends the streak: the next failure starts a new one. */
  end(): void {
    this.#count = 0;
    this.#last = "";
  }
}
