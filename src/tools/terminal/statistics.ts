// Statistics line: the counters that a service logs every few seconds.
//
// Used by start.ts. Reads snapshots and drains the relay's list of events.

import type { Service } from "../../app/service.ts";
import { systemClock } from "../../core/clock.ts";
import { reportBetween } from "../../relay/data-plane/report.ts";
import type { RelaySnapshot } from "../../relay/data-plane/snapshot.ts";
import type { RelayService } from "../../relay/relay-service.ts";
import { toJson } from "./formatting.ts";
import { totalsOf, transmitFacts } from "./relay-report.ts";

/** Rates since the last line, and faults since the start. */
export function relayStatistics(
  service: RelayService,
  before: RelaySnapshot,
  now: RelaySnapshot,
): Record<string, unknown> {
  const report = reportBetween(before, now);
  return {
    receivedPerSecond: Math.round(report.receivedPerSecond),
    distinctPerSecond: Math.round(report.distinctPerSecond),
    sentPerSecond: Math.round(report.sentPerSecond),
    workerLoads: report.workerLoads.map((load) => Math.round(load * 1000) / 1000),
    transactionsPerSecond: Math.round(report.transactionsPerSecond),
    ...plain(slotFacts(service)),
    latencyP50Us: Math.round(Number(now.latency.percentile(50)) / 1000),
    latencyP99Us: Math.round(Number(now.latency.percentile(99)) / 1000),
    authentication: service.config.authentication,
    ...plain(totalsOf(now)),
    ...plain(transmitFacts(now)),
    events: service.countEvents(),
    eventsLost: Number(now.workers.reduce((total, worker) => total + worker.events_lost, 0n)),
  };
}

/** The slot clock's current slot and slot length; empty while unknown. */
function slotFacts(service: RelayService): Record<string, unknown> {
  const now = service.slots.slotClock.now(systemClock.nowNs());
  if (!now) return {};
  const slotMs = now.slotNs === null ? null : Math.round(Number(now.slotNs) / 1e6);
  return { slot: now.slot, slotSource: now.source, slotMs };
}

/** Gateway counters since the start, and the state of its routes; empty without a gateway. */
export function gatewayStatistics({ gateway }: Pick<Service, "gateway">): Record<string, unknown> {
  if (!gateway) return {};
  const { connections, submissions, routes, shreds, landedTips } = gateway.snapshot();
  const { accepted, open, held, ends, resends, writer: store } = submissions;
  return plain({
    gateway: {
      connections,
      accepted,
      open,
      held,
      resends,
      ...ends,
      storeFailures: store.failures,
      landedTips,
      ...(shreds && { shreds }),
      routes: routes.map(
        ({ name, health, queued, sent, acknowledged, refused, failed, dropped }) => ({
          name,
          health,
          queued,
          sent,
          acknowledged,
          refused,
          failed,
          dropped,
        }),
      ),
    },
  });
}

/** Converts bigint as in other JSON output, because the log's encoder does not support it. */
export function plain(value: Record<string, unknown>): Record<string, unknown> {
  const parsed: unknown = JSON.parse(toJson(value));
  return typeof parsed === "object" && parsed !== null ? { ...parsed } : {};
}
