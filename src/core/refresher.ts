// Refresher: keeps a copy in memory up to date with changes that others make in the store.
//
// One read runs at a time, so an older result never replaces a newer one. If changes arrive during a read,
// exactly one more read follows. Results apply at once, so a series of changes neither piles up nor delays
// what is visible.

import type { Clock, Timer } from "./clock.ts";

interface RefresherOptions {
  readonly clock: Clock;
  /** Reads the store and applies the result. */
  readonly read: () => Promise<void>;
  /** Called once for background reads that fail, until one succeeds; they are retried. */
  readonly failed: (error: unknown) => void;
}

const retryMs = 1000;

export class Refresher {
  readonly #options: RefresherOptions;
  #running: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  /** Of `told`: who follows one reading need not follow it twice. */
  #followed: Promise<void> | null = null;
  #retry: Timer | null = null;
  #isFailing = false;
  #isClosed = false;

  constructor(options: RefresherOptions) {
    this.#options = options;
  }

  /** Settles when everything that was stored before the call is in memory. Rejects if `read` does. */
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

  /** Another process changed something: reads until it succeeds. */
  told(): void {
    if (this.#isClosed) return;
    const reading = this.refresh();
    if (reading === this.#followed) return;
    this.#followed = reading;
    const succeeded = (): void => {
      this.#isFailing = false;
    };
    reading.then(succeeded, (error: unknown) => {
      if (this.#isClosed) return;
      if (!this.#isFailing) this.#options.failed(error);
      this.#isFailing = true;
      this.#retry ??= this.#options.clock.after(retryMs, () => {
        this.#retry = null;
        this.told();
      });
    });
  }

  /** Lets a read in progress end; nothing is retried. */
  close(): void {
    this.#isClosed = true;
    this.#retry?.cancel();
    this.#retry = null;
  }
}
