// Refresher: updates a copy in memory after changes of the store by others.
//
// One read runs at a time, so an older result never replaces a newer one. If changes arrive during
// a read, exactly one more read follows. Results apply immediately, so a series of changes neither
// queues up nor delays visible results.

import type { Clock, Timer } from "./clock.ts";

interface RefresherOptions {
  readonly clock: Clock;
  /** Reads the store and applies the result. */
  readonly read: () => Promise<void>;
  /** Called once when background reads fail, until one succeeds. They are retried. */
  readonly failed: (error: unknown) => void;
}

const retryMs = 1000;

export class Refresher {
  readonly #options: RefresherOptions;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  /** The read whose result `notifyChange` already handles. */
  #observedRead: Promise<void> | null = null;
  #retry: Timer | null = null;
  #isFailing = false;
  #isClosed = false;

  constructor(options: RefresherOptions) {
    this.#options = options;
  }

  /**
   * Settles when everything that was stored before the call is in memory. Rejects if `read` does.
   */
  refresh(): Promise<void> {
    if (this.#running === null) {
      const running = this.#options.read().finally(() => {
        this.#running = null;
      });
      this.#running = running;
      return running;
    }
    // The read in progress may have started before the change.
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = null;
        return this.refresh();
      });
    return this.#next;
  }

  /** Another process changed the store: reads until one read succeeds. */
  notifyChange(): void {
    if (this.#isClosed) return;
    const reading = this.refresh();
    if (reading === this.#observedRead) return;
    this.#observedRead = reading;
    const succeeded = (): void => {
      this.#isFailing = false;
    };
    reading.then(succeeded, (error: unknown) => {
      if (this.#isClosed) return;
      if (!this.#isFailing) this.#options.failed(error);
      this.#isFailing = true;
      this.#retry ??= this.#options.clock.after(retryMs, () => {
        this.#retry = null;
        this.notifyChange();
      });
    });
  }

  /** Waits for the read in progress and retries nothing. */
  close(): void {
    this.#isClosed = true;
    this.#retry?.cancel();
    this.#retry = null;
  }
}
