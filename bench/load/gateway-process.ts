// One server under test in its own process: the target of the gateway bench.
//
// Runs with the arguments of service-arguments.ts, and one of these lists of words:
//
// fixed                        the HTTP server with a fixed answer
// gateway PORT FOLDER          the gateway, its one route to that port
// unchecked PORT FOLDER        the same without signature verification
// quic PORT FOLDER, quic-unchecked PORT FOLDER    the same two, also with the QUIC ingress
// tpu PORT FOLDER              the gateway, its one route over QUIC to a leader there
//
// Prints its address, its process id and the API key, and for QUIC its port and the id of its second
// process; ends with its standard input.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { openGateway } from "../../src/app/compose-gateway.ts";
import { systemClock } from "../../src/core/clock.ts";
import { completeConfig } from "../../src/core/configuration/configuration.ts";
import { createLogger } from "../../src/core/log.ts";
import { pubkeyOf } from "../../src/core/primitives.ts";
import { keyRandomBytes } from "../../src/gateway/accounts/api-keys.ts";
import { createKey } from "../../src/gateway/accounts/create-key.ts";
import { HttpServer } from "../../src/gateway/http/server.ts";

const [kind = "", sinkPort = "", folder = ""] = process.argv.slice(2);
const log = createLogger({ level: "warn" });
const fixedBody = JSON.stringify({ jsonrpc: "2.0", result: "5".repeat(88), id: 1 });

const portOf = (address: string) => Number(address.split(":").at(-1));

function ready(address: string, credential: string, quic = {}): void {
  const port = portOf(address);
  console.log(JSON.stringify({ kind: "ready", port, pid: process.pid, credential, ...quic }));
  process.stdin.resume().on("end", () => process.exit(0));
}

async function serveFixed(): Promise<void> {
  const headers = { "content-type": "application/json" };
  const server = await HttpServer.open({
    listen: ["127.0.0.1:0"],
    bodyBytesMax: () => 1 << 20,
    handle: () => ({ status: 200, headers, body: fixedBody }),
  });
  ready(server.addresses[0] ?? "", "");
}

/** The process of the QUIC ingress; this process starts no other one. */
function onlyChild(): number {
  return Number(readFileSync(`/proc/self/task/${process.pid}/children`, "utf8"));
}

const quicSection = {
  listen: "127.0.0.1:0",
  protectedListen: [],
  connectionsPerKeyMax: 1000,
  handshakesPerMinute: 1_000_000,
};

const leader = pubkeyOf(new Uint8Array(32).fill(6));
const partner = {
  name: "partner",
  kind: "swqos" as const,
  url: `http://127.0.0.1:${sinkPort}/`,
  callsPerRequest: 16,
  queueMax: 20_000,
};
const direct = {
  name: "direct",
  kind: "tpu" as const,
  quicAddresses: { [leader]: `127.0.0.1:${sinkPort}` },
  queueMax: 20_000,
};

const isChecked = !kind.endsWith("unchecked");
const hasQuic = kind.startsWith("quic");

async function serveGateway(): Promise<void> {
  const config = completeConfig({
    relay: { shredVersion: 1, authentication: "off" },
    http: { listen: "127.0.0.1:0", webSocketListen: [] },
    ...(hasQuic && { quic: quicSection }),
    data: { directory: folder },
    tips: { addresses: [pubkeyOf(new Uint8Array(32).fill(5))] },
    gateway: {
      requestsPerSecond: 1_000_000,
      burst: 1_000_000,
      openMax: 1_000_000,
      openPerAccountMax: 1_000_000,
      // Nothing lands here. On a chain, most transactions do before they are sent again.
      resendMs: 600_000,
    },
    routes: [kind === "tpu" ? direct : partner],
  });
  const gateway = await openGateway({
    config,
    log,
    clock: systemClock,
    ...(kind === "tpu" && { leaders: { slot: () => 0n, leaderAt: () => leader } }),
    ...(!isChecked && {
      verifier: { verify: () => Promise.resolve(true), close: () => undefined },
    }),
  });
  const limits = { requestsPerSecond: null, burst: null, allowedRanges: [] };
  const { text } = await createKey(
    gateway.keys,
    { accountName: "bench", label: "", scopes: ["submit"], ...limits },
    { random: randomBytes(keyRandomBytes), nowNs: systemClock.nowNs() },
  );
  await gateway.start();
  const [quicAddress] = gateway.quicAddresses;
  ready(gateway.addresses[0] ?? "", text, {
    ...(quicAddress !== undefined && {
      quicPort: portOf(quicAddress),
      quicPid: onlyChild(),
    }),
  });
}

if (kind === "fixed") await serveFixed();
else await serveGateway();
