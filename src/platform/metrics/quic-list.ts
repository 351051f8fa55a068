// Metrics of the QUIC ingress: connections, submissions, handshakes and packets.

import type { KeyRecord } from "../../gateway/accounts/connection-records.ts";
import type { IngressCounts } from "../../gateway/quic/types.ts";
import { counters, gauge, gauges, type Metric } from "./types.ts";

export interface QuicFacts {
  readonly isUp: boolean;
  readonly process: {
    readonly memoryBytes: number | null;
    readonly ends: Readonly<Record<string, number>>;
  };
  /** Open connections by ALPN protocol. */
  readonly connections: ReadonlyMap<string, number>;
  readonly submissions: ReadonlyMap<string, number>;
  readonly ends: ReadonlyMap<string, number>;
  /** Keys that had a connection, in the order of their first one. */
  readonly keys: readonly KeyRecord[];
  /** null: the process has not reported yet. */
  readonly counts: IngressCounts | null;
}

function byName(
  name: string,
  label: string,
  help: string,
  pick: (facts: QuicFacts) => Iterable<readonly [string, number]>,
): Metric<QuicFacts> {
  const define = name.endsWith("_total") ? counters : gauges;
  return define<QuicFacts>(name, [label], help, (facts, add) => {
    for (const [value, count] of pick(facts)) add([value], count);
  });
}

function handshakesIn({ counts }: QuicFacts): [string, number][] {
  if (!counts) return [];
  return [
    ["completed", counts.handshakes],
    ["failed", counts.failedHandshakes],
    ["limited", counts.limitedHandshakes],
    ["retried", counts.retries],
    ["invalid_token", counts.invalidTokens],
  ];
}

function packetsIn({ counts }: QuicFacts): [string, number][] {
  if (!counts) return [];
  return [
    ["known", counts.packets - counts.unknownPackets - counts.limitedPackets],
    ["unknown", counts.unknownPackets],
    ["limited", counts.limitedPackets],
  ];
}

/** Labels are bounded: all keys beyond this number count as "other". */
const keysMax = 100;

function addByKey(
  { keys }: QuicFacts,
  add: (labels: string[], value: number) => void,
  pick: (key: KeyRecord) => readonly (readonly [labels: readonly string[], value: number])[],
): void {
  const sums = new Map<string, { labels: string[]; value: number }>();
  for (const [i, key] of keys.entries()) {
    for (const [labels, value] of pick(key)) {
      const all = [i < keysMax ? key.keyId : "other", ...labels];
      const sum = sums.get(all.join(" ")) ?? { labels: all, value: 0 };
      sum.value += value;
      sums.set(all.join(" "), sum);
    }
  }
  for (const { labels, value } of sums.values()) add(labels, value);
}

export const quicMetrics: readonly Metric<QuicFacts>[] = [
  gauge(
    "shredway_quic_up",
    "1: the process of the QUIC ingress runs. 0: it waits for its restart.",
    ({ isUp }) => Number(isUp),
  ),
  byName(
    "shredway_quic_connections",
    "protocol",
    "Open connections of clients with a valid key, by ALPN protocol.",
    ({ connections }) => connections,
  ),
  byName(
    "shredway_quic_submissions_total",
    "outcome",
    "Streams with a transaction or a bundle, by outcome: accepted, or the reason of the rejection.",
    ({ submissions }) => submissions,
  ),
  gauges<QuicFacts>(
    "shredway_quic_key_connections",
    ["key"],
    "Open connections by API key. The keys beyond the first 100 count as other.",
    (facts, add) => addByKey(facts, add, ({ connections }) => [[[], connections]]),
  ),
  counters<QuicFacts>(
    "shredway_quic_key_submissions_total",
    ["key", "outcome"],
    "Streams by API key and outcome: accepted, rejected, rate_limited, or dropped without a transaction.",
    (facts, add) =>
      addByKey(facts, add, ({ accepted, rejected, rateLimited, dropped }) => [
        [["accepted"], accepted],
        [["rejected"], rejected],
        [["rate_limited"], rateLimited],
        [["dropped"], dropped],
      ]),
  ),
  byName(
    "shredway_quic_connection_ends_total",
    "end",
    "Ended connections by the name of their end. Names with here_ are closes by the service.",
    ({ ends }) => ends,
  ),
  byName(
    "shredway_quic_streams_dropped_total",
    "reason",
    "Streams without a transaction, since the start of the process, by reason: empty, reset, timed_out, too_long, memory_limit.",
    ({ counts }) => Object.entries(counts?.drops ?? {}),
  ),
  byName(
    "shredway_quic_handshakes_total",
    "outcome",
    "First packets, since the start of the process, by outcome. Retried: the sender must prove its address. Limited: ignored.",
    handshakesIn,
  ),
  byName(
    "shredway_quic_packets_total",
    "kind",
    "Received packets, since the start of the process. Unknown: of unknown connections, or not QUIC. Limited: above the limit of their connection or address.",
    packetsIn,
  ),
  gauge(
    "shredway_quic_process_memory_bytes",
    "Resident memory of the process of the QUIC ingress.",
    ({ process }) => process.memoryBytes,
  ),
  byName(
    "shredway_quic_process_ends_total",
    "reason",
    "Unexpected ends of the process of the QUIC ingress, by reason.",
    ({ process }) => Object.entries(process.ends),
  ),
];
