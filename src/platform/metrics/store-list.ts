// Metrics of the store: reachability, duration and queue of the database.

import type { HistogramValue } from "../../core/duration-histogram.ts";
import { counters, gauge, gauges, histogram, type Metric } from "./types.ts";

export interface StoreFacts {
  /** "sqlite" or "postgres". */
  readonly kind: string;
  /** Name of this node on the shared database; "": the database belongs to this process alone. */
  readonly node: string;
  /** Whether the database answered the last query; null: no query was sent yet. */
  readonly isReachable: boolean | null;
  /** Whether the last change was not stored. */
  readonly isWriteFailing: boolean;
  readonly queries: { readonly ended: bigint; readonly failed: bigint };
  readonly transactions: { readonly ended: bigint; readonly failed: bigint };
  readonly underWay: number;
  readonly queryDurations: HistogramValue;
  readonly transactionDurations: HistogramValue;
  readonly batchSizes: HistogramValue;
  /** Acknowledged submissions that only the journal has. */
  readonly journaled: number;
}

export const storeMetrics: readonly Metric<StoreFacts>[] = [
  gauges(
    "shredway_store_info",
    ["database", "node"],
    "Always 1. The labels are the kind of the database and the name of this node.",
    ({ kind, node }, add) => add([kind, node], 1),
  ),
  gauge(
    "shredway_store_reachable",
    "1: the database answered the last query and stored the last change. 0: it did not.",
    ({ isReachable, isWriteFailing }) =>
      isReachable === null ? null : Number(isReachable && !isWriteFailing),
  ),
  counters(
    "shredway_store_operations_total",
    ["operation", "outcome"],
    "Queries and transactions by outcome, ok or failed.",
    ({ queries, transactions }, add) => {
      add(["query", "ok"], queries.ended);
      add(["query", "failed"], queries.failed);
      add(["transaction", "ok"], transactions.ended);
      add(["transaction", "failed"], transactions.failed);
    },
  ),
  histogram(
    "shredway_store_query_duration_seconds",
    "Duration of queries, including the time in the queue.",
    ({ queryDurations }) => queryDurations,
  ),
  histogram(
    "shredway_store_transaction_duration_seconds",
    "Duration of transactions, including the time in the queue.",
    ({ transactionDurations }) => transactionDurations,
  ),
  histogram(
    "shredway_store_batch_size",
    "Queries and transactions in one commit or one round trip to the database.",
    ({ batchSizes }) => batchSizes,
  ),
  gauge(
    "shredway_store_queue",
    "Queries and transactions that wait for the database or are in progress.",
    ({ underWay }) => underWay,
  ),
  gauge(
    "shredway_store_journaled_submissions",
    "Acknowledged submissions that wait in the journal for their commit. Always 0 unless data.durableSubmissions is false on SQLite.",
    ({ journaled }) => journaled,
  ),
];
