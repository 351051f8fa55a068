// Delay of the service's event loop under the load of many listeners.
//
// The service with the soak test's cluster: 200 destinations, 1,000 WebSockets at /status, visitors of the
// portal, submissions and reads. The delay is the service's own metric, nodejs_eventloop_lag_seconds.

import { randomBytes } from "node:crypto";
import { closeSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocket } from "ws";
import { systemClock } from "../../src/core/clock.ts";
import { createLogger } from "../../src/core/log.ts";
import { keyRandomBytes } from "../../src/gateway/accounts/api-keys.ts";
import { createKey } from "../../src/gateway/accounts/create-key.ts";
import { feedsPerKeyMax } from "../../src/gateway/endpoints/status-feed.ts";
import { Store } from "../../src/platform/store/store.ts";
import { openUdpDescriptor } from "../../src/relay/data-plane/udp-socket.ts";
import { startOptions } from "../load/service-arguments.ts";
import { type Summary, summarise } from "../report/statistics.ts";
import { number } from "../report/table.ts";
import { Cluster } from "../soak/cluster.ts";
import { Load } from "../soak/load.ts";
import { readMetrics } from "../soak/samples.ts";
import { Service } from "../soak/service.ts";
import { finding, type Section } from "./section.ts";

const program = fileURLToPath(new URL("../../dist/tools/shredway.js", import.meta.url));
const title = "Delay of the event loop";
const destinationCount = 200;
const listenerCount = 1000;
/** Interval and number of attempts until the service knows the keys of the listeners. */
const keyPollMs = 100;
const keyTurnsMax = 100;
const destinationPort = 20_009;
const ratePerSecond = 20;
/** A busy service may not respond in time. */
const readTurnsMax = 5;
const visitMs = 100;
const targetMs = 5;
const metric = "nodejs_eventloop_lag_seconds_bucket";

/** Cumulative counts by the upper bound of the bucket, in seconds. */
type Buckets = ReadonlyMap<number, number>;

async function readBuckets(url: string): Promise<Buckets> {
  for (let turn = 0; turn < readTurnsMax; turn++) {
    const buckets = new Map<number, number>();
    for (const [name, count] of (await readMetrics(url)) ?? []) {
      const bound = name.startsWith(metric) ? /le="([^"]+)"/.exec(name)?.[1] : undefined;
      if (bound !== undefined) buckets.set(bound === "+Inf" ? Infinity : Number(bound), count);
    }
    if (buckets.size > 0) return buckets;
  }
  throw new Error(`expected ${metric} at ${url}/metrics, got none`);
}

/** Quantile of what was counted between two readings, by linear interpolation in its bucket, in seconds. */
export function bucketQuantile(before: Buckets, after: Buckets, part: number): number {
  const counts = [...after]
    .toSorted(([a], [b]) => a - b)
    .map(([bound, count]) => ({ bound, count: count - (before.get(bound) ?? 0) }));
  const rank = (counts.at(-1)?.count ?? 0) * part;
  let below = { bound: 0, count: 0 };
  for (const each of counts) {
    if (each.count >= rank && each.count > below.count) {
      if (each.bound === Infinity) return below.bound;
      const share = (rank - below.count) / (each.count - below.count);
      return below.bound + (each.bound - below.bound) * share;
    }
    below = each;
  }
  return Number.NaN;
}

/** Keys in the store of the running service: one of the load's account, the others of their own. */
async function createKeys({ dataFolder }: Service, count: number): Promise<string[]> {
  const log = createLogger({ level: "warn" });
  const store = await Store.open({ directory: dataFolder, clock: systemClock, log });
  const limits = { requestsPerSecond: null, burst: null, allowedRanges: [] };
  const texts: string[] = [];
  try {
    for (let i = 0; i < count; i++) {
      const { text } = await createKey(
        store.keys,
        {
          accountName: i === 0 ? "soak" : `listener ${i}`,
          label: "",
          scopes: ["submit", "read"],
          ...limits,
        },
        { random: randomBytes(keyRandomBytes), nowNs: systemClock.nowNs() },
      );
      texts.push(text);
    }
  } finally {
    await store.close();
  }
  return texts;
}

function listen(url: string): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { perMessageDeflate: false });
    socket.once("open", () => resolve(socket));
    socket.once("error", reject);
    socket.on("message", () => undefined);
  });
}

async function openListeners(service: Service): Promise<WebSocket[]> {
  const keys = await createKeys(service, Math.ceil(listenerCount / feedsPerKeyMax));
  const url = `${service.url.replace(/^http/, "ws")}/status?api-key=`;
  const newest = url + (keys.at(-1) ?? "");
  // The service reads new keys within a second or so.
  for (let turn = 0; turn < keyTurnsMax; turn++) {
    const socket = await listen(newest).catch(() => null);
    socket?.terminate();
    if (socket) break;
    await systemClock.sleep(keyPollMs);
  }
  const sockets: WebSocket[] = [];
  for (const key of keys) {
    const batch = Array.from({ length: feedsPerKeyMax }, () => listen(url + key));
    sockets.push(...(await Promise.all(batch)));
  }
  return sockets;
}

/** One visitor of the portal, who signs in once and then opens pages. Returns the number of responses. */
async function visitPortal({ url, apiKey }: Service, stopped: AbortSignal): Promise<number> {
  let cookie = "";
  const ask = async (method: string, path: string, body?: object): Promise<Response> => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { origin: url, "content-type": "application/json", cookie },
      ...(body && { body: JSON.stringify(body) }),
    });
    await response.text();
    if (!response.ok)
      throw new Error(`${path}: expected a response, got status ${response.status}`);
    return response;
  };
  const signedIn = await ask("POST", "/portal/api/session", { key: apiKey });
  cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
  let visits = 0;
  while (!stopped.aborted) {
    await ask("GET", "/portal/");
    await ask("POST", "/portal/api/call", { method: "getTier", params: [] });
    await ask("POST", "/portal/api/call", { method: "getDestinations", params: [] });
    visits += 3;
    await systemClock.sleep(visitMs, stopped);
  }
  return visits;
}

interface Round {
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Responses of the portal per second. */
  readonly visits: number;
}

async function measureRound(service: Service, load: Load, seconds: number): Promise<Round> {
  const ending = new AbortController();
  const visits = visitPortal(service, ending.signal);
  const running = Promise.allSettled([visits, load.run(ending.signal)]);
  try {
    const before = await readBuckets(service.url);
    await systemClock.sleep(seconds * 1000);
    const after = await readBuckets(service.url);
    ending.abort();
    const quantileMs = (part: number): number => bucketQuantile(before, after, part) * 1000;
    return {
      p50Ms: quantileMs(0.5),
      p99Ms: quantileMs(0.99),
      visits: (await visits) / seconds,
    };
  } finally {
    ending.abort();
    await running;
  }
}

function report(rounds: readonly Round[]): Section {
  const of = (key: keyof Round): Summary => summarise(rounds.map((round) => round[key]));
  const row = (name: string, { low, median, high }: Summary) => [
    name,
    ...[low, median, high].map(number),
  ];
  return {
    name: "loop",
    title,
    notes: [
      `The service with ${destinationCount} destinations, ${listenerCount.toLocaleString("en-US")} listeners at /status, of ${Math.ceil(listenerCount / feedsPerKeyMax)} accounts, a portal ` +
        `visitor (${number(of("visits").median)} responses/s), and ${ratePerSecond} transactions/s of every kind. Chain, node, partners, ` +
        "sources and listeners share the CPUs with it. The load is that of one account. A delay is that of a 50 ms timer, by the service's metric.",
    ],
    tables: [
      {
        title: "Delay of the event loop, ms",
        columns: ["quantile of a round", "lower quartile", "median", "upper quartile"],
        rows: [row("p50", of("p50Ms")), row("p99", of("p99Ms"))],
      },
    ],
    findings: [
      finding(
        `delay of the event loop, p99, with ${destinationCount} destinations and ${listenerCount.toLocaleString("en-US")} listeners`,
        of("p99Ms"),
        { target: targetMs, unit: "ms" },
      ),
    ],
    values: { "p50, ms": of("p50Ms"), "p99, ms": of("p99Ms") },
  };
}

/** Addresses of one socket that nobody reads: the kernel drops what its buffer does not hold. */
function destinations(): { readonly address: string; readonly tier: string }[] {
  return Array.from({ length: destinationCount }, (_, i) => ({
    address: `127.1.${Math.floor(i / 200)}.${1 + (i % 200)}:${destinationPort}`,
    tier: "tier-1",
  }));
}

export async function loopSection({
  rounds,
  small,
}: {
  rounds: number;
  small: boolean;
}): Promise<Section> {
  const folder = mkdtempSync(join(tmpdir(), "shredway-bench-"));
  const silent = openUdpDescriptor("0.0.0.0", destinationPort);
  const cluster = await Cluster.open(folder);
  let service: Service | undefined;
  const sockets: WebSocket[] = [];
  try {
    service = await Service.start({
      folder,
      program,
      nodeOptions: startOptions,
      cluster: cluster.ready,
      destinations: destinations(),
      postgres: undefined,
      clockJumps: false,
    });
    await cluster.do({ do: "feed", to: service.relayAddress });
    const { url, apiKey } = service;
    const load = new Load({ url, apiKey, cluster: cluster.ready, rate: ratePerSecond, seed: 1 });
    await load.prepare();
    sockets.push(...(await openListeners(service)));
    const seconds = small ? 3 : 10;
    await measureRound(service, load, seconds); // warm-up for the compiler
    const results: Round[] = [];
    for (let i = 0; i < rounds; i++) results.push(await measureRound(service, load, seconds));
    return report(results);
  } finally {
    for (const socket of sockets) socket.terminate();
    service?.kill();
    service?.removeDisk();
    cluster.close();
    closeSync(silent);
    rmSync(folder, { recursive: true, force: true });
  }
}
