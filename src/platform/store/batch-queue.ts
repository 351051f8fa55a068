// Batch queue: limits, batches, counts and rejections of the jobs that wait for the next commit.
//
// Used by sqlite/driver.ts and postgres/driver.ts. Each driver decides when a batch starts.

import { ShredwayError } from "../../core/errors.ts";
import type { TransactionEnd } from "./driver.ts";
import type { StoreCounts } from "./store-counts.ts";

/** At 20,000 jobs per second, this bridges five seconds without a database. */
export const waitingMax = 100_000;
/** Maximum number of jobs in one commit; keeps the wait for a commit below about 100 ms. */
export const batchMax = 2048;

/**
 * The result of a transaction from the changes of its statements; the last is -1 if it had to change a
 * row and found none.
 */
export function transactionEndOf(changes: readonly number[]): TransactionEnd {
  const isCommitted = changes.at(-1) !== -1;
  return { isCommitted, changes: isCommitted ? changes : changes.slice(0, -1) };
}

export class BatchQueue<Job> {
  readonly #name: string;
  readonly #counts: StoreCounts | undefined;
  #waiting: Job[] = [];

  /** `name`: name of the database for error messages. */
  constructor(name: string, counts: StoreCounts | undefined) {
    this.#name = name;
    this.#counts = counts;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Throws ShredwayError "store_failed" if the queue is full. */
  add(job: Job): void {
    if (this.#waiting.length >= waitingMax) {
      throw this.failure(
        `the queue of the database is full: expected at most ${waitingMax} waiting changes`,
      );
    }
    this.#waiting.push(job);
  }

  /** Takes the oldest jobs, as many as may share a commit. */
  nextBatch(): Job[] {
    const jobs = this.#waiting.slice(0, batchMax);
    this.#waiting = this.#waiting.slice(jobs.length);
    this.#counts?.batch(jobs.length);
    return jobs;
  }

  /** Takes the oldest jobs up to the first one for which `isKept` is true. */
  takeUntil(isKept: (job: Job) => boolean): Job[] {
    const end = this.#waiting.findIndex(isKept);
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
  }

  takeAll(): Job[] {
    return this.#waiting.splice(0);
  }

  failure(message: string): ShredwayError {
    return new ShredwayError("store_failed", `${this.#name}: ${message}`);
  }

  /** The error of every call after the driver's `close`. */
  closed(): ShredwayError {
    return this.failure("the store is closed");
  }
}
