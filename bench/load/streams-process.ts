// A relay with decoded streams in its own process, for the bench of streams.
//
// Arguments, after those of service-arguments.ts: LEADER SINK
//
// LEADER: public key of the leader of all slots, in hex. SINK: address of its destination. Prints its
// addresses; then, after every line on its standard input, its counts since the last one. Ends with its
// standard input.

import { createInterface } from "node:readline";
import { systemClock } from "../../src/core/clock.ts";
import { completeConfig } from "../../src/core/configuration/configuration.ts";
import { createLogger } from "../../src/core/log.ts";
import { Relay } from "../../src/relay/data-plane/relay.ts";
import { buildSchedule } from "../../src/relay/leaders/schedule.ts";
import { StreamService } from "../../src/relay/streams/stream-service.ts";
import { firstSlot, slotsMax, sourceAddress } from "./stream-traffic.ts";

const [leader = "", sink = ""] = process.argv.slice(2);
const tier = "tier-1";
const queueBytes = 8 << 20;
const { streams: config } = completeConfig({
  http: { listen: "127.0.0.1:0" },
  tips: { addresses: ["96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5"] },
  relay: {
    listen: "127.0.0.1:0",
    shredVersion: 1,
    authentication: "off",
    sources: [{ name: "a", address: sourceAddress, tier }],
  },
  streams: { listen: "127.0.0.1:0", tier, queueBytes, subscriptionsPerAccountMax: 100 },
});
if (!config) throw new Error("expected the section streams");
const relay = Relay.open({
  listen: ["127.0.0.1:0"],
  workers: 1,
  tiers: [tier],
  authentication: "leader-schedule",
  shredVersion: 0,
  receive: { bufferBytes: 16 << 20 },
});
relay.publishSources([{ name: "a", address: sourceAddress, tier }]);
relay.publishDestinations([{ name: "sink", address: sink, tier }]);
const slots = Array.from({ length: slotsMax }, (_, i) => i);
relay.publishLeaders(buildSchedule(firstSlot, [{ key: Buffer.from(leader, "hex"), slots }]));
const key = { id: "k", accountId: "a", accountName: "bench", scopes: ["stream"] };
const service = new StreamService({
  config,
  streams: relay.streams,
  access: { authenticate: () => key, current: () => key, tierOf: () => tier },
  chain: { slot: () => null },
  clock: systemClock,
  log: createLogger({ level: "warn" }),
});
await service.start();

let before = relay.snapshot();
let cpuBefore = process.cpuUsage();

function printCounts(): void {
  const now = relay.snapshot();
  const latency = now.latency.since(before.latency);
  const { accounts, ends, filters, delays } = service.status();
  const { bounds, cumulative, count } = delays.value();
  const cpu = process.cpuUsage(cpuBefore);
  cpuBefore = process.cpuUsage();
  console.log(
    JSON.stringify({
      kind: "counts",
      open: accounts.reduce((sum, one) => sum + one.open, 0),
      is_current: filters.isCurrent,
      lagged: ends.get("lagged") ?? 0,
      lost: ends.get("lost") ?? 0,
      received: Number(now.received - before.received),
      latency_p50_ns: Number(latency.percentile(50)),
      latency_p99_ns: Number(latency.percentile(99)),
      cpu_us: cpu.user + cpu.system,
      delay_bounds: bounds.join(" "),
      delay_counts: cumulative.join(" "),
      delay_count: Number(count),
    }),
  );
  before = now;
}

console.log(
  JSON.stringify({ kind: "ready", streams: service.address, relay: relay.addresses[0] ?? "" }),
);
const lines = createInterface({ input: process.stdin });
lines.on("line", printCounts);
lines.on("close", () => process.exit(0));
