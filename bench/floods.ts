// Latency of a customer's calls while somebody floods the service.
//
// tsx bench/floods.ts [ROUNDS]      after `npm run compile`
//
// Kept-alive getTier calls, one after the other, quiet and during each flood, in interleaved rounds:
// 40 Mbit/s of small messages on an anonymous /tip_stream, 5 Mbit/s of invalid messages on /status with a
// key, 58,000 forged shreds a second with the address of a tier-2 source. A flood that the service cuts
// connects again at once. docs/security.md contains the results.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../src/core/clock.ts";
import { LagHistogram } from "../src/core/log-linear-histogram.ts";
import { PacedSender } from "../src/relay/data-plane/paced-sender.ts";
import { sandboxPace } from "../src/sandbox/plan.ts";
import { ShredTraffic } from "../test/support/shreds/shred-traffic.ts";
import { number, renderMarkdown } from "./report/table.ts";
import { Cluster } from "./soak/cluster.ts";
import { Load } from "./soak/load.ts";
import { Service } from "./soak/service.ts";

const rounds = Number(process.argv[2] ?? 5);
const measureMs = 3000;
const pauseMs = 500;
const tickMs = 10;
const forgeriesPerSecond = 58_000;
const program = fileURLToPath(new URL("../dist/tools/shredway.js", import.meta.url));

interface Flood {
  readonly name: string;
  /** Runs before the measurement. */
  prepare?(): Promise<void>;
  run(stopped: AbortSignal): Promise<void>;
}

/** Masked text frames of one payload. */
function frames(payload: string, count: number): Buffer {
  const bytes = Buffer.from(payload);
  const mask = randomBytes(4);
  const masked = bytes.map((byte, i) => byte ^ (mask[i % 4] ?? 0));
  const frame = Buffer.concat([Buffer.of(0x81, 0x80 | bytes.length), mask, masked]);
  return Buffer.concat(Array.from({ length: count }, () => frame));
}

async function openSocket(url: URL): Promise<Socket | null> {
  const socket = connect(Number(url.port), url.hostname);
  socket.on("error", () => {});
  const key = randomBytes(16).toString("base64");
  socket.write(
    `GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nUpgrade: websocket\r\n` +
      `Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
  );
  const [first]: unknown[] = await Promise.race([
    once(socket, "data"),
    once(socket, "close"),
  ]).catch(() => []);
  if (first instanceof Buffer && first.toString("latin1").includes(" 101 ")) return socket;
  socket.destroy();
  return null;
}

function socketFlood(
  name: string,
  url: URL,
  options: { payload: string; megabits: number },
): Flood {
  const bytesPerTick = (options.megabits * 1e6 * tickMs) / 8000;
  const frameBytes = 6 + options.payload.length;
  const batch = frames(options.payload, Math.ceil(bytesPerTick / frameBytes));
  return {
    name,
    async run(stopped) {
      let socket: Socket | null = null;
      while (!stopped.aborted) {
        if (socket === null || socket.destroyed) socket = await openSocket(url);
        if (socket !== null && socket.writableLength < 4 * batch.length) socket.write(batch);
        await systemClock.sleep(tickMs, stopped);
      }
      socket?.destroy();
    },
  };
}

function forgeryFlood(to: string, firstSlot: () => Promise<bigint>): Flood {
  let forged: readonly Uint8Array[] = [];
  return {
    name: `${forgeriesPerSecond.toLocaleString("en-US")} forged shreds/s, address of a tier-2 source`,
    async prepare() {
      const traffic = new ShredTraffic({
        seed: 1,
        leaders: 1,
        firstSlot: await firstSlot(),
        shredVersion: sandboxPace.shredVersion,
        fecSetsPerSlot: 32,
        slotNs: 400_000_000,
      });
      // One shred of each FEC set: the relay knows none of their roots.
      forged = Array.from({ length: 18 }, () => traffic.completeSlot().packets)
        .flat()
        .filter((_, i) => i % 64 === 0)
        .map(({ packet }) => packet);
    },
    async run(stopped) {
      const sender = PacedSender.open({ to, from: "127.0.0.4:0" });
      const times = BigUint64Array.from(forged, (_, i) =>
        BigInt(Math.round((i * 1e9) / forgeriesPerSecond)),
      );
      while (!stopped.aborted) {
        if (sender.counts().queued < BigInt(2 * forged.length)) sender.enqueue(forged, times);
        else await systemClock.sleep(tickMs, stopped);
      }
      sender.close();
    },
  };
}

async function measure(load: Load, lags: LagHistogram): Promise<void> {
  const untilMs = performance.now() + measureMs;
  while (performance.now() < untilMs) {
    const begin = performance.now();
    await load.client.getTier();
    lags.record((performance.now() - begin) * 1e6);
  }
}

const folder = mkdtempSync(join(tmpdir(), "shredway-floods-"));
const cluster = await Cluster.open(folder);
const service = await Service.start({
  folder,
  program,
  cluster: cluster.ready,
  destinations: [],
  postgres: undefined,
  clockJumps: false,
});
await cluster.do({ do: "feed", to: service.relayAddress });
const { url, apiKey } = service;
const load = new Load({ url, apiKey, cluster: cluster.ready, rate: 1, seed: 1 });
const at = (path: string): URL => new URL(path, url);
const floods: readonly Flood[] = [
  { name: "none", run: () => Promise.resolve() },
  socketFlood("40 Mbit/s of 7-byte frames on /tip_stream, no key", at("/tip_stream"), {
    payload: "x",
    megabits: 40,
  }),
  socketFlood(
    "5 Mbit/s of invalid messages on /status, with a key",
    at(`/status?api-key=${apiKey}`),
    {
      payload: "{",
      megabits: 5,
    },
  ),
  forgeryFlood(service.relayAddress, async () => BigInt((await cluster.count()).slot + 1)),
];
const lags = new Map(floods.map((flood) => [flood, new LagHistogram()]));
try {
  for (let round = 0; round < rounds; round++) {
    for (const [flood, own] of lags) {
      const stopping = new AbortController();
      await flood.prepare?.();
      const running = flood.run(stopping.signal);
      await systemClock.sleep(pauseMs);
      await measure(load, own);
      stopping.abort();
      await running;
      await systemClock.sleep(pauseMs);
    }
  }
} finally {
  service.kill();
  service.removeDisk();
  cluster.close();
  rmSync(folder, { recursive: true, force: true });
}
const ms = (ns: number | null): string => (ns === null ? "–" : `${number(ns / 1e6)} ms`);
console.log(
  renderMarkdown({
    title: `getTier during floods, ${rounds} interleaved rounds`,
    columns: ["flood", "calls", "p50", "p99", "max"],
    rows: [...lags].map(([{ name }, own]) => [
      name,
      own.count.toLocaleString("en-US"),
      ms(own.percentile(50)),
      ms(own.percentile(99)),
      ms(own.percentile(100)),
    ]),
  }),
);
process.exit(0);
