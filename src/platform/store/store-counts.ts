// Store counts: how often the database was asked, how long it took, whether it answered.
//
// Operations are counted by the driver that `counted` makes, over which every question of the stores goes;
// batches by the database's own driver. Read by the metrics and by readiness.

import { DurationHistogram, type HistogramValue } from "../../core/duration-histogram.ts";
import type { SqlDriver } from "./driver.ts";

/** Of one commit at most 2048. */
const batchBounds = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000] as const;

interface Operations {
  ended: bigint;
  failed: bigint;
}

export interface StoreNumbers {
  readonly queries: Readonly<Operations>;
  readonly transactions: Readonly<Operations>;
  /** Asked and not answered. */
  readonly underWay: number;
  readonly queryDurations: HistogramValue;
  readonly transactionDurations: HistogramValue;
  readonly batchSizes: HistogramValue;
  /** Whether the last question was answered; null: none was asked yet. */
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

  /** What shared a commit, or a turn of the database. */
  batch(size: number): void {
    if (size > 0) this.#batchSizes.add(size);
  }

  /** Settles as `asked`. */
  async watch<T>(kind: "query" | "transaction", asked: Promise<T>): Promise<T> {
    const counts = this.#operations[kind];
    const begunNs = this.#nowNs();
    this.#underWay++;
    try {
      const answer = await asked;
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
