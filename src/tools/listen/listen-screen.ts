// Output of `listen`: counters of a feed and the completeness of each slot. Pure.

import type { LagHistogram } from "../../core/log-linear-histogram.ts";
import { ratio } from "../../core/values.ts";
import {
  coverageOf,
  distinct,
  type RelayReport,
  refusals,
  refusedTotal,
} from "../../relay/data-plane/report.ts";
import type { RelaySnapshot } from "../../relay/data-plane/snapshot.ts";
import type { TraceDelays } from "../../relay/shredstream/trace-delays.ts";
import type { FeedTiming } from "../race/feed-timing.ts";
import {
  formatBytes,
  formatClock,
  formatCount,
  formatNs,
  formatRate,
  formatShare,
  type Paint,
  table,
} from "../terminal/formatting.ts";
import { refusalText } from "../terminal/relay-report.ts";
import type { SlotTotals } from "./slot-ledger.ts";

export interface ListenView {
  readonly seconds: number;
  readonly addresses: readonly string[];
  /** Whether signatures are checked against a leader schedule. */
  readonly verifies: boolean;
  /** Whether ownership challenges are answered. */
  readonly proves: boolean;
  readonly now: RelaySnapshot;
  readonly report: RelayReport;
  readonly totals: SlotTotals;
  /** Timing of settled slots. */
  readonly timing: FeedTiming;
  /** Shreds that arrived after their slot had settled. */
  readonly late: number;
  /** One-way delays of a block engine's trace packets, by region. */
  readonly traces: ReturnType<TraceDelays["delays"]>;
  /** Received items that were not recorded because a ring was full. */
  readonly lost: { readonly arrivals: number; readonly packets: number };
  readonly record:
    | {
        readonly path: string;
        readonly packets: number;
        readonly bytes: number;
        readonly leftOut: number;
        readonly isFull: boolean;
        readonly failure: Error | null;
      }
    | undefined;
}

const slotsShown = 8;

function duplicates({ verdicts }: RelaySnapshot): bigint {
  return verdicts.duplicate + verdicts.equivocation_excess;
}

function verification(view: ListenView): string {
  return view.verifies
    ? `${formatCount(distinct(view.now.verdicts))} verified`
    : "NOT VERIFIED (no leader schedule: --leaders FILE)";
}

function challengesAnswered({ now, proves }: ListenView): string[] {
  return proves ? [`ownership challenges answered ${formatCount(now.verdicts.challenge)}`] : [];
}

function traceLines({ traces }: ListenView): string[] {
  return traces.map(
    ({ region, lastSeconds, histogram }) =>
      `trace packets from ${region} ${histogram.count}, one-way delay ${(lastSeconds * 1000).toFixed(1)} ms`,
  );
}

export function listenLines(view: ListenView, paint: Paint): string[] {
  const { now, report } = view;
  const refused = refusalText(now.verdicts);
  const verified = verification(view);
  return [
    `${paint.bold("now")}    received ${formatRate(report.receivedPerSecond)}   distinct ${formatRate(report.distinctPerSecond)}   refused ${formatRate(report.refusedPerSecond)}`,
    `${paint.bold("total")}  received ${formatCount(now.received)}   distinct ${formatCount(distinct(now.verdicts))}   duplicates ${formatCount(duplicates(now))}   dropped by the kernel ${formatCount(now.receiveDrops)}`,
    `       ${view.verifies ? paint.good(verified) : paint.note(verified)}`,
    ...(refused ? [`       ${paint.bad("refused")} ${refused}`] : []),
    ...challengesAnswered(view).map((text) => `       ${text}`),
    ...traceLines(view).map((text) => `       ${text}`),
    ...timingLines(view).map((text) => `       ${text}`),
    ...recordLines(view).map((text) => `       ${text}`),
    "",
    ...slotTable(now, paint),
    "",
    paint.dim(
      `${formatClock(view.seconds)} on ${view.addresses.join(", ")}. Press Ctrl-C to stop.`,
    ),
  ];
}

function percentiles(lags: LagHistogram): string {
  const at = (p: number) => formatNs(lags.percentile(p) ?? 0);
  return `p50 ${at(50)}, p95 ${at(95)}, p99 ${at(99)}`;
}

/** Covers settled slots; empty before the first one. */
function timingLines({ timing }: ListenView): string[] {
  if (timing.sets === 0) return [];
  const { lossShare, gaps, sets, recoverableSets } = timing;
  return [
    `lost ${formatShare(lossShare ?? 0)} of the shreds of ${formatCount(sets + timing.absentSets)} FEC sets, in ${formatCount(gaps.count)} gaps, longest ${gaps.longest}; recoverable ${formatShare(ratio(recoverableSets, sets + timing.absentSets))}`,
    `FEC set first to 32nd ${percentiles(timing.toRecoverable)}; to last ${percentiles(timing.toLast)}`,
    `between shreds ${percentiles(timing.step)}; between slots ${percentiles(timing.slotStep)}`,
  ];
}

function recordLines({ record, lost }: ListenView): string[] {
  if (!record) return [];
  const full =
    record.isFull || record.leftOut > 0 ? `, omitted ${formatCount(record.leftOut)}` : "";
  if (record.failure) return [`FAILED: ${record.failure.message}${full}`];
  return [
    `recorded ${formatCount(record.packets)} packets, ${formatBytes(record.bytes)}, to ${record.path}${full}${lost.packets > 0 ? `, LOST ${formatCount(lost.packets)}: this machine is too slow` : ""}`,
  ];
}

function slotTable(now: RelaySnapshot, paint: Paint): string[] {
  const rows = now.slots.slice(-slotsShown).map((slot) => {
    const coverage = coverageOf(slot);
    return [
      String(slot.slot),
      formatCount(slot.data),
      formatCount(slot.code),
      slot.lastDataIndex === null ? "?" : String(slot.lastDataIndex),
      coverage.dataShare === null ? "?" : formatShare(coverage.dataShare),
      coverage.share === null ? "?" : formatShare(coverage.share),
      formatNs(coverage.spanNs),
    ];
  });
  const [title = "", ...lines] = table(
    [
      { title: "SLOT", right: true, width: 10 },
      { title: "DATA", right: true, width: 6 },
      { title: "CODE", right: true, width: 6 },
      { title: "LAST INDEX", right: true },
      { title: "DATA COMPLETE", right: true },
      { title: "COMPLETE", right: true },
      { title: "FIRST TO LAST", right: true },
    ],
    rows,
  );
  return [paint.bold(title), ...lines];
}

/** One line for output that cannot be redrawn. */
export function listenLine(view: ListenView): string {
  const { now, report } = view;
  const newest = now.slots.at(-1);
  const share = newest && coverageOf(newest).share;
  return [
    formatClock(view.seconds),
    `received ${formatRate(report.receivedPerSecond)}`,
    `distinct ${formatCount(distinct(now.verdicts))}`,
    `duplicates ${formatCount(duplicates(now))}`,
    `refused ${formatCount(refusedTotal(now.verdicts))}`,
    newest
      ? `slot ${newest.slot} ${share === null || share === undefined ? `${newest.data} data ${newest.code} code` : formatShare(share)}`
      : "no slot yet",
    view.verifies ? "verified" : "not verified",
    ...challengesAnswered(view),
  ].join("  ");
}

export function listenSummary(view: ListenView): string[] {
  const { now, totals, seconds } = view;
  const refused = refusalText(now.verdicts);
  const share = (count: bigint) => formatShare(ratio(count, now.received));
  return [
    `received    ${formatCount(now.received)} in ${formatClock(seconds)}`,
    `distinct    ${formatCount(distinct(now.verdicts))} (${share(distinct(now.verdicts))})`,
    `duplicates  ${formatCount(duplicates(now))} (${share(duplicates(now))})`,
    `refused     ${formatCount(refusedTotal(now.verdicts))}${refused ? `: ${refused}` : ""}`,
    `kernel      ${formatCount(now.receiveDrops)} dropped, receive buffer full`,
    `slots       ${totals.slots}: ${totals.complete} complete, ${totals.dataComplete} with all data shreds, ${totals.endUnknown} without their last shred`,
    ...timingLines(view).map(
      (text, i) => `${["losses", "sets", "steps"][i]?.padEnd(12) ?? ""}${text}`,
    ),
    ...recordLines(view).map((text) => `record      ${text}`),
    `signatures  ${verification(view)}`,
    ...challengesAnswered(view),
    ...traceLines(view),
  ];
}

/** Object of --json: once a second, and at the end with `final: true`. */
export function listenJson(view: ListenView, final: boolean): Record<string, unknown> {
  const { now, report } = view;
  return {
    final,
    seconds: Math.round(view.seconds * 1000) / 1000,
    addresses: view.addresses,
    verified: view.verifies,
    received: now.received,
    receivedPerSecond: Math.round(report.receivedPerSecond * 10) / 10,
    distinct: distinct(now.verdicts),
    duplicates: duplicates(now),
    refused: Object.fromEntries(refusals(now.verdicts).map(({ name, count }) => [name, count])),
    kernelDrops: now.receiveDrops,
    challengesAnswered: view.proves ? now.verdicts.challenge : null,
    traces: view.traces.map(({ region, lastSeconds, histogram }) => ({
      region,
      packets: histogram.count,
      lastDelayNs: Math.round(lastSeconds * 1e9),
    })),
    slotTotals: view.totals,
    slots: now.slots.slice(-slotsShown).map((slot) => coverageOf(slot)),
    ...timingJson(view.timing),
    late: view.late,
    notNoted: view.lost.arrivals,
    recorded: view.record
      ? {
          file: view.record.path,
          packets: view.record.packets,
          bytes: view.record.bytes,
          leftOut: view.record.leftOut,
          lost: view.lost.packets,
          failure: view.record.failure?.message ?? null,
        }
      : null,
  };
}

function timingJson(timing: FeedTiming): Record<string, unknown> {
  const numbers = (lags: LagHistogram) => ({
    count: lags.count,
    p50: lags.percentile(50),
    p95: lags.percentile(95),
    p99: lags.percentile(99),
    max: lags.percentile(100),
  });
  return {
    settledSlots: timing.slots,
    fecSets: {
      seen: timing.sets,
      complete: timing.completeSets,
      recoverable: timing.recoverableSets,
      absent: timing.absentSets,
      firstTo32Ns: numbers(timing.toRecoverable),
      firstToLastNs: numbers(timing.toLast),
    },
    losses: {
      share: timing.lossShare,
      data: timing.missingData,
      code: timing.missingCode,
      gaps: timing.gaps.count,
      longestGap: timing.gaps.longest,
    },
    slotSpanNs: numbers(timing.slotSpan),
    betweenShredsNs: numbers(timing.step),
    betweenSlotsNs: numbers(timing.slotStep),
  };
}
