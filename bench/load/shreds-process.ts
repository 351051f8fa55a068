// The whole service in its own process, for the bench of tips and tiers.
//
// Arguments, after those of service-arguments.ts: FOLDER ACCOUNTS TIPADDRESS
//
// No node is configured, so a registered tip counts immediately. One source at 127.0.0.2. It prints its
// address and the keys of ACCOUNTS accounts, and its memory after each line on standard input. It ends
// when standard input closes.

import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";
import { openService } from "../../src/app/open-service.ts";
import { systemClock } from "../../src/core/clock.ts";
import { completeConfig } from "../../src/core/configuration/configuration.ts";
import { createLogger } from "../../src/core/log.ts";
import { keyRandomBytes } from "../../src/gateway/accounts/api-keys.ts";
import { createKey } from "../../src/gateway/accounts/create-key.ts";

const [folder = "", accounts = "1", tipAddress = ""] = process.argv.slice(2);
const plenty = 1_000_000;
const config = completeConfig({
  http: { listen: "127.0.0.1:0", webSocketListen: [] },
  data: { directory: folder },
  tips: { addresses: [tipAddress], shredAddresses: [tipAddress] },
  gateway: { requestsPerSecond: plenty, burst: plenty, checkQueueMax: 16_384 },
  relay: {
    listen: "127.0.0.1:0",
    authentication: "off",
    shredVersion: 1,
    deshred: false,
    allowPrivateDestinations: true,
    receive: { bufferBytes: 4 << 20 },
    sources: [{ name: "a", address: "127.0.0.2", tier: "tier-1" }],
  },
});
const beginNs = systemClock.monotonicNs();
const log = createLogger({ level: "warn" });
const service = await openService({ config, readConfig: () => config, log, clock: systemClock });
await service.start();
const startNs = systemClock.monotonicNs() - beginNs;
const { gateway } = service;
if (!gateway) throw new Error("expected a gateway, got none");
const keys: string[] = [];
for (let i = 0; i < Number(accounts); i++) {
  const limits = { requestsPerSecond: null, burst: null, allowedRanges: [] };
  const { text } = await createKey(
    gateway.keys,
    { accountName: `account-${i}`, label: "", scopes: ["shreds"], ...limits },
    { random: randomBytes(keyRandomBytes), nowNs: systemClock.nowNs() },
  );
  keys.push(text);
}
await gateway.refreshKeys();
const port = Number(gateway.addresses[0]?.split(":").at(-1));

function printLine(kind: string, more: object = {}): void {
  const { rss } = process.memoryUsage();
  console.log(JSON.stringify({ kind, rss, ...more }));
}

printLine("ready", {
  port,
  pid: process.pid,
  keys: keys.join(" "),
  relay: service.relay.relay.addresses[0] ?? "",
  start_ns: Number(startNs),
});
const lines = createInterface({ input: process.stdin });
lines.on("line", () => printLine("memory"));
lines.on("close", () => process.exit(0));
