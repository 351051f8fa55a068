// Metrics of subscriptions at block engines, one series for each source of kind "shredstream".

import type { SubscriptionStatus } from "../../relay/shredstream/subscription-status.ts";
import { counters, gauges, type Metric } from "./types.ts";

export type SubscriptionFacts = readonly SubscriptionStatus[];

export const shredstreamMetrics: readonly Metric<SubscriptionFacts>[] = [
  gauges(
    "shredway_shredstream_subscribed",
    ["source"],
    "1: the block engine accepted the last heartbeat of the source. 0: it does not send shreds, or will stop soon.",
    (statuses, add) => {
      for (const { name, state } of statuses) add([name], state === "subscribed" ? 1 : 0);
    },
  ),
  counters(
    "shredway_shredstream_events_total",
    ["source", "event"],
    "Authentications, token refreshes and heartbeats of the source, with their failures; silence: a restart of the subscription after 30 s without a shred.",
    (statuses, add) => {
      for (const { name, counts } of statuses) {
        for (const [event, count] of Object.entries(counts)) add([name, event], count);
      }
    },
  ),
  gauges(
    "shredway_shredstream_last_heartbeat_timestamp_seconds",
    ["source"],
    "Time of the last accepted heartbeat of the source; Unix time. The series appears after the first one.",
    (statuses, add) => {
      for (const { name, lastHeartbeatNs } of statuses) {
        if (lastHeartbeatNs !== null) add([name], Number(lastHeartbeatNs) / 1e9);
      }
    },
  ),
  gauges(
    "shredway_shredstream_ttl_seconds",
    ["source"],
    "Time for which the block engine accepted the last heartbeat. Heartbeats follow at a third of it.",
    (statuses, add) => {
      for (const { name, ttlMs } of statuses) if (ttlMs !== null) add([name], ttlMs / 1000);
    },
  ),
];
