// Room: how many submissions may be under way at once.
//
// Asked by request-context.ts before a submission is looked at. Each takes a tenth of a millisecond of the event
// loop, so what is under way is what everybody else waits for: health, statuses, the routes' answers.
// What finds no room is refused while that is still cheap.

import { ShredwayError } from "../../core/errors.ts";

export class ConcurrencyLimit {
  readonly #most: number;
  #underWay = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get isFull(): boolean {
    return this.#underWay >= this.#most;
  }

  get underWay(): number {
    return this.#underWay;
  }

  get most(): number {
    return this.#most;
  }

  /** Settles as `work` does. Throws ShredwayError "overloaded" without calling it. */
  async with<T>(work: () => Promise<T> | T): Promise<T> {
    if (this.isFull) {
      throw new ShredwayError(
        "overloaded",
        `expected at most ${this.#most} submissions under way at once, got one more; try again`,
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
