// Metrics of the gateway: requests, calls, connections, submissions from acceptance to their end.

import type { HistogramValue } from "../../core/duration-histogram.ts";
import type { PipelineSnapshot } from "../../gateway/submission/pipeline.ts";
import { counter, counters, gauge, gauges, histograms, type Metric } from "./types.ts";

/** Counted by gateway/request-counts.ts. */
interface RequestFacts {
  requests(): Iterable<readonly [path: string, status: number, count: number]>;
  durations(): Iterable<readonly [path: string, durations: HistogramValue]>;
  calls(): Iterable<readonly [method: string, reason: string, count: number]>;
  refusals(): Iterable<readonly [reason: string, count: number]>;
}

export interface GatewayFacts {
  readonly requests: RequestFacts;
  /** HTTP and WebSocket together. */
  readonly connections: number;
  readonly connectionsMax: number;
  /** By path. */
  readonly webSockets: Iterable<readonly [path: string, count: number]>;
  /** Closed because their peer sent too much, by path. */
  readonly webSocketsOverLimit: Iterable<readonly [path: string, count: number]>;
  readonly submissionsUnderWay: number;
  readonly submissionsUnderWayMax: number;
  /** null: signatures are checked elsewhere. */
  readonly checksPending: number | null;
  readonly checksPendingMax: number;
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
    "From the last byte of a request to its answer, by group of paths.",
    ({ requests }, add) => {
      for (const [path, durations] of requests.durations()) add([path], durations);
    },
  ),
  counters(
    "shredway_gateway_calls_total",
    ["method", "reason"],
    'Calls of JSON-RPC by method and reason of the refusal; "ok" for those that were answered.',
    ({ requests }, add) => {
      for (const [method, reason, count] of requests.calls()) add([method, reason], count);
    },
  ),
  counters(
    "shredway_gateway_server_refusals_total",
    ["reason"],
    "HTTP requests that were refused before anybody read them, such as bodies that are too large.",
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
    "Sockets that may be open at once.",
    ({ connectionsMax }) => connectionsMax,
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
    "Calls that submit something and are not answered yet.",
    ({ submissionsUnderWay }) => submissionsUnderWay,
  ),
  gauge(
    "shredway_gateway_submissions_under_way_limit",
    "Such calls at once; more are refused as overloaded.",
    ({ submissionsUnderWayMax }) => submissionsUnderWayMax,
  ),
  gauge(
    "shredway_gateway_signature_checks_pending",
    "Transactions whose signatures wait to be checked.",
    ({ checksPending }) => checksPending,
  ),
  gauge(
    "shredway_gateway_signature_checks_limit",
    "Transactions that may wait for it; more are refused as overloaded.",
    ({ checksPendingMax }) => checksPendingMax,
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
    "Transactions that were accepted.",
    ({ accepted }) => accepted,
  ),
  counters(
    "shredway_submissions_ended_total",
    ["state"],
    "Transactions by how they ended.",
    ({ pipeline }, add) => {
      for (const [state, count] of Object.entries(pipeline.ends)) add([state], count);
    },
  ),
  ofPipeline("shredway_submissions_open", "Transactions whose end is awaited.", ({ open }) => open),
  gauge(
    "shredway_submissions_open_limit",
    "Transactions whose end may be awaited at once; more are refused as overloaded.",
    ({ openMax }) => openMax,
  ),
  ofPipeline(
    "shredway_submissions_held",
    "Submissions that are held back while a leader on the deny list is near.",
    ({ held }) => held,
  ),
  ofPipeline(
    "shredway_submissions_remembered",
    "Ended transactions in memory; the database may hold more.",
    ({ ended }) => ended,
  ),
  ofPipeline(
    "shredway_submissions_attempts_total",
    "Attempts to send a submission, first ones and others.",
    ({ attempts }) => attempts,
  ),
  ofPipeline(
    "shredway_submissions_resends_total",
    "Attempts because a submission had not landed.",
    ({ resends }) => resends,
  ),
  ofPipeline(
    "shredway_submissions_repeats_total",
    "Attempts because an account submitted the same again.",
    ({ repeats }) => repeats,
  ),
  ofPipeline(
    "shredway_submissions_late_events_total",
    "Events of transactions that had ended before.",
    ({ lateEvents }) => lateEvents,
  ),
  ofPipeline(
    "shredway_submissions_unwritten",
    "Transactions that changed since they were last written to the database.",
    ({ writer: store }) => store.dirty,
  ),
  ofPipeline(
    "shredway_submissions_writes_total",
    "Writes of transactions to the database.",
    ({ writer: store }) => store.puts,
  ),
  ofPipeline(
    "shredway_submissions_write_failures_total",
    "Writes of transactions to the database that failed.",
    ({ writer: store }) => store.failures,
  ),
  ofPipeline(
    "shredway_submissions_looks_total",
    "Questions to the node about what became of transactions.",
    ({ observer: watch }) => watch.questions,
  ),
  ofPipeline(
    "shredway_submissions_look_failures_total",
    "Such questions that the node did not answer.",
    ({ observer: watch }) => watch.failures,
  ),
  ofPipeline(
    "shredway_submissions_sights_total",
    "Sights of open transactions in the relay's own shreds.",
    ({ observer: watch }) => watch.observations,
  ),
  ofPipeline(
    "shredway_submissions_sights_refused_total",
    "Transactions that could not be watched for in the relay's shreds, for the list was full.",
    ({ observer: watch }) => watch.watchesRefused,
  ),
  ofPipeline(
    "shredway_submissions_lost_blocks_total",
    "Transactions whose block was abandoned after they were seen in it.",
    ({ observer: watch }) => watch.blocksAbandoned,
  ),
  ofPipeline(
    "shredway_submissions_lifetimes",
    "Blockhashes and nonces whose end is awaited.",
    ({ observer: watch }) => watch.lifetimes,
  ),
];

export const gatewayMetrics: readonly Metric<GatewayFacts>[] = [...http, ...submissions];
