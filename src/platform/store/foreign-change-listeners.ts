// Listeners for changes by other processes. A listener that throws does not affect the others.
//
// Used by sqlite/driver.ts and postgres/driver.ts.

import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type { ForeignChangeListener } from "./driver.ts";

export class ForeignChangeListeners {
  readonly #log: Logger;
  readonly #listeners = new Set<ForeignChangeListener>();

  constructor(log: Logger) {
    this.#log = log;
  }

  get isEmpty(): boolean {
    return this.#listeners.size === 0;
  }

  /** Returns a function that removes it. A function that was added twice is called twice. */
  add(listener: ForeignChangeListener): () => void {
    const own: ForeignChangeListener = (news) => listener(news);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  notify(news: readonly string[] | null): void {
    for (const listener of this.#listeners) {
      try {
        listener(news);
      } catch (error) {
        this.#log.error(`after another process changed the store: ${messageOf(error)}`);
      }
    }
  }
}
