// Snapshots: the data plane's counters as typed values.
//
// Decodes the u64 array of native/relay/counters.h (SnapshotLayout). Pure: relay.ts reads the array and
// knows the owners of the rows.

import { decodeHistogram, type Histogram } from "../../core/log-linear-histogram.ts";
import {
  type DeshredCounterName,
  deshredCounterNames,
  type NextHopStateName,
  nextHopStateNames,
  type SendFailureName,
  sendFailureNames,
  type VerdictName,
  verdictNames,
  type WorkerCounterName,
  workerCounterNames,
} from "./names.ts";

export type VerdictCounts = Record<VerdictName, bigint>;
type WorkerSnapshot = Record<WorkerCounterName, bigint>;

export interface SourceSnapshot {
  readonly name: string;
  readonly tier: string;
  /** false: for own use. */
  readonly isForwarded: boolean;
  readonly received: bigint;
  /** Shreds that no source had delivered before. */
  readonly first: bigint;
  readonly duplicate: bigint;
  readonly verdicts: VerdictCounts;
  /**
   * Lead time in nanoseconds: time until the next source delivered a shred that this source delivered
   * first.
   */
  readonly leadTime: Histogram;
}

export interface DestinationSnapshot {
  readonly name: string;
  readonly address: string;
  readonly tier: string;
  /** Datagrams passed to the kernel. */
  readonly sent: bigint;
  readonly failed: Record<SendFailureName, bigint>;
  /** Received ICMP errors. */
  readonly icmp: bigint;
  /** Recovered shreds that were sent before the originals arrived; not included in `sent`. */
  readonly recoveredSent: bigint;
}

export interface SlotSnapshot {
  readonly slot: bigint;
  /** Kernel receive times, CLOCK_REALTIME. */
  readonly firstSeenNs: bigint;
  readonly lastSeenNs: bigint;
  readonly data: number;
  readonly code: number;
  readonly highestDataIndex: number;
  /** Index of the shred that ended the slot; null: not observed yet. */
  readonly lastDataIndex: number | null;
}

export interface RelaySnapshot {
  readonly takenAtNs: bigint;
  /** Datagrams read from the sockets; each has exactly one verdict. */
  readonly received: bigint;
  /** Datagrams that the receive filter dropped in the kernel: neither shreds nor challenges. */
  readonly filtered: bigint;
  /** Datagrams that the kernel dropped because a receive buffer was full. */
  readonly receiveDrops: bigint;
  readonly verdicts: VerdictCounts;
  readonly workers: readonly WorkerSnapshot[];
  readonly sources: readonly SourceSnapshot[];
  readonly destinations: readonly DestinationSnapshot[];
  /**
   * Receive-to-send latency in nanoseconds: from the kernel's receive time until the batch is sent.
   */
  readonly latency: Histogram;
  /** Counts of the deshredder; all zero without deshredding. */
  readonly deshred: Record<DeshredCounterName, bigint> & {
    /** Nanoseconds from the receive time of the last shred of a landing to its report. */
    readonly reportLatency: Histogram;
  };
  /**
   * Destinations by the present state of their next hop: only "resolved" ones can be cloned. All zero in
   * socket mode.
   */
  readonly nextHops: Record<NextHopStateName, bigint>;
  /** The newest slots (64 at most), ascending. */
  readonly slots: readonly SlotSnapshot[];
}

/** Owner of a row of counters. */
interface Row {
  readonly id: number;
  readonly name: string;
  readonly tier: string;
}
export interface SourceRow extends Row {
  readonly isForwarded: boolean;
}
export interface DestinationRow extends Row {
  readonly address: string;
}

export interface SnapshotShape {
  readonly workers: number;
  readonly sourceRows: number;
  readonly destinationRows: number;
  readonly histogramBuckets: number;
  readonly histogramPrecisionBits: number;
  readonly slotRows: number;
  readonly slotRowFields: number;
}

const noSlot = 2n ** 64n - 1n;

/** Offsets of the parts, in words; the same arithmetic as the native SnapshotLayout. */
export function layoutOf(shape: SnapshotShape) {
  const histogramWords = shape.histogramBuckets + 2;
  const sourceWords = verdictNames.length + histogramWords;
  const destinationWords = 1 + sendFailureNames.length + 2;
  const latency = shape.workers * workerCounterNames.length;
  const slots = latency + histogramWords;
  const deshred = slots + shape.slotRows * shape.slotRowFields;
  const nextHops = deshred + deshredCounterNames.length + histogramWords;
  const sources = nextHops + nextHopStateNames.length;
  const destinations = sources + (shape.sourceRows + 1) * sourceWords;
  const words = destinations + shape.destinationRows * destinationWords;
  return {
    histogramWords,
    sourceWords,
    destinationWords,
    latency,
    slots,
    deshred,
    nextHops,
    sources,
    destinations,
    words,
  };
}

/** Counts by name: word begin + i belongs to names[i]. */
function record<Name extends string>(
  names: readonly Name[],
  words: BigUint64Array,
  begin: number,
): Record<Name, bigint> {
  const counts: Partial<Record<Name, bigint>> = {};
  names.forEach((name, i) => {
    counts[name] = words[begin + i] ?? 0n;
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every name was just assigned
  return counts as Record<Name, bigint>;
}

function sum(counts: Record<string, bigint>): bigint {
  return Object.values(counts).reduce((total, count) => total + count, 0n);
}

/** The rows of slots that begin at word `begin`. */
export function decodeSlots(
  words: BigUint64Array,
  begin: number,
  shape: SnapshotShape,
): SlotSnapshot[] {
  const slots: SlotSnapshot[] = [];
  for (let row = 0; row < shape.slotRows; row++) {
    const field = (i: number) => words[begin + row * shape.slotRowFields + i] ?? 0n;
    if (field(0) === noSlot) continue;
    const lastPlusOne = Number(field(6));
    slots.push({
      slot: field(0),
      firstSeenNs: field(1),
      lastSeenNs: field(2),
      data: Number(field(3)),
      code: Number(field(4)),
      highestDataIndex: Number(field(5)),
      lastDataIndex: lastPlusOne === 0 ? null : lastPlusOne - 1,
    });
  }
  return slots;
}

/** Sums over all rows of sources, and of packets from unknown senders. */
export function verdictTotals(words: BigUint64Array, shape: SnapshotShape): VerdictCounts {
  const { sources, sourceWords } = layoutOf(shape);
  const totals = record(verdictNames, words, words.length); // all zero
  for (let row = 0; row <= shape.sourceRows; row++) {
    verdictNames.forEach((name, i) => {
      totals[name] += words[sources + row * sourceWords + i] ?? 0n;
    });
  }
  return totals;
}

/** `words` is retained by reference (histograms read it later): pass a separate array. */
export function decodeSnapshot(
  words: BigUint64Array,
  shape: SnapshotShape,
  rows: { sources: readonly SourceRow[]; destinations: readonly DestinationRow[] },
  takenAtNs: bigint,
): RelaySnapshot {
  const layout = layoutOf(shape);
  const histogramAt = (begin: number) =>
    decodeHistogram(
      words.subarray(begin, begin + layout.histogramWords),
      shape.histogramPrecisionBits,
    );
  const workers = Array.from({ length: shape.workers }, (_, i) =>
    record(workerCounterNames, words, i * workerCounterNames.length),
  );
  return {
    takenAtNs,
    received: workers.reduce((total, worker) => total + worker.received, 0n),
    filtered: workers.reduce((total, worker) => total + worker.filtered, 0n),
    receiveDrops: workers.reduce((total, worker) => total + worker.receive_drops, 0n),
    verdicts: verdictTotals(words, shape),
    workers,
    sources: rows.sources.map(({ id, name, tier, isForwarded }) => {
      const begin = layout.sources + id * layout.sourceWords;
      const counts = record(verdictNames, words, begin);
      return {
        name,
        tier,
        isForwarded,
        received: sum(counts),
        first: counts.first + counts.own_use,
        duplicate: counts.duplicate,
        verdicts: counts,
        leadTime: histogramAt(begin + verdictNames.length),
      };
    }),
    destinations: rows.destinations.map(({ id, name, tier, address }) => {
      const begin = layout.destinations + id * layout.destinationWords;
      return {
        name,
        address,
        tier,
        sent: words[begin] ?? 0n,
        failed: record(sendFailureNames, words, begin + 1),
        icmp: words[begin + 1 + sendFailureNames.length] ?? 0n,
        recoveredSent: words[begin + 2 + sendFailureNames.length] ?? 0n,
      };
    }),
    latency: histogramAt(layout.latency),
    deshred: {
      ...record(deshredCounterNames, words, layout.deshred),
      reportLatency: histogramAt(layout.deshred + deshredCounterNames.length),
    },
    nextHops: record(nextHopStateNames, words, layout.nextHops),
    slots: decodeSlots(words, layout.slots, shape),
  };
}

/** Subtracts `baseline` from the words that begin at `begin`. */
export function subtract(words: BigUint64Array, begin: number, baseline: BigUint64Array): void {
  baseline.forEach((value, i) => {
    words[begin + i] = (words[begin + i] ?? 0n) - value;
  });
}
