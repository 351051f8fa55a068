// Metrics of subscriptions at block engines, one series for each source of kind "shredstream".

import type { SubscriptionStatus } from "../../relay/shredstream/subscription-status.ts";
import type { TraceDelays } from "../../relay/shredstream/trace-delays.ts";
import { counters, gauges, histograms, type Metric } from "./types.ts";

export interface ShredstreamFacts {
  readonly statuses: readonly SubscriptionStatus[];
  readonly delays: ReturnType<TraceDelays["delays"]>;
}

export const shredstreamMetrics: readonly Metric<ShredstreamFacts>[] = [
  gauges(
    "shredway_shredstream_subscribed",
    ["source"],
    "1: the block engine accepted the last heartbeat of the source. 0: it does not send shreds, or will stop soon.",
    ({ statuses }, add) => {
      for (const { name, state } of statuses) add([name], state === "subscribed" ? 1 : 0);
    },
  ),
  counters(
    "shredway_shredstream_events_total",
    ["source", "event"],
    "Authentications, token refreshes and heartbeats of the source, with their failures; silence: a restart of the subscription after 30 s without a shred.",
    ({ statuses }, add) => {
      for (const { name, counts } of statuses) {
        for (const [event, count] of Object.entries(counts)) add([name, event], count);
      }
    },
  ),
  gauges(
    "shredway_shredstream_last_heartbeat_timestamp_seconds",
    ["source"],
    "Time of the last accepted heartbeat of the source; Unix time. The series appears after the first one.",
    ({ statuses }, add) => {
      for (const { name, lastHeartbeatNs } of statuses) {
        if (lastHeartbeatNs !== null) add([name], Number(lastHeartbeatNs) / 1e9);
      }
    },
  ),
  gauges(
    "shredway_shredstream_ttl_seconds",
    ["source"],
    "Time for which the block engine accepted the last heartbeat. Heartbeats follow at a third of it.",
    ({ statuses }, add) => {
      for (const { name, ttlMs } of statuses) if (ttlMs !== null) add([name], ttlMs / 1000);
    },
  ),
  histograms(
    "shredway_shredstream_trace_delay_seconds",
    ["source", "region"],
    "One-way delay of trace packets from the block engine's region, including the difference of both clocks. A negative delay counts as 0.",
    ({ delays }, add) => {
      for (const { source, region, histogram } of delays) add([source, region], histogram);
    },
  ),
  gauges(
    "shredway_shredstream_trace_last_delay_seconds",
    ["source", "region"],
    "One-way delay of the last trace packet from the region. It is negative if this machine's clock is behind.",
    ({ delays }, add) => {
      for (const { source, region, lastSeconds } of delays) add([source, region], lastSeconds);
    },
  ),
];
