// Customer views: tier, destinations, relay coverage and latency, and tips of one account. Pure.
//
// Called by live-feed.ts once a second. No view contains data of another account.

import type { Histogram } from "../../core/log-linear-histogram.ts";
import type { ShredSales } from "../../gateway/methods/dependencies.ts";
import { destinationFacts } from "../../gateway/methods/destinations.ts";
import { tierFacts, tipProofOf } from "../../gateway/methods/tiers.ts";
import { coverageOf, failedTotal } from "../../relay/data-plane/report.ts";
import type { RelaySnapshot } from "../../relay/data-plane/snapshot.ts";
import type { TipHistoryReader, TipQuarter, TipSnapshot } from "../../tips/tip-types.ts";
import type { Sample } from "./sampler.ts";
import type {
  CoverageView,
  DestinationView,
  HistogramView,
  TierView,
  TipPoint,
  TipsView,
} from "./types.ts";

const nsPerMs = 1_000_000n;

export function histogramView(histogram: Histogram): HistogramView {
  const { count, max } = histogram;
  const percentile = (p: number) => (count === 0n ? null : Number(histogram.percentile(p)));
  return {
    count: Number(count),
    p50Ns: percentile(50),
    p90Ns: percentile(90),
    p99Ns: percentile(99),
    maxNs: count === 0n ? null : Number(max),
    buckets: histogram
      .bars()
      .map((bar) => ({ upToNs: Number(bar.upTo), count: Number(bar.count) })),
  };
}

export function tierView(
  shreds: ShredSales | null,
  accountId: string,
  tipAddresses: readonly string[],
): TierView {
  if (!shreds) {
    const none = { tier: null, sumLamports: 0, windowHours: 0, thresholds: [], grace: null };
    return { isSold: false, ...none, tipAddresses: [], tipProof: null };
  }
  const { tier, sumLamports, windowHours, thresholds, grace } = tierFacts(shreds, accountId);
  return {
    isSold: true,
    tier,
    sumLamports: Number(sumLamports),
    windowHours,
    thresholds: thresholds.map((threshold) => ({
      tier: threshold.tier,
      thresholdLamports: Number(threshold.thresholdLamports),
      missingLamports: Number(threshold.missingLamports),
    })),
    grace,
    tipAddresses,
    tipProof: tipProofOf(accountId),
  };
}

/** `sample` is null in a process without a relay. */
export function destinationViews(
  shreds: ShredSales | null,
  accountId: string,
  sample: Sample | null,
): DestinationView[] {
  if (!shreds) return [];
  const { destinations } = shreds;
  const own = destinations.ofAccount(accountId);
  if (own.length === 0) return [];
  const sent = new Map(sample?.now.destinations.map((one) => [one.name, one]));
  const before = new Map(sample?.minuteAgo.destinations.map(({ name, icmp }) => [name, icmp]));
  const rates = new Map(
    sample?.report.destinations.map(({ name, sentPerSecond }) => [name, sentPerSecond]),
  );
  return own.map((destination) => {
    // Match by name: another account may use the same address by now.
    const name = `${destination.accountName}/${destination.id}`;
    const row = sent.get(name);
    const sending = row
      ? {
          tier: row.tier,
          sent: Number(row.sent),
          sentPerSecond: Math.max(0, rates.get(name) ?? 0),
          failed: Number(failedTotal(row)),
          icmp: Number(row.icmp),
          icmpLastMinute: Math.max(0, Number(row.icmp - (before.get(name) ?? 0n))),
        }
      : null;
    return { ...destinationFacts(destinations, destination), sending };
  });
}

function slotView(slot: RelaySnapshot["slots"][number]): CoverageView["slots"][number] {
  const { data, code, dataShare, share, spanNs } = coverageOf(slot);
  return {
    slot: Number(slot.slot),
    data,
    code,
    dataShare,
    share,
    firstSeenMs: Number(slot.firstSeenNs / nsPerMs),
    spanMs: Number(spanNs) / 1e6,
  };
}

export function coverageView(sample: Sample | null): CoverageView {
  const none = { count: 0, p50Ns: null, p90Ns: null, p99Ns: null, maxNs: null, buckets: [] };
  if (!sample) return { slots: [], receiveToSend: none };
  const { now, minuteAgo } = sample;
  return {
    slots: now.slots.map(slotView),
    receiveToSend: histogramView(now.latency.since(minuteAgo.latency)),
  };
}

type TipFacts = Pick<TipSnapshot, "timeMs" | "count" | "isStale" | "percentiles">;

function tipPoint({ timeMs, percentiles, count, isStale }: TipFacts): TipPoint {
  return {
    time: new Date(timeMs).toISOString(),
    p25: Number(percentiles.p25),
    p50: Number(percentiles.p50),
    p75: Number(percentiles.p75),
    p95: Number(percentiles.p95),
    p99: Number(percentiles.p99),
    count,
    isStale,
  };
}

const noPercentiles = { p25: 0n, p50: 0n, p75: 0n, p95: 0n, p99: 0n };

/** The quarter hours of the last `hours`; a count of 0 means that no tip landed. */
export function tipPoints(history: TipHistoryReader, hours: number): TipPoint[] {
  return history
    .last(hours)
    .map(({ timeMs, count, percentiles }: TipQuarter) =>
      tipPoint({ timeMs, count, percentiles: percentiles ?? noPercentiles, isStale: false }),
    );
}

export function tipsView({
  snapshot,
  history,
}: {
  readonly snapshot: TipSnapshot;
  readonly history: TipHistoryReader;
}): TipsView {
  return { now: tipPoint(snapshot), history: tipPoints(history, 24) };
}
