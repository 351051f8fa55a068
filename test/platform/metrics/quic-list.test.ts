// Metrics of the QUIC ingress: samples by label.

import { expect, it } from "vitest";
import { type QuicFacts, quicMetrics } from "../../../src/platform/metrics/quic-list.ts";

const facts: QuicFacts = {
  isUp: true,
  process: { memoryBytes: null, ends: { exited: 2 } },
  connections: new Map([["shredway-tpu", 3]]),
  submissions: new Map([
    ["accepted", 5],
    ["rate_limited", 1],
  ]),
  ends: new Map([
    ["closed", 1],
    ["other", 5],
  ]),
  keys: Array.from({ length: 102 }, (_, i) => ({
    keyId: `k_${i}`,
    accountId: "a_1",
    accountName: "desk",
    connections: 1,
    accepted: 10,
    rejected: 4,
    rateLimited: 3,
    dropped: 2,
  })),
  counts: {
    packets: 10,
    unknownPackets: 4,
    limitedPackets: 1,
    retries: 1,
    invalidTokens: 2,
    limitedHandshakes: 3,
    failedHandshakes: 4,
    handshakes: 5,
    drops: { empty: 1, reset: 2, timed_out: 3, too_long: 4, memory_limit: 5 },
  },
};

function samplesOf(name: string, of: QuicFacts): [string, number | bigint][] {
  const samples: [string, number | bigint][] = [];
  const metric = quicMetrics.find((one) => one.name === name);
  if (!metric || metric.type === "histogram") throw new Error(`expected the metric ${name}`);
  metric.read(of, (labels, value) => samples.push([labels.join(), value]));
  return samples;
}

it("has a sample for each label", () => {
  expect(samplesOf("shredway_quic_submissions_total", facts)).toEqual([
    ["accepted", 5],
    ["rate_limited", 1],
  ]);
  expect(samplesOf("shredway_quic_packets_total", facts)).toEqual([
    ["known", 5],
    ["unknown", 4],
    ["limited", 1],
  ]);
  expect(samplesOf("shredway_quic_connection_ends_total", facts)).toEqual([
    ["closed", 1],
    ["other", 5],
  ]);
  expect(samplesOf("shredway_quic_process_memory_bytes", facts)).toEqual([]);
});

it("counts by key for 100 keys, and all others together", () => {
  const connections = samplesOf("shredway_quic_key_connections", facts);
  expect(connections.length).toBe(101);
  expect([connections[0], connections.at(-1)]).toEqual([
    ["k_0", 1],
    ["other", 2],
  ]);
  expect(samplesOf("shredway_quic_key_submissions_total", facts).slice(-5)).toEqual([
    ["k_99,dropped", 2],
    ["other,accepted", 20],
    ["other,rejected", 8],
    ["other,rate_limited", 6],
    ["other,dropped", 4],
  ]);
});

it("has no samples of the process before its first report", () => {
  const early = { ...facts, counts: null };
  for (const name of ["handshakes", "packets", "streams_dropped"]) {
    expect(samplesOf(`shredway_quic_${name}_total`, early)).toEqual([]);
  }
});
