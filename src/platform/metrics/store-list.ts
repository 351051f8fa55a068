// Metrics of the store: whether the database answers, how long it takes, how much waits for it.

import type { HistogramValue } from "../../core/duration-histogram.ts";
import { counters, gauge, gauges, histogram, type Metric } from "./types.ts";

export interface StoreFacts {
  /** "sqlite" or "postgres". */
  readonly kind: string;
  /** Of this process among those that share the database; "": it is its alone. */
  readonly node: string;
  /** Whether the last question was answered; null: none was asked yet. */
  readonly isReachable: boolean | null;
  readonly queries: { readonly ended: bigint; readonly failed: bigint };
  readonly transactions: { readonly ended: bigint; readonly failed: bigint };
  readonly underWay: number;
  readonly queryDurations: HistogramValue;
  readonly transactionDurations: HistogramValue;
  readonly batchSizes: HistogramValue;
}

export const storeMetrics: readonly Metric<StoreFacts>[] = [
  gauges(
    "shredway_store_info",
    ["database", "node"],
    "Always 1: which database keeps the state, and this node's name on it.",
    ({ kind, node }, add) => add([kind, node], 1),
  ),
  gauge(
    "shredway_store_reachable",
    "1: the database answered the last question. 0: it did not.",
    ({ isReachable }) => (isReachable === null ? null : Number(isReachable)),
  ),
  counters(
    "shredway_store_operations_total",
    ["operation", "outcome"],
    "Queries and transactions that ended, ok or failed.",
    ({ queries, transactions }, add) => {
      add(["query", "ok"], queries.ended);
      add(["query", "failed"], queries.failed);
      add(["transaction", "ok"], transactions.ended);
      add(["transaction", "failed"], transactions.failed);
    },
  ),
  histogram(
    "shredway_store_query_duration_seconds",
    "From a query to its answer, waiting included.",
    ({ queryDurations }) => queryDurations,
  ),
  histogram(
    "shredway_store_transaction_duration_seconds",
    "From a transaction to its end, waiting included.",
    ({ transactionDurations }) => transactionDurations,
  ),
  histogram(
    "shredway_store_batch_size",
    "Queries and transactions that shared one commit or one turn of the database.",
    ({ batchSizes }) => batchSizes,
  ),
  gauge(
    "shredway_store_queue",
    "Queries and transactions that wait for the database or are under way.",
    ({ underWay }) => underWay,
  ),
];
