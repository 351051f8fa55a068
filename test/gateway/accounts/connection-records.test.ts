// Counts of connections and keys, and the reports of submissions beyond a rate.

import { expect, it } from "vitest";
import {
  ConnectionRecords,
  mergedConnections,
  type RateLimitReport,
  type Transport,
} from "../../../src/gateway/accounts/connection-records.ts";

const secondNs = 1_000_000_000n;

function recordsWithReports(): { records: ConnectionRecords; reports: RateLimitReport[] } {
  const reports: RateLimitReport[] = [];
  return { records: new ConnectionRecords((report) => reports.push(report)), reports };
}

function facts(id: number, keyId = "k_1") {
  const accountId = "a_1";
  const about = { keyId, accountId, accountName: "desk", protocol: "shredway-tpu" };
  const transport: Transport = "quic";
  return { id, transport, ...about, address: "192.0.2.7", openedNs: 5n };
}

it("counts each connection, and each key beyond the end of its connections", () => {
  const { records } = recordsWithReports();
  records.add(facts(1));
  records.add(facts(2));
  records.submitted(1, null, "signature", 0n);
  records.submitted(1, "tip_too_low", "tip_too_low: …", 0n);
  records.submitted(2, "rate_limited", "rate_limited: …", 0n);
  records.dropped(2, 3);
  records.submitted(9, null, "of an unknown connection", 0n);
  const none = { accepted: 0, rejected: 0, rateLimited: 0, dropped: 0 };
  expect(records.connections()).toEqual([
    { ...facts(1), ...none, accepted: 1, rejected: 1 },
    { ...facts(2), ...none, rateLimited: 1, dropped: 3 },
  ]);
  records.remove(2);
  records.remove(2);
  expect(records.count("k_1")).toBe(1);
  const identity = { keyId: "k_1", accountId: "a_1", accountName: "desk" };
  expect(records.keys()).toEqual([
    { ...identity, connections: 1, accepted: 1, rejected: 1, rateLimited: 1, dropped: 3 },
  ]);
});

it("reports the first rejection at once, and the following ones once a second", () => {
  const { records, reports } = recordsWithReports();
  records.add(facts(1));
  for (let i = 0; i < 5; i++) records.submitted(1, "rate_limited", `message ${i}`, 10n);
  records.reportDue(secondNs + 9n);
  expect(reports.map(({ submissions, message }) => [submissions, message])).toEqual([
    [1, "message 0"],
  ]);
  records.reportDue(secondNs + 10n);
  records.reportDue(5n * secondNs);
  records.submitted(1, "rate_limited", "message 5", 5n * secondNs);
  records.submitted(1, "rate_limited", "message 6", 5n * secondNs);
  records.remove(1);
  expect(reports.map(({ submissions, message }) => [submissions, message])).toEqual([
    [1, "message 0"],
    [4, "message 4"],
    [1, "message 5"],
    [1, "message 6"],
  ]);
});

it("forgets keys without a connection beyond 10,000, the oldest first", () => {
  const { records } = recordsWithReports();
  records.add(facts(0, "k_open"));
  for (let i = 1; i <= 10_000; i++) {
    records.add(facts(i, `k_${i}`));
    records.remove(i);
  }
  const known = records.keys().map(({ keyId }) => keyId);
  expect([known.length, known[0], known[1]]).toEqual([10_000, "k_open", "k_2"]);
});

it("adds the counts of a key that uses several transports", () => {
  const [quic, sockets] = [recordsWithReports().records, recordsWithReports().records];
  quic.add(facts(1));
  quic.add(facts(2, "k_2"));
  quic.submitted(1, null, "signature", 0n);
  quic.dropped(1, 2);
  const socket = { ...facts(1), transport: "websocket", protocol: "websocket" } as const;
  sockets.add(socket);
  sockets.submitted(1, null, "signature", 0n);
  sockets.submitted(1, "tip_too_low", "tip_too_low: …", 0n);
  const parts = [quic, sockets].map((one) => ({
    connections: one.connections(),
    keys: one.keys(),
  }));
  const { connections, keys } = mergedConnections(parts);
  expect(connections.map(({ transport, keyId }) => [transport, keyId])).toEqual([
    ["quic", "k_1"],
    ["quic", "k_2"],
    ["websocket", "k_1"],
  ]);
  expect(keys).toMatchObject([
    { keyId: "k_1", connections: 2, accepted: 2, rejected: 1, rateLimited: 0, dropped: 2 },
    { keyId: "k_2", connections: 1, accepted: 0 },
  ]);
});
