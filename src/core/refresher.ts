// Refresher: what is in memory follows what others change in the store.
//
// Made by whoever keeps such a copy. One reading runs at a time, so an older one never replaces a newer
// one; however often it is asked for meanwhile, one more follows, and what was read counts at once: many
// changes in a row neither pile up nor keep each other from being seen.

import type { Clock, Timer } from "./clock.ts";

interface RefresherOptions {
  readonly clock: Clock;
  /** Reads, and takes over what it read. */
  readonly read: () => Promise<void>;
  /** Told once of readings that nobody waits for, until one succeeds; they are tried again. */
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

  /** Settles when everything that was kept before the call is in memory. Rejects as `read`. */
  refresh(): Promise<void> {
    if (this.#running === null) {
      const running = this.#options.read().finally(() => {
        this.#running = null;
      });
      this.#running = running;
      return running;
    }
    // The one under way may have read before the change.
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = null;
        return this.refresh();
      });
    return this.#next;
  }

  /** Others changed something: it is read until that succeeds. */
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

  /** What is under way still ends; nothing is tried again. */
  close(): void {
    this.#isClosed = true;
    this.#retry?.cancel();
    this.#retry = null;
  }
}
