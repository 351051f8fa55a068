// Store counts: number, duration and success of database operations.
//
// The driver returned by `counted` counts operations; every query of the stores passes through it. The
// database's own driver counts batches. Read by the metrics and by readiness.

import { DurationHistogram, type HistogramValue } from "../../core/duration-histogram.ts";
import { isRefusedChange, type SqlDriver } from "./driver.ts";

/** A commit contains at most 2048. */
const batchBounds = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000] as const;

interface Operations {
  ended: bigint;
  failed: bigint;
}

export interface StoreNumbers {
  readonly queries: Readonly<Operations>;
  readonly transactions: Readonly<Operations>;
  /** Sent and not answered. */
  readonly underWay: number;
  readonly queryDurations: HistogramValue;
  readonly transactionDurations: HistogramValue;
  readonly batchSizes: HistogramValue;
  /**
   * Whether the database answered the last operation and none waits too long for its answer; null:
   * there was none yet.
   */
  readonly isReachable: boolean | null;
  /** Whether the last transaction failed, as on a full disk, which still answers queries. */
  readonly isWriteFailing: boolean;
}

/** A database that leaves an operation unanswered for this time counts as unreachable. */
const unansweredNs = 3_000_000_000n;

export class StoreCounts {
  readonly #operations = {
    query: { ended: 0n, failed: 0n, durations: new DurationHistogram() },
    transaction: { ended: 0n, failed: 0n, durations: new DurationHistogram() },
  };
  readonly #batchSizes = new DurationHistogram(batchBounds);
  readonly #nowNs: () => bigint;
  /** Unanswered operations, the oldest first. */
  readonly #underWay = new Set<{ readonly begunNs: bigint }>();
  #isReachable: boolean | null = null;
  #isWriteFailing = false;

  /** `nowNs`: monotonic. */
  constructor(nowNs: () => bigint) {
    this.#nowNs = nowNs;
  }

  /** The size of one commit, or of one round trip to the database. */
  batch(size: number): void {
    if (size > 0) this.#batchSizes.add(size);
  }

  /** Settles like `asked`. */
  async watch<T>(kind: "query" | "transaction", query: Promise<T>): Promise<T> {
    const counts = this.#operations[kind];
    const begunNs = this.#nowNs();
    const operation = { begunNs };
    this.#underWay.add(operation);
    try {
      const answer = await query;
      counts.ended++;
      this.#isReachable = true;
      if (kind === "transaction") this.#isWriteFailing = false;
      return answer;
    } catch (error) {
      counts.failed++;
      this.#isReachable = isRefusedChange(error);
      if (kind === "transaction" && !this.#isReachable) this.#isWriteFailing = true;
      throw error;
    } finally {
      this.#underWay.delete(operation);
      counts.durations.addNs(this.#nowNs() - begunNs);
    }
  }

  numbers(): StoreNumbers {
    const { query, transaction } = this.#operations;
    return {
      queries: { ended: query.ended, failed: query.failed },
      transactions: { ended: transaction.ended, failed: transaction.failed },
      underWay: this.#underWay.size,
      queryDurations: query.durations.value(),
      transactionDurations: transaction.durations.value(),
      batchSizes: this.#batchSizes.value(),
      isReachable: this.#isStuck ? false : this.#isReachable,
      isWriteFailing: this.#isWriteFailing,
    };
  }

  get #isStuck(): boolean {
    const [oldest] = this.#underWay;
    return oldest !== undefined && this.#nowNs() - oldest.begunNs > unansweredNs;
  }
}

/** `driver`, with each query and transaction counted. */
export function counted(driver: SqlDriver, counts: StoreCounts): SqlDriver {
  return {
    query: (sql, params) => counts.watch("query", driver.query(sql, params)),
    transaction: (statements, durability, news) =>
      counts.watch("transaction", driver.transaction(statements, durability, news)),
    onForeignChange: (listener) => driver.onForeignChange(listener),
    tryLock: (name, onLost) => driver.tryLock(name, onLost),
    close: () => driver.close(),
  };
}
