// Retries of proofs that could not be stored: at most one waits for each address.
//
// A receiver may not answer the same challenge again, so its datagram is processed once more later.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";

/** After a failure of the store. */
export const storeRetryMs = 5_000;

interface ProofRetriesDependencies {
  readonly clock: Pick<Clock, "after">;
  readonly log: Pick<Logger, "warn">;
}

export class ProofRetries {
  readonly #dependencies: ProofRetriesDependencies;
  readonly #timers = new Map<string, Timer>();
  #isClosed = false;

  constructor(dependencies: ProofRetriesDependencies) {
    this.#dependencies = dependencies;
  }

  /** Logs the failure, and calls `retry` once, unless a retry already waits for the address. */
  failed(address: string, error: unknown, retry: () => void): void {
    const { clock, log } = this.#dependencies;
    log.warn(`destinations: the proof of ${address} could not be stored: ${messageOf(error)}`);
    if (this.#isClosed || this.#timers.has(address)) return;
    const timer = clock.after(storeRetryMs, () => {
      this.#timers.delete(address);
      retry();
    });
    this.#timers.set(address, timer);
  }

  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }
}
