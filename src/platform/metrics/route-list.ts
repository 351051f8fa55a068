// Metrics of the routes: what each took, what became of it, and the leaders of the direct routes.

import type { RouteSnapshot } from "../../gateway/submission/types.ts";
import type { RunningTotals } from "./running-totals.ts";
import { counters, gauges, type Metric } from "./types.ts";

/** One leader's address as tpu/types.ts shows it. */
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

export interface DirectRoute {
  readonly name: string;
  readonly leaders: readonly LeaderRow[];
}

export interface RouteFacts {
  readonly routes: readonly RouteSnapshot[];
  /** Those that send to leaders over QUIC. */
  readonly direct: readonly DirectRoute[];
  /** Their connections and how these ended; see `noteDirect`. */
  readonly directTotals: ReadonlyMap<string, bigint>;
}

/** Leaders choose the numbers that they close with: those without a name are one. */
const endName = /^[a-z_]{1,40}$/;

/** Leaders come and go: what they counted goes into totals that never fall. */
export function noteDirect(totals: RunningTotals, direct: readonly DirectRoute[]): void {
  for (const { name, leaders } of direct) {
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

const overHttpAndQuic: readonly Metric<RouteFacts>[] = [
  ofRoutes("shredway_route_up", "1: the route takes submissions. 0: it is down.", ({ health }) =>
    health === "up" ? 1 : 0,
  ),
  ofRoutes(
    "shredway_route_offered_total",
    "Transactions and bundles that were offered to the route.",
    ({ offered }) => offered,
  ),
  ofRoutes(
    "shredway_route_sent_total",
    "Transactions and bundles whose last byte was handed to the kernel.",
    ({ sent }) => sent,
  ),
  counters(
    "shredway_route_outcomes_total",
    ["route", "kind", "outcome"],
    "Transactions and bundles by what became of them: turned_away (queue full or down), acknowledged, refused, failed, dropped.",
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
    "Transactions and bundles that wait for the route.",
    ({ queued }) => queued,
  ),
  ofRoutes(
    "shredway_route_in_flight",
    "Transactions and bundles that were sent and not answered yet.",
    ({ inFlight }) => inFlight,
  ),
  ofRoutes(
    "shredway_route_send_p50_seconds",
    "From offer to the last byte with the kernel, median of the last minutes.",
    ({ sendP50Us }) => (sendP50Us === null ? null : sendP50Us / 1e6),
  ),
  ofRoutes(
    "shredway_route_send_p99_seconds",
    "From offer to the last byte with the kernel, 99th percentile of the last minutes.",
    ({ sendP99Us }) => (sendP99Us === null ? null : sendP99Us / 1e6),
  ),
];

function ofLeaders(
  name: string,
  help: string,
  pick: (leaders: readonly LeaderRow[]) => number | null,
): Metric<RouteFacts> {
  return gauges(name, ["route"], help, ({ direct }, add) => {
    for (const route of direct) {
      const value = pick(route.leaders);
      if (value !== null) add([route.name], value);
    }
  });
}

const toLeaders: readonly Metric<RouteFacts>[] = [
  gauges(
    "shredway_tpu_leaders",
    ["route", "phase"],
    "Leaders that the direct route knows, by the state of their connection.",
    ({ direct }, add) => {
      for (const { name, leaders } of direct) {
        for (const phase of phases) {
          add([name, phase], leaders.filter((leader) => leader.phase === phase).length);
        }
      }
    },
  ),
  ofLeaders("shredway_tpu_queued", "Transactions that wait for a leader.", (leaders) =>
    leaders.reduce((total, { queued }) => total + queued, 0),
  ),
  ofLeaders(
    "shredway_tpu_in_flight",
    "Transactions sent to leaders and not acknowledged yet.",
    (leaders) => leaders.reduce((total, { inFlight }) => total + inFlight, 0),
  ),
  ofLeaders(
    "shredway_tpu_handshake_seconds",
    "Length of the last handshake with a leader, median of the leaders known.",
    (leaders) => {
      const found = median(leaders.flatMap(({ handshakeMs }) => handshakeMs ?? []));
      return found === null ? null : found / 1000;
    },
  ),
  ofLeaders(
    "shredway_tpu_round_trip_seconds",
    "From the last byte of a transaction to the leader's acknowledgement, median of the leaders known.",
    (leaders) => {
      const found = median(leaders.flatMap(({ roundTripMs }) => roundTripMs ?? []));
      return found === null ? null : found / 1000;
    },
  ),
  counters(
    "shredway_tpu_connections_total",
    ["route"],
    "Connections that were made with leaders.",
    ({ directTotals }, add) => {
      for (const [key, count] of directTotals) {
        const [route = "", what] = key.split(" ");
        if (what === "opened") add([route], count);
      }
    },
  ),
  counters(
    "shredway_tpu_closes_total",
    ["route", "reason"],
    "Connections with leaders that ended, by the name of the end.",
    ({ directTotals }, add) => {
      for (const [key, count] of directTotals) {
        const [route = "", what, reason = ""] = key.split(" ");
        if (what === "closed") add([route, reason], count);
      }
    },
  ),
];

export const routeMetrics: readonly Metric<RouteFacts>[] = [...overHttpAndQuic, ...toLeaders];
