// Metrics of the relay: packets by verdict, sources, destinations, workers, slots.
//
// Read from one snapshot of the data plane, its destinations and the configuration.

import type { RelaySnapshot, SlotSnapshot } from "../../relay/data-plane/snapshot.ts";
import type { DestinationDiscovery } from "../../relay/destination-discovery.ts";
import type { GroupState } from "../../relay/multicast/multicast-groups.ts";
import type { DestinationCounts } from "./destination-rows.ts";
import { coarseBounds, fineBounds, nativeValue } from "./native-histogram.ts";
import { counter, counters, gauge, gauges, histogram, histograms, type Metric } from "./types.ts";

export interface RelayFacts {
  readonly snapshot: RelaySnapshot;
  readonly destinations: readonly DestinationCounts[];
  /** null: no destination is discovered. */
  readonly discovery: ReturnType<DestinationDiscovery["status"]>;
  /** All tiers of the configuration, including tiers without a source. */
  readonly tiers: readonly string[];
  readonly isAuthenticated: boolean;
  readonly isCloning: boolean;
  readonly groups: readonly GroupState[];
}

type RelayMetric = Metric<RelayFacts>;
type WorkerSnapshot = RelaySnapshot["workers"][number];

const nanoseconds = (ns: bigint): number => Number(ns) / 1e9;

/** Shreds of this many slots below the highest one may still arrive. */
const settledSlots = 2n;

/** The newest slot whose last data shred arrived and that is at least `settledSlots` below the highest. */
function settledSlot(slots: readonly SlotSnapshot[]): SlotSnapshot | undefined {
  const highest = slots.at(-1)?.slot ?? 0n;
  return slots.findLast(
    ({ slot, lastDataIndex }) => lastDataIndex !== null && slot + settledSlots <= highest,
  );
}

const packets: readonly RelayMetric[] = [
  counter(
    "shredway_relay_packets_received_total",
    "Datagrams received on the relay's sockets.",
    ({ snapshot }) => snapshot.received,
  ),
  counters(
    "shredway_relay_packets_total",
    ["verdict"],
    "Datagrams by verdict; each has exactly one. The verdicts first, new_tier, first_forwardable and equivocation mean that the shred was forwarded.",
    ({ snapshot }, add) => {
      for (const [verdict, count] of Object.entries(snapshot.verdicts)) add([verdict], count);
    },
  ),
  counter(
    "shredway_relay_receive_drops_total",
    "Datagrams that the kernel dropped because a socket receive buffer was full, or because AF_XDP had no free frame.",
    ({ snapshot }) => snapshot.receiveDrops,
  ),
  counter(
    "shredway_relay_filtered_total",
    "Datagrams that the receive filter dropped in the kernel, because they cannot be shreds, challenges or trace packets.",
    ({ snapshot }) => snapshot.filtered,
  ),
  histogram(
    "shredway_relay_latency_seconds",
    "Time from the kernel's receive timestamp of a shred until it was sent to its destinations.",
    ({ snapshot }) => nativeValue(snapshot.latency, fineBounds),
  ),
  gauge(
    "shredway_relay_authentication_enabled",
    "1: the relay forwards only shreds that the slot's leader signed. 0: authentication is off, so forged shreds are forwarded.",
    ({ isAuthenticated }) => (isAuthenticated ? 1 : 0),
  ),
  gauge(
    "shredway_relay_clone_enabled",
    "1: the transmit mode is clone; the kernel copies shreds where possible. 0: every shred is sent by socket.",
    ({ isCloning }) => (isCloning ? 1 : 0),
  ),
];

const groupLabels = ["source", "group", "interface"] as const;

/** One row per multicast group. */
function addGroups(
  groups: readonly GroupState[],
  add: (labels: readonly string[], value: number) => void,
  value: (group: GroupState) => number,
): void {
  for (const group of groups) add([group.source, group.address, group.interface], value(group));
}

const groups: readonly RelayMetric[] = [
  gauges(
    "shredway_relay_group_joined",
    groupLabels,
    "1: the multicast group is joined. 0: it is not, because its interface, route or address is missing.",
    ({ groups: all }, add) => addGroups(all, add, ({ isJoined }) => (isJoined ? 1 : 0)),
  ),
  counters(
    "shredway_relay_group_joins_total",
    groupLabels,
    "Times that the multicast group was joined, including repetitions because of silence or of a returned interface.",
    ({ groups: all }, add) => addGroups(all, add, ({ joins }) => joins),
  ),
  gauges(
    "shredway_relay_group_silence_seconds",
    groupLabels,
    "Seconds since the last datagram of the multicast group that was not a heartbeat.",
    ({ groups: all }, add) => addGroups(all, add, ({ silentSeconds }) => silentSeconds),
  ),
];

const sources: readonly RelayMetric[] = [
  gauges("shredway_relay_sources", ["tier"], "Active sources.", ({ snapshot, tiers }, add) =>
    addByTier(tiers, snapshot.sources, add),
  ),
  counters(
    "shredway_relay_source_received_total",
    ["source", "tier"],
    "Datagrams received from the source.",
    ({ snapshot }, add) => {
      for (const { name, tier, received } of snapshot.sources) add([name, tier], received);
    },
  ),
  counters(
    "shredway_relay_source_packets_total",
    ["source", "tier", "verdict"],
    "Datagrams of the source by verdict. A verdict other than first and duplicate appears after its first datagram.",
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
    "Lead time of the source for shreds that it delivered first: time until the second source delivered the same shred.",
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
    "Active destinations, of the configuration and of accounts.",
    ({ snapshot, tiers }, add) => addByTier(tiers, snapshot.destinations, add),
  ),
  ofDestinations(
    "shredway_relay_destination_sent_total",
    "Shreds passed to the kernel for the destination.",
    ({ sent }) => sent,
  ),
  counters(
    "shredway_relay_destination_failed_total",
    ["destination", "tier", "reason"],
    "Shreds that could not be sent to the destination, by reason. A reason appears after its first failure.",
    ({ destinations }, add) => {
      for (const { name, tier, failed } of destinations) {
        for (const [reason, count] of failed) add([name, tier, reason], count);
      }
    },
  ),
  ofDestinations(
    "shredway_relay_destination_icmp_errors_total",
    "ICMP errors received for the destination. The series appears after the first error.",
    ({ icmp }) => icmp || null,
  ),
  ofDestinations(
    "shredway_relay_destination_recovered_sent_total",
    "Recovered shreds sent to the destination before the originals arrived. The series appears after the first one.",
    ({ recoveredSent }) => recoveredSent || null,
  ),
  gauges(
    "shredway_relay_next_hops",
    ["state"],
    "Destinations by the state of their next hop. Only destinations with a resolved next hop can be cloned. All are 0 in socket mode.",
    ({ snapshot }, add) => {
      for (const [state, count] of Object.entries(snapshot.nextHops)) add([state], count);
    },
  ),
];

const discovery: readonly RelayMetric[] = [
  gauge(
    "shredway_discovery_destinations",
    "Destinations in the last good answer of relay.discovery.url.",
    ({ discovery: status }) => status?.destinations ?? null,
  ),
  counter(
    "shredway_discovery_failures_total",
    "Requests to relay.discovery.url without a usable answer.",
    ({ discovery: status }) => status?.failures ?? null,
  ),
  gauge(
    "shredway_discovery_last_answer_timestamp_seconds",
    "Time of the last good answer of relay.discovery.url; Unix time.",
    ({ discovery: status }) => {
      const lastNs = status?.lastAnswerNs ?? null;
      return lastNs === null ? null : nanoseconds(lastNs);
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
    "Datagrams that the worker received.",
    ({ received }) => received,
  ),
  ofWorkers(
    "shredway_relay_worker_batches_total",
    "Receive calls of the worker that returned at least one datagram.",
    ({ batches }) => batches,
  ),
  ofWorkers(
    "shredway_relay_worker_send_calls_total",
    "Send calls of the worker. One call sends many shreds.",
    (worker) => worker.send_calls,
  ),
  ofWorkers(
    "shredway_relay_worker_divided_sends_total",
    "Sends that the worker divided among its sender threads and itself.",
    (worker) => worker.divided_sends,
  ),
  ofWorkers(
    "shredway_relay_worker_late_senders_total",
    "Sender threads that had not begun when the others had sent everything.",
    (worker) => worker.late_senders,
  ),
  ofWorkers(
    "shredway_relay_worker_sender_cpu_seconds_total",
    "CPU time of the worker's sender threads.",
    (worker) => nanoseconds(worker.sender_cpu_ns),
  ),
  ofWorkers(
    "shredway_relay_worker_gso_fallbacks_total",
    "GSO messages that were sent as single datagrams because the kernel rejected segmentation.",
    (worker) => worker.gso_fallbacks,
  ),
  ofWorkers(
    "shredway_relay_worker_signature_checks_total",
    "Ed25519 signatures that the worker verified.",
    (worker) => worker.signature_checks,
  ),
  ofWorkers(
    "shredway_relay_worker_prepared_checks_total",
    "Ed25519 signatures that the worker verified with a prepared key of the leader.",
    (worker) => worker.prepared_checks,
  ),
  ofWorkers(
    "shredway_relay_worker_signatures_replaced_total",
    "Shreds under a verified Merkle root whose own signature differed; they were sent with the verified one.",
    (worker) => worker.signatures_replaced,
  ),
  ofWorkers(
    "shredway_relay_worker_resigned_total",
    "First arrivals of shreds with a retransmitter signature.",
    (worker) => worker.resigned,
  ),
  ofWorkers(
    "shredway_relay_worker_cpu_seconds_total",
    "CPU time of the worker's thread.",
    (worker) => nanoseconds(worker.cpu_ns),
  ),
  ofWorkers(
    "shredway_relay_worker_receive_drops_total",
    "Datagrams for the worker that the kernel dropped because the receive buffer was full, or because AF_XDP had no free frame.",
    (worker) => worker.receive_drops,
  ),
  ofWorkers(
    "shredway_relay_worker_misdirected_total",
    "Shreds that reached a worker that does not handle their FEC set, because the kernel steered several datagrams together.",
    (worker) => worker.misdirected,
  ),
  ofWorkers(
    "shredway_relay_worker_xdp_received_total",
    "Datagrams that the worker received by AF_XDP, among all that it received.",
    (worker) => worker.xdp_received,
  ),
  ofWorkers(
    "shredway_relay_worker_xdp_refused_total",
    "Frames of AF_XDP that the worker dropped as the network stack would have: wrong checksum or impossible sender.",
    (worker) => worker.xdp_refused,
  ),
  ofWorkers(
    "shredway_relay_worker_xdp_drops_total",
    "Datagrams for the worker that found no free frame of AF_XDP. The receive drops contain them.",
    (worker) => worker.xdp_drops,
  ),
  ofWorkers(
    "shredway_relay_worker_xdp_fill_ring_empty_total",
    "Times that the kernel found no free frame in a queue of AF_XDP. Worker 0 counts for all.",
    (worker) => worker.xdp_fill_ring_empty,
  ),
  ofWorkers(
    "shredway_relay_worker_window_anchors_total",
    "Times that the worker placed its slot window again.",
    (worker) => worker.window_anchored,
  ),
  ofWorkers(
    "shredway_relay_worker_events_lost_total",
    "Events of the worker that were lost because its ring was full.",
    (worker) => worker.events_lost,
  ),
  ofWorkers(
    "shredway_relay_worker_deshred_lost_total",
    "New shreds of the worker that the deshredder missed because its queue was full.",
    (worker) => worker.deshred_lost,
  ),
  ofWorkers(
    "shredway_relay_worker_clone_triggers_total",
    "Sends of the worker that the kernel cloned to many destinations, or its calls of AF_XDP.",
    (worker) => worker.clone_triggers,
  ),
  ofWorkers(
    "shredway_relay_worker_clone_refusals_total",
    "Times that the kernel refused to clone for an address family. Its destinations get sockets until the next attempt.",
    (worker) => worker.clone_refusals,
  ),
  ofWorkers(
    "shredway_relay_worker_clone_fallbacks_total",
    "Datagrams of the worker that were sent by socket because the kernel did not clone them, or because their AF_XDP interface was down.",
    (worker) => worker.clone_fallbacks,
  ),
  ofWorkers(
    "shredway_relay_worker_cloned_destinations",
    "Destinations that the worker currently serves by clone or AF_XDP.",
    (worker) => worker.cloned_destinations,
  ),
];

const slots: readonly RelayMetric[] = [
  gauge("shredway_relay_highest_slot", "Highest slot of any received shred.", ({ snapshot }) =>
    snapshot.workers.reduce<bigint>(
      (most, worker) => (worker.highest_slot > most ? worker.highest_slot : most),
      0n,
    ),
  ),
  gauge(
    "shredway_relay_settled_slot",
    "Newest slot whose last data shred arrived and that is at least two slots below the highest.",
    ({ snapshot }) => settledSlot(snapshot.slots)?.slot ?? null,
  ),
  gauge(
    "shredway_relay_settled_slot_ratio",
    "Share of the settled slot's data shreds that arrived.",
    ({ snapshot }) => {
      const slot = settledSlot(snapshot.slots);
      if (!slot || slot.lastDataIndex === null) return null;
      return Math.min(1, slot.data / (slot.lastDataIndex + 1));
    },
  ),
  gauge(
    "shredway_relay_last_shred_timestamp_seconds",
    "Arrival time of the newest shred that no source had delivered before; Unix time.",
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
  shreds: "Shreds that the deshredder used: each distinct and needed.",
  shreds_late: "Shreds of FEC sets that were already complete, abandoned or too old.",
  shreds_conflicting: "Shreds whose signature differs from the first shred of their FEC set.",
  sets_whole: "FEC sets whose data shreds all arrived.",
  sets_recovered: "FEC sets with missing data shreds that were recovered.",
  shreds_recovered: "Data shreds that were recovered instead of received.",
  sets_refused:
    "FEC sets whose recovered data did not match the Merkle root that the leader signed.",
  sets_given_up: "FEC sets that were incomplete when they expired or their memory was reused.",
  batches: "Batches of entries that were decoded completely.",
  batches_malformed: "Batches that could not be decoded.",
  batches_given_up:
    "Batches of entries that are incomplete because one of their FEC sets was abandoned.",
  batches_too_long: "Batches of more than 1 MiB whose bytes a stream wanted.",
  entries: "Decoded entries, including ticks.",
  transactions: "Decoded transactions.",
  markers: "Decoded block markers.",
  shreds_handed_back: "Recovered shreds that were queued for sending.",
  landings: "Reported landings of watched signatures.",
  abandoned: "Transactions before an update-parent marker of their block that was decoded first.",
  restarts: "Blocks that began again: update-parent markers that were reported.",
  landings_lost: "Landings of watched signatures that were lost because the queue was full.",
  stream_messages: "Messages for subscribers of decoded streams.",
  stream_repeated: "Transactions that a block repeated, which decoded streams leave out.",
  stream_lost: "Messages of decoded streams that were lost because the queue was full.",
  stream_lookups:
    "Transactions with address lookup tables that decoded streams examined, once for each tier.",
  stream_unresolved: "Transactions among them with a loaded address that is unknown.",
  stream_lookup_reports_lost:
    "Reports of unknown or changed lookup tables that were lost because the queue was full.",
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
    "Watched signatures.",
    ({ snapshot }) => snapshot.deshred.watched,
  ),
  counter(
    "shredway_deshred_cpu_seconds_total",
    "CPU time of the deshredder's thread.",
    ({ snapshot }) => nanoseconds(snapshot.deshred.cpu_ns),
  ),
  histogram(
    "shredway_deshred_report_seconds",
    "Time from the arrival of the last shred of a landing to its report.",
    ({ snapshot }) => nativeValue(snapshot.deshred.reportLatency, fineBounds),
  ),
];

/** The counters of the deshredder that have a metric; a test compares them with the native list. */
export const deshredMetricNames: readonly string[] = [
  ...Object.keys(deshredHelp),
  "watched",
  "cpu_ns",
];

export const relayMetrics: readonly RelayMetric[] = [
  ...packets,
  ...sources,
  ...groups,
  ...destinationMetrics,
  ...discovery,
  ...workers,
  ...slots,
  ...deshred,
];
