// Metrics of the routes: transactions and bundles by result, and the leaders of the TPU routes.

import type { RouteSnapshot } from "../../gateway/submission/types.ts";
import type { RunningTotals } from "./running-totals.ts";
import { counters, gauges, type Metric } from "./types.ts";

/** One address of a leader, as in tpu/types.ts. */
interface LeaderRow {
  readonly address: string;
  readonly phase: string;
  readonly handshakeMs: number | null;
  readonly roundTripMs: number | null;
  readonly queued: number;
  readonly inFlight: number;
  readonly connections: number;
  readonly closes: Readonly<Record<string, number>>;
}

export interface TpuRouteFacts {
  readonly name: string;
  readonly leaders: readonly LeaderRow[];
  /** The process that has the connections, as in tpu/types.ts. */
  readonly process: {
    readonly memoryBytes: number | null;
    readonly ends: Readonly<Record<string, number>>;
  };
}

export interface RouteFacts {
  readonly routes: readonly RouteSnapshot[];
  /** Routes that send to leaders over QUIC. */
  readonly tpu: readonly TpuRouteFacts[];
  /** Connections of the TPU routes, and the reasons why they closed; see `addTpuCounts`. */
  readonly tpuTotals: ReadonlyMap<string, bigint>;
}

/** A leader chooses its close code. All codes without a name share one label. */
const endName = /^[a-z_]{1,40}$/;

/** Adds the counts of the present leaders to totals that never fall when a leader is removed. */
export function addTpuCounts(totals: RunningTotals, routes: readonly TpuRouteFacts[]): void {
  for (const { name, leaders } of routes) {
    for (const { address, connections, closes } of leaders) {
      const owner = `${name} ${address}`;
      totals.note(owner, `${name} opened`, BigInt(connections));
      for (const [end, count] of Object.entries(closes)) {
        const known = endName.test(end) ? end : "other";
        totals.note(`${owner} ${end}`, `${name} closed ${known}`, BigInt(count));
      }
    }
  }
  totals.finish();
}

function ofRoutes(
  name: string,
  help: string,
  pick: (route: RouteSnapshot) => number | bigint | null,
): Metric<RouteFacts> {
  const define = name.endsWith("_total") ? counters : gauges;
  return define<RouteFacts>(name, ["route", "kind"], help, ({ routes }, add) => {
    for (const route of routes) {
      const value = pick(route);
      if (value !== null) add([route.name, route.kind], value);
    }
  });
}

const outcomes = {
  turned_away: "turnedAway",
  acknowledged: "acknowledged",
  refused: "refused",
  failed: "failed",
  dropped: "dropped",
} as const;

const phases = ["idle", "connecting", "connected", "backing_off"] as const;

function median(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? null;
}

const forAllRoutes: readonly Metric<RouteFacts>[] = [
  ofRoutes(
    "shredway_route_up",
    "1: the route was tried and accepts submissions. 0: it is down, or its last requests failed. No sample: it was not tried yet.",
    ({ health }) => (health === "unknown" ? null : Number(health === "up")),
  ),
  ofRoutes(
    "shredway_route_offered_total",
    "Transactions and bundles offered to the route.",
    ({ offered }) => offered,
  ),
  ofRoutes(
    "shredway_route_sent_total",
    "Transactions and bundles whose last byte was passed to the kernel.",
    ({ sent }) => sent,
  ),
  counters(
    "shredway_route_outcomes_total",
    ["route", "kind", "outcome"],
    "Transactions and bundles by outcome: turned_away (queue full or route down), acknowledged, refused, failed, dropped.",
    ({ routes }, add) => {
      for (const route of routes) {
        for (const [outcome, key] of Object.entries(outcomes)) {
          add([route.name, route.kind, outcome], route[key]);
        }
      }
    },
  ),
  ofRoutes(
    "shredway_route_queued",
    "Transactions and bundles in the queue of the route.",
    ({ queued }) => queued,
  ),
  ofRoutes(
    "shredway_route_in_flight",
    "Transactions and bundles that were sent and have no response yet.",
    ({ inFlight }) => inFlight,
  ),
  ofRoutes(
    "shredway_route_send_p50_seconds",
    "Time from the offer until the kernel has the last byte; median of the last minutes.",
    ({ sendP50Us }) => (sendP50Us === null ? null : sendP50Us / 1e6),
  ),
  ofRoutes(
    "shredway_route_send_p99_seconds",
    "Time from the offer until the kernel has the last byte; 99th percentile of the last minutes.",
    ({ sendP99Us }) => (sendP99Us === null ? null : sendP99Us / 1e6),
  ),
];

function leaderMetric(
  name: string,
  help: string,
  pick: (leaders: readonly LeaderRow[]) => number | null,
): Metric<RouteFacts> {
  return gauges(name, ["route"], help, ({ tpu }, add) => {
    for (const route of tpu) {
      const value = pick(route.leaders);
      if (value !== null) add([route.name], value);
    }
  });
}

const forTpuRoutes: readonly Metric<RouteFacts>[] = [
  gauges(
    "shredway_tpu_leaders",
    ["route", "phase"],
    "Leaders in the table of the TPU route, by the state of their connection.",
    ({ tpu }, add) => {
      for (const { name, leaders } of tpu) {
        for (const phase of phases) {
          add([name, phase], leaders.filter((leader) => leader.phase === phase).length);
        }
      }
    },
  ),
  leaderMetric("shredway_tpu_queued", "Transactions in the queues of leaders.", (leaders) =>
    leaders.reduce((total, { queued }) => total + queued, 0),
  ),
  leaderMetric(
    "shredway_tpu_in_flight",
    "Transactions that were sent to leaders and are not acknowledged yet.",
    (leaders) => leaders.reduce((total, { inFlight }) => total + inFlight, 0),
  ),
  leaderMetric(
    "shredway_tpu_handshake_seconds",
    "Duration of the last handshake with a leader; median over the leaders in the table.",
    (leaders) => {
      const found = median(leaders.flatMap(({ handshakeMs }) => handshakeMs ?? []));
      return found === null ? null : found / 1000;
    },
  ),
  leaderMetric(
    "shredway_tpu_round_trip_seconds",
    "Time from the last byte of a transaction to the acknowledgement of the leader; median over the leaders in the table.",
    (leaders) => {
      const found = median(leaders.flatMap(({ roundTripMs }) => roundTripMs ?? []));
      return found === null ? null : found / 1000;
    },
  ),
  gauges(
    "shredway_tpu_process_memory_bytes",
    ["route"],
    "Resident memory of the QUIC process. It is killed and restarted above 512 MiB.",
    ({ tpu }, add) => {
      for (const { name, process } of tpu) {
        if (process.memoryBytes !== null) add([name], process.memoryBytes);
      }
    },
  ),
  counters(
    "shredway_tpu_process_ends_total",
    ["route", "reason"],
    "Unexpected ends of the QUIC process, each followed by a restart. Reason: exited (also a crash), unresponsive, memory_limit, invalid_message, not_started.",
    ({ tpu }, add) => {
      for (const { name, process } of tpu) {
        for (const [reason, count] of Object.entries(process.ends)) add([name, reason], count);
      }
    },
  ),
  counters(
    "shredway_tpu_connections_total",
    ["route"],
    "Connections opened to leaders.",
    ({ tpuTotals }, add) => {
      for (const [key, count] of tpuTotals) {
        const [route = "", what] = key.split(" ");
        if (what === "opened") add([route], count);
      }
    },
  ),
  counters(
    "shredway_tpu_closes_total",
    ["route", "reason"],
    "Closed connections to leaders, by reason.",
    ({ tpuTotals }, add) => {
      for (const [key, count] of tpuTotals) {
        const [route = "", what, reason = ""] = key.split(" ");
        if (what === "closed") add([route, reason], count);
      }
    },
  ),
];

export const routeMetrics: readonly Metric<RouteFacts>[] = [...forAllRoutes, ...forTpuRoutes];
