// Store counts: number, duration and success of database operations.
//
// The driver returned by `counted` counts operations; every query of the stores passes through it. The
// database's own driver counts batches. Read by the metrics and by readiness.

import { DurationHistogram, type HistogramValue } from "../../core/duration-histogram.ts";
import type { SqlDriver } from "./driver.ts";

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
  /** Whether the last operation succeeded; null: there was none yet. */
  readonly isReachable: boolean | null;
}

export class StoreCounts {
  readonly #operations = {
    query: { ended: 0n, failed: 0n, durations: new DurationHistogram() },
    transaction: { ended: 0n, failed: 0n, durations: new DurationHistogram() },
  };
  readonly #batchSizes = new DurationHistogram(batchBounds);
  readonly #nowNs: () => bigint;
  #underWay = 0;
  #isReachable: boolean | null = null;

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
    this.#underWay++;
    try {
      const answer = await query;
      counts.ended++;
      this.#isReachable = true;
      return answer;
    } catch (error) {
      counts.failed++;
      this.#isReachable = false;
      throw error;
    } finally {
      this.#underWay--;
      counts.durations.addNs(this.#nowNs() - begunNs);
    }
  }

  numbers(): StoreNumbers {
    const { query, transaction } = this.#operations;
    return {
      queries: { ended: query.ended, failed: query.failed },
      transactions: { ended: transaction.ended, failed: transaction.failed },
      underWay: this.#underWay,
      queryDurations: query.durations.value(),
      transactionDurations: transaction.durations.value(),
      batchSizes: this.#batchSizes.value(),
      isReachable: this.#isReachable,
    };
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
