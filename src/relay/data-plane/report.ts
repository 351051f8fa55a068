// Report: rates, shares and rejections from two snapshots of a relay. Pure.
//
// Called by start (statistics line), the sandbox (live table), listen and the portal. Counters only
// grow, so the difference of two snapshots divided by their time difference is a rate.

import { ratio } from "../../core/values.ts";
import { passedOnVerdicts, type VerdictName, verdictNames } from "./names.ts";
import type {
  DestinationSnapshot,
  RelaySnapshot,
  SlotSnapshot,
  SourceSnapshot,
  VerdictCounts,
} from "./snapshot.ts";

const knownAlready: readonly VerdictName[] = ["duplicate", "equivocation_excess"];

/** Verdicts that are neither sent nor refused. */
const kept: readonly VerdictName[] = ["own_use", "challenge", "trace", "heartbeat"];

/** Verdicts of packets that are not shreds of a leader, or not for this relay. */
const refusedVerdicts: readonly VerdictName[] = verdictNames.filter(
  (name) =>
    !passedOnVerdicts.includes(name) && !knownAlready.includes(name) && !kept.includes(name),
);

export interface NamedCount {
  readonly name: VerdictName;
  readonly count: bigint;
}

/** The reasons of rejected packets, most frequent first; only those that occurred. */
export function refusals(verdicts: VerdictCounts): NamedCount[] {
  return refusedVerdicts
    .map((name) => ({ name, count: verdicts[name] }))
    .filter(({ count }) => count > 0n)
    .toSorted((a, b) => Number(b.count - a.count));
}

export function refusedTotal(verdicts: VerdictCounts): bigint {
  return refusedVerdicts.reduce((total, name) => total + verdicts[name], 0n);
}

/** Distinct shreds: first arrivals from any source, and the second one of an equivocation. */
export function distinct(verdicts: VerdictCounts): bigint {
  return verdicts.first + verdicts.own_use + verdicts.equivocation;
}

interface SourceReport {
  readonly name: string;
  readonly tier: string;
  readonly receivedPerSecond: number;
  /** Share of the distinct shreds that this source delivered before the others. */
  readonly firstShare: number;
  readonly duplicateShare: number;
  readonly leadTimeP50Ns: bigint;
  readonly refused: bigint;
  /** Most frequent first; only those that occurred. */
  readonly refusals: readonly NamedCount[];
}

interface DestinationReport {
  readonly name: string;
  readonly address: string;
  readonly tier: string;
  readonly sentPerSecond: number;
  readonly failed: bigint;
  /** Received ICMP errors: no receiver, or unreachable. */
  readonly icmpPerSecond: number;
}

export interface RelayReport {
  readonly seconds: number;
  readonly receivedPerSecond: number;
  readonly distinctPerSecond: number;
  readonly sentPerSecond: number;
  readonly refusedPerSecond: number;
  /** Transactions that the deshredder decoded, including votes. */
  readonly transactionsPerSecond: number;
  /** CPU time divided by wall time, per worker. */
  readonly workerLoads: readonly number[];
  /** Packets per second, per worker. */
  readonly workerRates: readonly number[];
  /** Packets per second. */
  readonly verdictRates: Readonly<Record<VerdictName, number>>;
  readonly sources: readonly SourceReport[];
  readonly destinations: readonly DestinationReport[];
}

export function reportBetween(before: RelaySnapshot, after: RelaySnapshot): RelayReport {
  const seconds = Math.max(1e-9, Number(after.takenAtNs - before.takenAtNs) / 1e9);
  const perSecond = (now: bigint, then: bigint) => Number(now - then) / seconds;
  const allFirst = after.sources.reduce((total, source) => total + source.first, 0n);
  const earlier = new Map(
    before.destinations.map((destination) => [destination.address, destination]),
  );
  const destinations = after.destinations.map((destination) => ({
    name: destination.name,
    address: destination.address,
    tier: destination.tier,
    sentPerSecond: perSecond(destination.sent, earlier.get(destination.address)?.sent ?? 0n),
    failed: failedTotal(destination),
    icmpPerSecond: perSecond(destination.icmp, earlier.get(destination.address)?.icmp ?? 0n),
  }));
  return {
    seconds,
    receivedPerSecond: perSecond(after.received, before.received),
    distinctPerSecond: perSecond(distinct(after.verdicts), distinct(before.verdicts)),
    sentPerSecond: destinations.reduce((total, { sentPerSecond }) => total + sentPerSecond, 0),
    refusedPerSecond: perSecond(refusedTotal(after.verdicts), refusedTotal(before.verdicts)),
    transactionsPerSecond: perSecond(after.deshred.transactions, before.deshred.transactions),
    workerLoads: after.workers.map(
      (worker, i) =>
        Number(worker.cpu_ns - (before.workers[i]?.cpu_ns ?? 0n)) / (seconds * 1_000_000_000),
    ),
    workerRates: after.workers.map((worker, i) =>
      perSecond(worker.received, before.workers[i]?.received ?? 0n),
    ),
    verdictRates: verdictRates(before.verdicts, after.verdicts, seconds),
    sources: after.sources.map((source) => reportSource(source, before, allFirst, seconds)),
    destinations,
  };
}

function verdictRates(before: VerdictCounts, after: VerdictCounts, seconds: number) {
  const rate = (name: VerdictName): [VerdictName, number] => [
    name,
    Number(after[name] - before[name]) / seconds,
  ];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every name is there
  return Object.fromEntries(verdictNames.map(rate)) as Record<VerdictName, number>;
}

function reportSource(
  source: SourceSnapshot,
  before: RelaySnapshot,
  allFirst: bigint,
  seconds: number,
): SourceReport {
  const earlier = before.sources.find(({ name }) => name === source.name);
  return {
    name: source.name,
    tier: source.tier,
    receivedPerSecond: Number(source.received - (earlier?.received ?? 0n)) / seconds,
    firstShare: ratio(source.first, allFirst),
    duplicateShare: ratio(source.duplicate, source.received),
    leadTimeP50Ns: source.leadTime.percentile(50),
    refused: refusedTotal(source.verdicts),
    refusals: refusals(source.verdicts),
  };
}

export function failedTotal(destination: DestinationSnapshot): bigint {
  return Object.values(destination.failed).reduce((total, count) => total + count, 0n);
}

interface SlotCoverage {
  readonly slot: bigint;
  readonly data: number;
  readonly code: number;
  /** Index of the last data shred; null: not observed yet. */
  readonly lastDataIndex: number | null;
  /** Share of the slot's data shreds that arrived; null: the total is unknown. */
  readonly dataShare: number | null;
  /** The same for data and code shreds (equal numbers, because sets are 32:32). */
  readonly share: number | null;
  /** From the first to the last shred of the slot. */
  readonly spanNs: bigint;
}

export function coverageOf(slot: SlotSnapshot): SlotCoverage {
  const dataMax = slot.lastDataIndex === null ? null : slot.lastDataIndex + 1;
  return {
    slot: slot.slot,
    data: slot.data,
    code: slot.code,
    lastDataIndex: slot.lastDataIndex,
    dataShare: dataMax === null ? null : slot.data / dataMax,
    share: dataMax === null ? null : (slot.data + slot.code) / (2 * dataMax),
    spanNs: slot.lastSeenNs - slot.firstSeenNs,
  };
}
