// Metrics of the relay: packets by verdict, sources, destinations, workers, slots.
//
// Read from one snapshot of the data plane and from what the service knows beside it.

import type { RelaySnapshot, SlotSnapshot } from "../../relay/data-plane/snapshot.ts";
import type { DestinationCounts } from "./destination-rows.ts";
import { coarseBounds, fineBounds, nativeValue } from "./native-histogram.ts";
import { counter, counters, gauge, gauges, histogram, histograms, type Metric } from "./types.ts";

export interface RelayFacts {
  readonly snapshot: RelaySnapshot;
  readonly destinations: readonly DestinationCounts[];
  /** Those of the configuration, also without any source. */
  readonly tiers: readonly string[];
  readonly isAuthenticated: boolean;
  readonly isCloning: boolean;
}

type RelayMetric = Metric<RelayFacts>;
type WorkerSnapshot = RelaySnapshot["workers"][number];

const nanoseconds = (ns: bigint): number => Number(ns) / 1e9;

/** Behind the highest one: its shreds are still under way. */
const settledSlots = 2n;

/** The newest slot whose end was seen and that is not under way any more. */
function settledSlot(slots: readonly SlotSnapshot[]): SlotSnapshot | undefined {
  const highest = slots.at(-1)?.slot ?? 0n;
  return slots.findLast(
    ({ slot, lastDataIndex }) => lastDataIndex !== null && slot + settledSlots <= highest,
  );
}

const packets: readonly RelayMetric[] = [
  counter(
    "shredway_relay_packets_received_total",
    "Datagrams taken from the relay's sockets.",
    ({ snapshot }) => snapshot.received,
  ),
  counters(
    "shredway_relay_packets_total",
    ["verdict"],
    "Datagrams by what became of them; each has exactly one verdict. First, widened and equivocation were passed on.",
    ({ snapshot }, add) => {
      for (const [verdict, count] of Object.entries(snapshot.verdicts)) add([verdict], count);
    },
  ),
  counter(
    "shredway_relay_receive_drops_total",
    "Datagrams that the kernel dropped because a receive buffer was full.",
    ({ snapshot }) => snapshot.receiveDrops,
  ),
  histogram(
    "shredway_relay_latency_seconds",
    "From the kernel's receive time of a shred to after the send to its destinations.",
    ({ snapshot }) => nativeValue(snapshot.latency, fineBounds),
  ),
  gauge(
    "shredway_relay_authentication_enabled",
    "1: every shred passed on is signed by its leader. 0: authentication is off, forged shreds are passed on.",
    ({ isAuthenticated }) => (isAuthenticated ? 1 : 0),
  ),
  gauge(
    "shredway_relay_clone_enabled",
    "1: shreds are cloned inside the kernel where that is possible. 0: all go by socket.",
    ({ isCloning }) => (isCloning ? 1 : 0),
  ),
];

const sources: readonly RelayMetric[] = [
  gauges("shredway_relay_sources", ["tier"], "Sources in force.", ({ snapshot, tiers }, add) =>
    addByTier(tiers, snapshot.sources, add),
  ),
  counters(
    "shredway_relay_source_received_total",
    ["source", "tier"],
    "Datagrams that came from the source.",
    ({ snapshot }, add) => {
      for (const { name, tier, received } of snapshot.sources) add([name, tier], received);
    },
  ),
  counters(
    "shredway_relay_source_packets_total",
    ["source", "tier", "verdict"],
    "Datagrams of the source by what became of them; first and duplicate always, others from their first one on.",
    ({ snapshot }, add) => {
      for (const { name, tier, verdicts } of snapshot.sources) {
        for (const [verdict, count] of Object.entries(verdicts)) {
          const isShown = count > 0n || verdict === "first" || verdict === "duplicate";
          if (isShown) add([name, tier, verdict], count);
        }
      }
    },
  ),
  histograms(
    "shredway_relay_source_lead_seconds",
    ["source", "tier"],
    "How long before the next source the source brought a shred that it brought first.",
    ({ snapshot }, add) => {
      for (const { name, tier, leadTime } of snapshot.sources) {
        add([name, tier], nativeValue(leadTime, coarseBounds));
      }
    },
  ),
];

function addByTier(
  tiers: readonly string[],
  rows: readonly { readonly tier: string }[],
  add: (labels: readonly string[], value: number) => void,
): void {
  const byTier = new Map(tiers.map((tier): [string, number] => [tier, 0]));
  for (const { tier } of rows) byTier.set(tier, (byTier.get(tier) ?? 0) + 1);
  for (const [tier, count] of byTier) add([tier], count);
}

function ofDestinations(
  name: string,
  help: string,
  pick: (row: DestinationCounts) => bigint | null,
): RelayMetric {
  return counters(name, ["destination", "tier"], help, ({ destinations }, add) => {
    for (const row of destinations) {
      const count = pick(row);
      if (count !== null) add([row.name, row.tier], count);
    }
  });
}

const destinationMetrics: readonly RelayMetric[] = [
  gauges(
    "shredway_relay_destinations",
    ["tier"],
    "Destinations in force, fixed ones and those of accounts.",
    ({ snapshot, tiers }, add) => addByTier(tiers, snapshot.destinations, add),
  ),
  ofDestinations(
    "shredway_relay_destination_sent_total",
    "Shreds handed to the kernel for the destination.",
    ({ sent }) => sent,
  ),
  counters(
    "shredway_relay_destination_failed_total",
    ["destination", "tier", "reason"],
    "Shreds that could not be sent to the destination, by reason; from the first one on.",
    ({ destinations }, add) => {
      for (const { name, tier, failed } of destinations) {
        for (const [reason, count] of failed) add([name, tier, reason], count);
      }
    },
  ),
  ofDestinations(
    "shredway_relay_destination_icmp_errors_total",
    "ICMP errors that came back from the destination; from the first one on.",
    ({ icmp }) => icmp || null,
  ),
  ofDestinations(
    "shredway_relay_destination_recovered_sent_total",
    "Recovered shreds that were sent to the destination before the real ones came; from the first one on.",
    ({ recoveredSent }) => recoveredSent || null,
  ),
  gauges(
    "shredway_relay_next_hops",
    ["state"],
    "Destinations by the state of their next hop; only resolved ones may go by clone. All 0 while everybody goes by socket.",
    ({ snapshot }, add) => {
      for (const [state, count] of Object.entries(snapshot.nextHops)) add([state], count);
    },
  ),
];

function ofWorkers(
  name: string,
  help: string,
  pick: (worker: WorkerSnapshot) => bigint | number,
): RelayMetric {
  const define = name.endsWith("_total") ? counters : gauges;
  return define<RelayFacts>(name, ["worker"], help, ({ snapshot }, add) => {
    for (const [i, worker] of snapshot.workers.entries()) add([String(i)], pick(worker));
  });
}

const workers: readonly RelayMetric[] = [
  ofWorkers(
    "shredway_relay_worker_packets_total",
    "Datagrams that the worker took from its sockets.",
    ({ received }) => received,
  ),
  ofWorkers(
    "shredway_relay_worker_batches_total",
    "Receive calls of the worker that brought something.",
    ({ batches }) => batches,
  ),
  ofWorkers(
    "shredway_relay_worker_send_calls_total",
    "Send calls of the worker; each carries many shreds.",
    (worker) => worker.send_calls,
  ),
  ofWorkers(
    "shredway_relay_worker_gso_fallbacks_total",
    "Messages for segmentation by the kernel that had to go as single datagrams.",
    (worker) => worker.gso_fallbacks,
  ),
  ofWorkers(
    "shredway_relay_worker_signature_checks_total",
    "Ed25519 signatures that the worker verified.",
    (worker) => worker.signature_checks,
  ),
  ofWorkers(
    "shredway_relay_worker_cpu_seconds_total",
    "Processor time of the worker's thread.",
    (worker) => nanoseconds(worker.cpu_ns),
  ),
  ofWorkers(
    "shredway_relay_worker_receive_drops_total",
    "Datagrams that the kernel dropped before the worker, receive buffer full.",
    (worker) => worker.receive_drops,
  ),
  ofWorkers(
    "shredway_relay_worker_window_anchors_total",
    "Times that the worker's slot window settled anew.",
    (worker) => worker.window_anchored,
  ),
  ofWorkers(
    "shredway_relay_worker_events_lost_total",
    "Events that found the worker's ring full.",
    (worker) => worker.events_lost,
  ),
  ofWorkers(
    "shredway_relay_worker_deshred_lost_total",
    "New shreds of the worker for which the deshredder had no room.",
    (worker) => worker.deshred_lost,
  ),
  ofWorkers(
    "shredway_relay_worker_clone_triggers_total",
    "Sends of the worker that the kernel cloned for many destinations.",
    (worker) => worker.clone_triggers,
  ),
  ofWorkers(
    "shredway_relay_worker_clone_fallbacks_total",
    "Datagrams of the worker that went by socket because their clones were not made.",
    (worker) => worker.clone_fallbacks,
  ),
  ofWorkers(
    "shredway_relay_worker_cloned_destinations",
    "Destinations that go by clone from the worker now.",
    (worker) => worker.cloned_destinations,
  ),
];

const slots: readonly RelayMetric[] = [
  gauge(
    "shredway_relay_highest_slot",
    "Upper end of the slots that shreds came of.",
    ({ snapshot }) =>
      snapshot.workers.reduce<bigint>(
        (most, worker) => (worker.highest_slot > most ? worker.highest_slot : most),
        0n,
      ),
  ),
  gauge(
    "shredway_relay_settled_slot",
    "The newest slot whose end was seen, two or more behind the highest one.",
    ({ snapshot }) => settledSlot(snapshot.slots)?.slot ?? null,
  ),
  gauge(
    "shredway_relay_settled_slot_ratio",
    "Share of the data shreds of the settled slot that were seen.",
    ({ snapshot }) => {
      const slot = settledSlot(snapshot.slots);
      if (!slot || slot.lastDataIndex === null) return null;
      return Math.min(1, slot.data / (slot.lastDataIndex + 1));
    },
  ),
  gauge(
    "shredway_relay_last_shred_timestamp_seconds",
    "When the newest shred came that nobody had brought before; Unix time.",
    ({ snapshot }) => {
      const newest = snapshot.slots.reduce<bigint>(
        (most, { lastSeenNs }) => (lastSeenNs > most ? lastSeenNs : most),
        0n,
      );
      return newest === 0n ? null : nanoseconds(newest);
    },
  ),
];

const deshredHelp = {
  shreds: "Shreds that the deshredder took: distinct and needed.",
  shreds_late: "Shreds of FEC sets that were complete, given up or too old already.",
  shreds_conflicting: "Shreds under another signature than the first one of their FEC set.",
  sets_whole: "FEC sets whose data shreds all came.",
  sets_recovered: "FEC sets whose missing data shreds were recovered.",
  shreds_recovered: "Shreds that did not have to come, for they were recovered.",
  sets_refused: "FEC sets that recovered to something else than the leader signed.",
  sets_given_up: "FEC sets that were incomplete when their memory was needed or their time was up.",
  batches: "Batches of entries that were read to their end.",
  batches_malformed: "Batches whose bytes were no entries.",
  batches_given_up: "Batches of entries that were cut off by an FEC set that was given up.",
  entries: "Entries that were read, ticks included.",
  transactions: "Transactions that were read.",
  markers: "Block markers that were read.",
  shreds_handed_back: "Recovered shreds that were handed back to be sent.",
  landings: "Sights of watched signatures that were reported.",
  landings_lost: "Sights of watched signatures for which there was no room.",
} as const;

const deshred: readonly RelayMetric[] = [
  ...Object.entries(deshredHelp).map(([name, help]) =>
    counter<RelayFacts>(`shredway_deshred_${name}_total`, help, ({ snapshot }) => {
      const counts: Readonly<Record<string, unknown>> = snapshot.deshred;
      const count = counts[name];
      return typeof count === "bigint" ? count : null;
    }),
  ),
  gauge(
    "shredway_deshred_watched",
    "Signatures whose landing is watched for.",
    ({ snapshot }) => snapshot.deshred.watched,
  ),
  counter(
    "shredway_deshred_cpu_seconds_total",
    "Processor time of the deshredder's thread.",
    ({ snapshot }) => nanoseconds(snapshot.deshred.cpu_ns),
  ),
  histogram(
    "shredway_deshred_report_seconds",
    "From the receive time of the last shred that a landing needed to its report.",
    ({ snapshot }) => nativeValue(snapshot.deshred.reportLatency, fineBounds),
  ),
];

/** A function of each counter of the deshredder is here; a test compares. */
export const deshredMetricNames: readonly string[] = [
  ...Object.keys(deshredHelp),
  "watched",
  "cpu_ns",
];

export const relayMetrics: readonly RelayMetric[] = [
  ...packets,
  ...sources,
  ...destinationMetrics,
  ...workers,
  ...slots,
  ...deshred,
];
