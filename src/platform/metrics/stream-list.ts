// Metrics of decoded streams: open streams, messages, delays and ends.

import type { StreamStatus } from "../../relay/streams/stream-status.ts";
import { counter, counters, gauge, gauges, histogram, type Metric } from "./types.ts";

type StreamMetric = Metric<StreamStatus>;

/** One value for each account and dialect. */
function byAccount(
  define: typeof gauges<StreamStatus>,
  { name, help }: { readonly name: string; readonly help: string },
  pick: (account: StreamStatus["accounts"][number]) => number,
): StreamMetric {
  return define(name, ["account", "dialect"], help, ({ accounts }, add) => {
    for (const each of accounts) add([each.account, each.dialect], pick(each));
  });
}

/** Absent without a node. */
function lookupGauge(
  name: string,
  help: string,
  pick: (status: NonNullable<StreamStatus["lookupTables"]>) => number,
): StreamMetric {
  return gauge(name, help, ({ lookupTables }) => lookupTables && pick(lookupTables));
}

export const streamMetrics: readonly StreamMetric[] = [
  byAccount(
    gauges,
    {
      name: "shredway_stream_open",
      help: "Open streams by account and dialect; dialect: entries (SubscribeEntries), deshred (SubscribeDeshred), preprocessed (SubscribePreprocessed), transactions (SubscribeTransactions), shred_transaction (shredTransactionSubscribe), shred (shredSubscribe) or push (startTransactionPush). Beyond 100 accounts: other.",
    },
    ({ open }) => open,
  ),
  byAccount(
    counters,
    {
      name: "shredway_stream_sent_total",
      help: "Messages that were queued for the clients of an account.",
    },
    ({ sent }) => sent,
  ),
  byAccount(
    counters,
    { name: "shredway_stream_sent_bytes_total", help: "Bytes of these messages." },
    ({ sentBytes }) => sentBytes,
  ),
  byAccount(
    counters,
    {
      name: "shredway_stream_dropped_total",
      help: "Messages that were dropped: their clients read slowly and asked for gaps instead of an end, or a push has more than its share of datagrams.",
    },
    ({ dropped }) => dropped,
  ),
  byAccount(
    counters,
    {
      name: "shredway_stream_skipped_total",
      help: "Transactions that pushes left out, because they do not fit a datagram.",
    },
    ({ skipped }) => skipped,
  ),
  byAccount(
    counters,
    {
      name: "shredway_stream_send_failures_total",
      help: "Datagrams of pushes that the kernel refused.",
    },
    ({ failed }) => failed,
  ),
  byAccount(
    counters,
    {
      name: "shredway_stream_delayed_requests_total",
      help: "Requests on open gRPC streams that waited, because they came faster than the limit (docs/streams.md).",
    },
    ({ delayedRequests }) => delayedRequests,
  ),
  byAccount(
    gauges,
    {
      name: "shredway_stream_waiting_bytes",
      help: "Bytes that wait for the clients of an account now, because they read slowly.",
    },
    ({ waitingBytes }) => waitingBytes,
  ),
  counters(
    "shredway_stream_ends_total",
    ["reason"],
    "Ended streams by reason (docs/streams.md): client (or its connection), silent (no answer to a ping), lagged, lost, revoked, tier_changed, refused (an invalid request), lease_expired, destination_inactive or closing.",
    ({ ends }, add) => {
      for (const [reason, count] of ends) add([reason], count);
    },
  ),
  counters(
    "shredway_stream_refusals_total",
    ["status"],
    "Calls that ended with an error, by gRPC status.",
    ({ refusals }, add) => {
      for (const [status, count] of refusals) add([status], count);
    },
  ),
  counters(
    "shredway_stream_refused_openings_total",
    ["limit"],
    "Calls that were refused because they came too fast: new streams of an account, or all calls of an address (docs/streams.md).",
    ({ refusedOpenings }, add) => {
      for (const limit of ["account", "address"] as const) add([limit], refusedOpenings[limit]);
    },
  ),
  histogram(
    "shredway_stream_delay_seconds",
    "Time from the receive time of the last shred that a message needed until the kernel has the message. It includes the time that the client's flow control holds it back.",
    ({ delays }) => delays.value(),
  ),
  gauge(
    "shredway_stream_filters",
    "Filters of all open streams; at most 4,096.",
    ({ filters }) => filters.filters,
  ),
  gauge(
    "shredway_stream_filter_accounts",
    "Accounts in these filters; at most 50,000.",
    ({ filters }) => filters.accounts,
  ),
  gauge(
    "shredway_stream_connections",
    "Open connections, with those that have not finished their TLS handshake.",
    ({ connections }) => connections,
  ),
  counter(
    "shredway_stream_refused_connections_total",
    "Connections that were closed because of a limit: 256 per address, 4,096 in total.",
    ({ refusedConnections }) => refusedConnections,
  ),
  gauge(
    "shredway_stream_history_bytes",
    "Memory of the history that streams can begin with; at most shredway_stream_history_max_bytes.",
    ({ history }) => history.bytes,
  ),
  gauge(
    "shredway_stream_history_max_bytes",
    "The configured limit of this memory (streams.replayBytes).",
    ({ history }) => history.bytesMax,
  ),
  gauge(
    "shredway_stream_replays",
    "Streams that began with an earlier slot and have not reached the end of the history; at most 64.",
    ({ history }) => history.replays,
  ),
  counter("shredway_stream_replayed_total", "Messages from the history.", ({ history }) =>
    Number(history.replayed),
  ),
  lookupGauge(
    "shredway_stream_lookup_tables",
    "Address lookup tables that are known; at most 16,384.",
    ({ tables }) => tables,
  ),
  lookupGauge(
    "shredway_stream_lookup_addresses",
    "Addresses in these tables; at most 1,048,576.",
    ({ addresses }) => addresses,
  ),
  lookupGauge(
    "shredway_stream_lookup_waiting",
    "Lookup tables that wait to be read from the node.",
    ({ waiting }) => waiting,
  ),
  counters(
    "shredway_stream_lookup_requests_total",
    ["result"],
    "Requests to the node for lookup tables, by result: ok or failed.",
    ({ lookupTables }, add) => {
      if (!lookupTables) return;
      add(["ok"], lookupTables.answered);
      add(["failed"], lookupTables.failed);
    },
  ),
  counters(
    "shredway_stream_lookup_events_total",
    ["event"],
    "Lookup tables by event: found or missing in a response of the node, evicted because of a limit, or dropped because too many wait.",
    ({ lookupTables }, add) => {
      if (!lookupTables) return;
      for (const event of ["found", "missing", "evicted", "dropped"] as const) {
        add([event], lookupTables[event]);
      }
    },
  ),
];
