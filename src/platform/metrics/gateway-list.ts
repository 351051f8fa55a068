// Metrics of the gateway: requests, calls, connections, and submissions from acceptance to the final state.

import type { HistogramValue } from "../../core/duration-histogram.ts";
import type { FastPathSnapshot } from "../../gateway/fast-path/fast-path.ts";
import type { PipelineSnapshot } from "../../gateway/submission/pipeline.ts";
import { counter, counters, gauge, gauges, histograms, type Metric, renamed } from "./types.ts";

/** Counts of gateway/request-counts.ts. */
interface RequestFacts {
  requests(): Iterable<readonly [path: string, status: number, count: number]>;
  durations(): Iterable<readonly [path: string, durations: HistogramValue]>;
  calls(): Iterable<readonly [method: string, reason: string, count: number]>;
  refusals(): Iterable<readonly [reason: string, count: number]>;
}

export interface GatewayFacts {
  readonly requests: RequestFacts;
  /** Open HTTP and WebSocket connections. */
  readonly connections: number;
  readonly connectionsMax: number;
  /** Connections closed because too many were open. */
  readonly connectionsOverLimit: number;
  /** null: no TLS. */
  readonly certificateExpiresMs: number | null;
  /** Open WebSockets by path. */
  readonly webSockets: Iterable<readonly [path: string, count: number]>;
  /** WebSockets by path that were closed because the peer exceeded the message limit. */
  readonly webSocketsOverLimit: Iterable<readonly [path: string, count: number]>;
  readonly submissionsUnderWay: number;
  readonly submissionsUnderWayMax: number;
  /** Submissions that wait for the event loop, and those that were refused since they waited too long. */
  readonly submissionQueue: { readonly waiting: number; readonly timedOut: number };
  /** null: this process does not check signatures. */
  readonly checksPending: number | null;
  readonly checksPendingMax: number;
  /** null: the fast path is off. */
  readonly fastPath: FastPathSnapshot | null;
  readonly pipeline: PipelineSnapshot;
  readonly openMax: number;
}

const http: readonly Metric<GatewayFacts>[] = [
  counters(
    "shredway_gateway_requests_total",
    ["path", "status"],
    "HTTP requests by group of paths and HTTP status.",
    ({ requests }, add) => {
      for (const [path, status, count] of requests.requests()) add([path, String(status)], count);
    },
  ),
  histograms(
    "shredway_gateway_request_duration_seconds",
    ["path"],
    "Time from the last byte of a request to its response, by group of paths.",
    ({ requests }, add) => {
      for (const [path, durations] of requests.durations()) add([path], durations);
    },
  ),
  counters(
    "shredway_gateway_calls_total",
    ["method", "reason"],
    'JSON-RPC calls over HTTP and WebSocket by method and reason of the rejection; the reason of a successful call is "ok".',
    ({ requests }, add) => {
      for (const [method, reason, count] of requests.calls()) add([method, reason], count);
    },
  ),
  counters(
    "shredway_gateway_server_refusals_total",
    ["reason"],
    "HTTP requests that the server rejected before it read the body, for example because it is too large.",
    ({ requests }, add) => {
      for (const [reason, count] of requests.refusals()) add([reason], count);
    },
  ),
  gauge(
    "shredway_gateway_connections",
    "Open sockets, HTTP and WebSocket together.",
    ({ connections }) => connections,
  ),
  gauge(
    "shredway_gateway_connections_limit",
    "Maximum number of open sockets.",
    ({ connectionsMax }) => connectionsMax,
  ),
  counter(
    "shredway_gateway_connections_over_limit_total",
    "Connections closed because the limit was reached: the new one, or an idle one of the caller with the most.",
    ({ connectionsOverLimit }) => connectionsOverLimit,
  ),
  gauges(
    "shredway_gateway_tls_certificate_expiry_seconds",
    [],
    "End of the validity of the TLS certificate in force, in Unix time. Absent without `http.tls`.",
    ({ certificateExpiresMs }, add) => {
      if (certificateExpiresMs !== null) add([], certificateExpiresMs / 1000);
    },
  ),
  gauges("shredway_gateway_websockets", ["path"], "Open WebSockets.", ({ webSockets }, add) => {
    for (const [path, count] of webSockets) add([path], count);
  }),
  counters(
    "shredway_gateway_websockets_over_limit_total",
    ["path"],
    "WebSockets closed because their peer exceeded the message limit, by path.",
    ({ webSocketsOverLimit }, add) => {
      for (const [path, count] of webSocketsOverLimit) add([path], count);
    },
  ),
  gauge(
    "shredway_gateway_submissions_under_way",
    "Submitting calls that have no response yet.",
    ({ submissionsUnderWay }) => submissionsUnderWay,
  ),
  gauge(
    "shredway_gateway_submissions_under_way_limit",
    "Maximum number of submitting calls without a response; further calls are rejected as overloaded.",
    ({ submissionsUnderWayMax }) => submissionsUnderWayMax,
  ),
  gauge(
    "shredway_gateway_submissions_waiting",
    "Submitting calls that wait for the event loop.",
    ({ submissionQueue }) => submissionQueue.waiting,
  ),
  counter(
    "shredway_gateway_submissions_timed_out_total",
    "Submitting calls that were rejected as overloaded because they had waited too long for the event loop.",
    ({ submissionQueue }) => BigInt(submissionQueue.timedOut),
  ),
  gauge(
    "shredway_gateway_signature_checks_pending",
    "Transactions that wait for the check of their signatures.",
    ({ checksPending }) => checksPending,
  ),
  gauge(
    "shredway_gateway_signature_checks_limit",
    "Maximum number of transactions that wait for a signature check; further ones are rejected as overloaded.",
    ({ checksPendingMax }) => checksPendingMax,
  ),
  counters(
    "shredway_gateway_fast_path_requests_total",
    ["result"],
    "Requests and QUIC streams on the fast path by result: taken (sent before they were read), late (read first), " +
      "different (another form), rejected (left to the usual checks).",
    ({ fastPath }, add) => {
      if (!fastPath) return;
      const { taken, late, different, rejected } = fastPath;
      for (const [result, count] of Object.entries({ taken, late, different, rejected })) {
        add([result], BigInt(count));
      }
    },
  ),
  counter(
    "shredway_gateway_fast_path_direct_total",
    "Transactions that were sent after they were read, and before they were recorded.",
    ({ fastPath }) => (fastPath ? BigInt(fastPath.direct) : null),
  ),
  counter(
    "shredway_gateway_fast_path_abandoned_total",
    "Transactions that the fast path sent and whose requests were refused afterwards.",
    ({ fastPath }) => (fastPath ? BigInt(fastPath.abandoned) : null),
  ),
  gauge(
    "shredway_gateway_fast_path_connections",
    "Callers' connections whose requests may be sent before they are read.",
    ({ fastPath }) => fastPath?.connections ?? null,
  ),
  gauge(
    "shredway_gateway_fast_path_partner_connections",
    "Idle connections to partners that the fast path may use, and those that it uses.",
    ({ fastPath }) => fastPath?.loans ?? null,
  ),
];

function ofPipeline(
  name: string,
  help: string,
  pick: (pipeline: PipelineSnapshot) => number | bigint,
): Metric<GatewayFacts> {
  const define = name.endsWith("_total") ? counter : gauge;
  return define<GatewayFacts>(name, help, ({ pipeline }) => pick(pipeline));
}

const submissions: readonly Metric<GatewayFacts>[] = [
  ofPipeline(
    "shredway_submissions_accepted_total",
    "Accepted transactions.",
    ({ accepted }) => accepted,
  ),
  counters(
    "shredway_submissions_ended_total",
    ["state"],
    "Ended transactions by final state.",
    ({ pipeline }, add) => {
      for (const [state, count] of Object.entries(pipeline.ends)) add([state], count);
    },
  ),
  ofPipeline(
    "shredway_submissions_open",
    "Transactions without a final state.",
    ({ open }) => open,
  ),
  gauge(
    "shredway_submissions_open_limit",
    "Maximum number of transactions without a final state; further ones are rejected as overloaded.",
    ({ openMax }) => openMax,
  ),
  ofPipeline(
    "shredway_submissions_held",
    "Submissions held back while a leader on the deny list is the current or next leader.",
    ({ held }) => held,
  ),
  ofPipeline(
    "shredway_submissions_remembered",
    "Ended transactions in memory. The database may contain more.",
    ({ ended }) => ended,
  ),
  ofPipeline(
    "shredway_submissions_attempts_total",
    "Attempts to send a submission, including the first.",
    ({ attempts }) => attempts,
  ),
  ofPipeline(
    "shredway_submissions_resends_total",
    "Attempts to send a submission again because it had not landed.",
    ({ resends }) => resends,
  ),
  ofPipeline(
    "shredway_submissions_repeats_total",
    "Attempts to send a submission because the account submitted it again.",
    ({ repeats }) => repeats,
  ),
  ofPipeline(
    "shredway_submissions_late_events_total",
    "Events that arrived after the transaction had ended.",
    ({ lateEvents }) => lateEvents,
  ),
  ofPipeline(
    "shredway_submissions_unwritten",
    "Transactions with changes that are not in the database yet.",
    ({ writer: store }) => store.dirty,
  ),
  ofPipeline(
    "shredway_submissions_writes_total",
    "Transactions written to the database.",
    ({ writer: store }) => store.puts,
  ),
  ofPipeline(
    "shredway_submissions_write_failures_total",
    "Failed writes of transactions to the database.",
    ({ writer: store }) => store.failures,
  ),
  renamed(
    "shredway_submissions_looks_total",
    ofPipeline(
      "shredway_submissions_status_queries_total",
      "Queries to the RPC node for the status of transactions.",
      ({ observer: watch }) => watch.questions,
    ),
  ),
  renamed(
    "shredway_submissions_look_failures_total",
    ofPipeline(
      "shredway_submissions_status_query_failures_total",
      "Status queries that the RPC node did not answer.",
      ({ observer: watch }) => watch.failures,
    ),
  ),
  renamed(
    "shredway_submissions_sights_total",
    ofPipeline(
      "shredway_submissions_landing_observations_total",
      "Landings of open transactions observed in the relay's own shreds.",
      ({ observer: watch }) => watch.observations,
    ),
  ),
  renamed(
    "shredway_submissions_sights_refused_total",
    ofPipeline(
      "shredway_submissions_landing_observations_refused_total",
      "Transactions whose landing is not observed in the relay's shreds because the watch list was full.",
      ({ observer: watch }) => watch.watchesRefused,
    ),
  ),
  ofPipeline(
    "shredway_submissions_lost_blocks_total",
    "Transactions whose block was abandoned after they had landed in it.",
    ({ observer: watch }) => watch.blocksAbandoned,
  ),
  ofPipeline(
    "shredway_submissions_lifetimes",
    "Blockhashes and nonce values whose expiry is awaited.",
    ({ observer: watch }) => watch.lifetimes,
  ),
];

export const gatewayMetrics: readonly Metric<GatewayFacts>[] = [...http, ...submissions];
