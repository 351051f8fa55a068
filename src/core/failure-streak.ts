// Failures in a row of something that is tried again and again: which of them to log.
//
// A node may be away for hours: each kind of failure is logged once, and of a row of failures every
// `logEvery`th.

export class FailureStreak {
  readonly #logEvery: number;
  #count = 0;
  #last = "";

  constructor(logEvery: number) {
    this.#logEvery = logEvery;
  }

  /** True: the last try failed. */
  get isFailing(): boolean {
    return this.#count > 0;
  }

  /** Counts a failure. True: log it. */
  add(message: string): boolean {
    this.#count++;
    const isNew = message !== this.#last;
    this.#last = message;
    return isNew || this.#count % this.#logEvery === 1;
  }

  /** The next failure is the first one of a new row. */
  end(): void {
    this.#count = 0;
    this.#last = "";
  }
}
