// What both databases' drivers do with the jobs that wait for the next commit: the limits, the batches,
// their counts and the refusals.
//
// Used by sqlite/driver.ts and postgres/driver.ts. Each decides itself when a batch leaves.

import { ShredwayError } from "../../core/errors.ts";
import type { TransactionEnd } from "./driver.ts";
import type { StoreCounts } from "./store-counts.ts";

/** At 20,000 a second that is five seconds of a database that does not answer. */
export const waitingMax = 100_000;
/** Jobs of one commit: keeps the others' wait for it below about 100 ms. */
export const batchMax = 2048;

/** How a transaction ended, by the changes of its statements; the last is -1 when it had to change something. */
export function transactionEndOf(changes: readonly number[]): TransactionEnd {
  const isCommitted = changes.at(-1) !== -1;
  return { isCommitted, changes: isCommitted ? changes : changes.slice(0, -1) };
}

export class BatchQueue<Job> {
  readonly #name: string;
  readonly #counts: StoreCounts | undefined;
  #waiting: Job[] = [];

  /** `name`: of the database, for messages. */
  constructor(name: string, counts: StoreCounts | undefined) {
    this.#name = name;
    this.#counts = counts;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Throws ShredwayError "store_failed" when too many wait. */
  add(job: Job): void {
    if (this.#waiting.length >= waitingMax) {
      throw this.failure(`expected at most ${waitingMax} changes to wait, got more`);
    }
    this.#waiting.push(job);
  }

  /** Takes the oldest jobs, as many as share a commit. */
  nextBatch(): Job[] {
    const jobs = this.#waiting.slice(0, batchMax);
    this.#waiting = this.#waiting.slice(jobs.length);
    this.#counts?.batch(jobs.length);
    return jobs;
  }

  /** Takes the oldest jobs up to the first that `isKept`. */
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

  /** The error of whatever is asked of a driver after its `close`. */
  closed(): ShredwayError {
    return this.failure("expected a store that is open, got a closed one");
  }
}
