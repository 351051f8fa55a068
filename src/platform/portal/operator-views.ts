// Operator views: sources, workers, routes, verdicts, fan-out and problems. Pure.
//
// Called by live-feed.ts once a second, only for sessions whose key has the scope "operate": the
// views contain names and addresses of all customers.

import { maskKeys } from "../../core/log.ts";
import type { Problem } from "../../core/recent-warnings.ts";
import { ratio } from "../../core/values.ts";
import type { RouteSnapshot } from "../../gateway/submission/types.ts";
import { verdictNames } from "../../relay/data-plane/names.ts";
import { failedTotal, refusedTotal } from "../../relay/data-plane/report.ts";
import type { SubscriptionStatus } from "../../relay/shredstream/subscription-status.ts";
import type { TraceDelays } from "../../relay/shredstream/trace-delays.ts";
import { timeText } from "./api-key-actions.ts";
import { histogramView } from "./customer-views.ts";
import type { Sample } from "./sampler.ts";
import type {
  CountView,
  FanOutView,
  ProblemView,
  RouteView,
  SourceView,
  WorkerView,
} from "./types.ts";

const destinationsMax = 100;

export function sourceViews(
  sample: Sample | null,
  subscriptions: readonly SubscriptionStatus[],
  traces: ReturnType<TraceDelays["delays"]>,
): SourceView[] {
  if (!sample) return [];
  const subscriptionOf = new Map(subscriptions.map((status) => [status.name, status]));
  const { now, report, minuteAgo } = sample;
  const before = new Map(minuteAgo.sources.map((source) => [source.name, source]));
  const recent = now.sources.map((source) => {
    const earlier = before.get(source.name);
    const since = (count: bigint, then: bigint | undefined) =>
      Math.max(0, Number(count - (then ?? 0n)));
    return {
      first: since(source.first, earlier?.first),
      duplicate: since(source.duplicate, earlier?.duplicate),
      received: since(source.received, earlier?.received),
      leadTime: earlier ? source.leadTime.since(earlier.leadTime) : source.leadTime,
    };
  });
  const allFirst = recent.reduce((total, { first }) => total + first, 0);
  return now.sources.map((source, i) => {
    const { first = 0, duplicate = 0, received = 0, leadTime = source.leadTime } = recent[i] ?? {};
    return {
      name: source.name,
      tier: source.tier,
      isForwarded: source.isForwarded,
      receivedPerSecond: Math.max(0, report.sources[i]?.receivedPerSecond ?? 0),
      received: Number(source.received),
      firstShare: ratio(first, allFirst),
      duplicateShare: ratio(duplicate, received),
      refused: Number(refusedTotal(source.verdicts)),
      leadTime: histogramView(leadTime),
      state: subscriptionOf.get(source.name)?.state ?? null,
      problem: subscriptionOf.get(source.name)?.problem ?? null,
      traceDelays: traces
        .filter((trace) => trace.source === source.name)
        .map(({ region, lastSeconds }) => ({ region, lastNs: Math.round(lastSeconds * 1e9) })),
    };
  });
}

export function workerViews(sample: Sample | null): WorkerView[] {
  if (!sample) return [];
  const { now, report } = sample;
  return now.workers.map((worker, i) => ({
    load: Math.min(1, Math.max(0, report.workerLoads[i] ?? 0)),
    receivedPerSecond: Math.max(0, report.workerRates[i] ?? 0),
    receiveDrops: Number(worker.receive_drops),
    highestSlot: Number(worker.highest_slot),
  }));
}

/** Includes verdicts that never occurred. */
export function verdictViews(sample: Sample | null): CountView[] {
  if (!sample) return [];
  const { now, report } = sample;
  return verdictNames.map((name) => ({
    name,
    count: Number(now.verdicts[name]),
    perSecond: Math.max(0, report.verdictRates[name]),
  }));
}

export function fanOutView(sample: Sample | null): FanOutView {
  if (!sample) return { sentPerSecond: 0, destinations: [] };
  const { now, report } = sample;
  const destinations = now.destinations.map((destination, i) => ({
    name: destination.name,
    address: destination.address,
    tier: destination.tier,
    sentPerSecond: Math.max(0, report.destinations[i]?.sentPerSecond ?? 0),
    failed: Number(failedTotal(destination)),
    icmp: Number(destination.icmp),
  }));
  return {
    sentPerSecond: Math.max(0, report.sentPerSecond),
    destinations: destinations
      .toSorted((a, b) => b.failed + b.icmp - (a.failed + a.icmp))
      .slice(0, destinationsMax),
  };
}

export function routeViews(routes: readonly RouteSnapshot[]): RouteView[] {
  return routes.map((route) => ({
    name: route.name,
    kind: route.kind,
    state: route.health,
    sent: Number(route.sent),
    taken: Number(route.acknowledged),
    refused: Number(route.refused),
    queued: route.queued,
    sendP50Ns: route.sendP50Us === null ? null : Math.round(route.sendP50Us * 1000),
    lastFailure: route.lastFailure === "" ? null : maskKeys(route.lastFailure),
    lastFailureAt: route.lastFailureNs === null ? null : timeText(route.lastFailureNs),
  }));
}

export function problemViews(problems: readonly Problem[]): ProblemView[] {
  return problems.map(({ time, level, text, count }) => ({ time, level, text, count }));
}
