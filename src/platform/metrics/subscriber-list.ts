// Metrics of this relay's block engine for subscribers: leases, refusals and connections.

import type { SubscriberStatus } from "../../relay/shredstream/subscriber-status.ts";
import { counter, counters, gauge, gauges, type Metric } from "./types.ts";

export interface SubscriberFacts {
  readonly status: SubscriberStatus;
  /** Tiers of the running relay. */
  readonly tiers: readonly string[];
}

export const subscriberMetrics: readonly Metric<SubscriberFacts>[] = [
  gauges(
    "shredway_subscriber_leases",
    ["tier"],
    "Addresses that subscribers hold by heartbeats, by tier. The relay sends shreds to each of them, except with tier none: an account without a tier.",
    ({ status: { leases }, tiers }, add) => {
      for (const tier of new Set([...tiers, ...leases.keys()])) add([tier], leases.get(tier) ?? 0);
    },
  ),
  counters(
    "shredway_subscriber_lease_events_total",
    ["event"],
    "Accepted heartbeats (begun: of a new address, renewed: of a known one) and ends of leases (expired: no heartbeat for the TTL, removed: together with its public key).",
    ({ status }, add) => {
      for (const [event, count] of Object.entries(status.leaseEvents)) add([event], count);
    },
  ),
  counters(
    "shredway_subscriber_refusals_total",
    ["call", "status"],
    "Refused calls of subscribers by gRPC status; call: challenge, tokens, refresh, heartbeat or unknown. The log has the reason, at most once a minute.",
    ({ status: { refusals } }, add) => {
      for (const { call, status, count } of refusals) add([call, status], count);
    },
  ),
  gauge(
    "shredway_subscriber_connections",
    "Open connections of subscribers, with those that have not finished their TLS handshake.",
    ({ status }) => status.connections,
  ),
  counter(
    "shredway_subscriber_refused_connections_total",
    "Connections of subscribers that were closed because of a limit: 16 per address, 1,024 in total.",
    ({ status }) => status.refusedConnections,
  ),
];
