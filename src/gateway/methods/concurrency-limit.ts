// Concurrency limit of submissions.
//
// request-context.ts uses it before it processes a submission. Each submission takes a tenth of a
// millisecond of the event loop, which delays health checks, status queries and the routes'
// responses. A submission above the limit is refused while that is still cheap.

import { ShredwayError } from "../../core/errors.ts";

export class ConcurrencyLimit {
  readonly #max: number;
  #underWay = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get isFull(): boolean {
    return this.#underWay >= this.#max;
  }

  get underWay(): number {
    return this.#underWay;
  }

  get max(): number {
    return this.#max;
  }

  /**
   * Runs `work` and settles like it. Above the limit, rejects with ShredwayError "overloaded"
   * without calling `work`.
   */
  async with<T>(work: () => Promise<T> | T): Promise<T> {
    if (this.isFull) {
      throw new ShredwayError(
        "overloaded",
        `too many requests in progress: at most ${this.#max}; retry in 1 s`,
      );
    }
    this.#underWay++;
    try {
      return await work();
    } finally {
      this.#underWay--;
    }
  }
}
