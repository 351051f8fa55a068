// The TPU route: transactions per second, cost, and latency to the wire.
//
// The gateway's route with its QUIC process, against leaders in their own process (tpu-sink.ts), all on
// loopback and the same CPUs.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/core/clock.ts";
import { completeConfig } from "../../src/core/configuration/configuration.ts";
import { quicheProblem } from "../../src/core/quic/quiche.ts";
import type { TransactionFacts } from "../../src/core/transactions/facts.ts";
import { type TpuRoute, tpuOpener } from "../../src/gateway/routes/tpu-route.ts";
import type { OutboundTransaction, RouteEvent } from "../../src/gateway/submission/types.ts";
import { LineReader } from "../load/http-load.ts";
import { programArguments } from "../load/service-arguments.ts";
import { numberOf, textOf } from "../report/lines.ts";
import { quantile, type Summary, summarise } from "../report/statistics.ts";
import { number } from "../report/table.ts";
import { finding, type Section } from "./section.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const windowSlots = 4n;
const manyLeaders = 32;
/**
 * Concurrent transactions on all connections: enough to keep them busy, and below every queue
 * limit.
 */
const pendingMax = 512;
const transactionBytes = 700;
const pauseMs = 2;
/** Unit of processor times in /proc (USER_HZ). */
const tickUs = 10_000;

function factsOf(bytes: number): TransactionFacts {
  return {
    wire: new Uint8Array(bytes).fill(7),
    version: "legacy",
    signatureBytes: new Uint8Array(64),
    signature: "",
    feePayer: new Uint8Array(32),
    lifetime: new Uint8Array(32),
    nonce: null,
    tipLamports: 0n,
    computeUnitLimit: 0,
    computeUnitPrice: 0n,
    priorityFeeLamports: 0n,
    hasFrontKey: false,
  };
}

const facts = factsOf(transactionBytes);

class Leaders {
  readonly #child: ChildProcess;
  readonly #lines: LineReader;
  readonly #ports: readonly number[];
  #now = 0;

  static async open(count: number): Promise<Leaders> {
    const words = [...programArguments, "bench/load/tpu-sink.ts", String(count)];
    const child = spawn(process.execPath, words, { cwd: root, stdio: ["pipe", "pipe", "inherit"] });
    const lines = new LineReader(child);
    const ports = textOf(await lines.next(), "ports")
      .split(" ")
      .map(Number);
    return new Leaders(child, lines, ports);
  }

  private constructor(child: ChildProcess, lines: LineReader, ports: readonly number[]) {
    this.#child = child;
    this.#lines = lines;
    this.#ports = ports;
  }

  /** The first `count` leaders in turn lead for the next transaction. */
  turn(count: number): void {
    this.#now = (this.#now + 1) % count;
  }

  slot(): bigint {
    return BigInt(this.#now) * windowSlots;
  }

  leaderAt(slot: bigint): string {
    return String(slot / windowSlots);
  }

  addressOf(identity: string) {
    const port = this.#ports[Number(identity)];
    return port === undefined ? null : { host: "127.0.0.1", port };
  }

  async received(): Promise<number> {
    this.#child.stdin?.write("\n");
    return numberOf(await this.#lines.next(), "taken");
  }

  async close(): Promise<void> {
    this.#child.stdin?.end();
    await once(this.#child, "exit");
  }
}

function openRoute(leaders: Leaders, connections: number): TpuRoute {
  const [config] = completeConfig({
    relay: { shredVersion: 1, authentication: "off" },
    routes: [
      {
        name: "direct",
        kind: "tpu",
        quicAddresses: {},
        connections,
        queueMax: 4 * pendingMax,
        connectAheadSlots: Math.min(128, (connections - 1) * Number(windowSlots)),
      },
    ],
  }).routes;
  if (!config) throw new Error("expected a route, got none");
  return tpuOpener({
    clock: systemClock,
    leaders,
    addresses: leaders,
    partners: () => new Set(),
    readSeed: () => new Uint8Array(0),
  })(config);
}

/** Offers one transaction; settles with its events, each with its time. */
function offer(route: TpuRoute): Promise<readonly RouteEvent[]> {
  return new Promise((resolve, reject) => {
    const events: RouteEvent[] = [];
    const transaction: OutboundTransaction = {
      mode: "transaction",
      transactions: [facts],
      revertProtection: false,
      attempt: 1,
      leader: null,
      deniedLeaders: new Set(),
      deadlineNs: systemClock.nowNs() + 60_000_000_000n,
      report: (event) => {
        events.push(event);
        if (event.kind !== "sent") resolve(events);
      },
    };
    if (!route.offer(transaction))
      reject(new Error("expected the route to accept the transaction, but it did not"));
  });
}

/** Processor time of this process and of the route's QUIC process, in microseconds. */
function processorUs(route: TpuRoute): number {
  const { user, system } = process.cpuUsage();
  const { pid } = route.process;
  if (pid === null) return user + system;
  const text = readFileSync(`/proc/${pid}/stat`, "latin1");
  // After the name, which may contain spaces: state, …, utime and stime as the 12th and 13th.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return user + system + (Number(fields[11]) + Number(fields[12])) * tickUs;
}

interface Throughput {
  readonly perSecond: number;
  readonly cpuUs: number;
}

async function throughput(leaders: Leaders, connections: number, count: number) {
  const route = openRoute(leaders, connections);
  try {
    for (let i = 0; i < connections * 4; i++) {
      leaders.turn(connections);
      await offer(route);
    }
    await leaders.received();
    const beginNs = systemClock.monotonicNs();
    const beforeUs = processorUs(route);
    let left = count;
    let failed = 0;
    const feed = async (): Promise<void> => {
      while (left > 0) {
        left--;
        leaders.turn(connections);
        const events = await offer(route);
        if (events.at(-1)?.kind !== "acknowledged") failed++;
      }
    };
    await Promise.all(Array.from({ length: pendingMax }, feed));
    const cpuUs = processorUs(route) - beforeUs;
    const seconds = Number(systemClock.monotonicNs() - beginNs) / 1e9;
    const received = await leaders.received();
    if (received + failed < count)
      throw new Error(`expected ${count} accepted transactions, got ${received}`);
    return { perSecond: count / seconds, cpuUs: cpuUs / count };
  } finally {
    await route.close();
  }
}

interface Moments {
  readonly sentUs: readonly number[];
  readonly acknowledgedUs: readonly number[];
}

async function moments(route: TpuRoute, count: number, afterEach: () => Promise<void>) {
  const sentUs: number[] = [];
  const acknowledgedUs: number[] = [];
  for (let i = 0; i < count; i++) {
    const beginNs = systemClock.nowNs();
    for (const { kind, atNs } of await offer(route)) {
      const us = Number(atNs - beginNs) / 1000;
      if (kind === "sent") sentUs.push(us);
      if (kind === "acknowledged") acknowledgedUs.push(us);
    }
    await afterEach();
  }
  return { sentUs, acknowledgedUs };
}

/** 500 transactions a second, at most, in rounds of `count`. */
async function warmMoments(leaders: Leaders, count: number, rounds: number): Promise<Moments[]> {
  const route = openRoute(leaders, 1);
  const measure = () => moments(route, count, () => systemClock.sleep(pauseMs));
  try {
    await measure(); // warm-up for the compiler
    const found: Moments[] = [];
    for (let i = 0; i < rounds; i++) found.push(await measure());
    return found;
  } finally {
    await route.close();
  }
}

/** Sends each transaction to another leader without a connection. */
async function coldMoments(leaders: Leaders, rounds: number): Promise<Moments> {
  const sentUs: number[] = [];
  const acknowledgedUs: number[] = [];
  for (let i = 0; i < rounds; i++) {
    const route = openRoute(leaders, 1);
    try {
      await offer(route); // the start of the process is not measured
      const found = await moments(route, manyLeaders - 1, () => {
        leaders.turn(manyLeaders);
        return Promise.resolve();
      });
      sentUs.push(...found.sentUs.slice(1));
      acknowledgedUs.push(...found.acknowledgedUs.slice(1));
    } finally {
      await route.close();
    }
  }
  return { sentUs, acknowledgedUs };
}

interface Measured {
  readonly one: readonly Throughput[];
  readonly many: readonly Throughput[];
  readonly warm: readonly Moments[];
  readonly cold: Moments;
}

function report({ one, many, warm, cold }: Measured): Section {
  const of = (list: readonly Throughput[], key: keyof Throughput): Summary =>
    summarise(list.map((found) => found[key]));
  const rate = (name: string, list: readonly Throughput[]) => [
    name,
    number(of(list, "perSecond").median),
    number(of(list, "cpuUs").median),
  ];
  const percentiles = (values: readonly number[]) =>
    [0.5, 0.99].map((part) => number(quantile(values, part)));
  const warmSentUs = warm.flatMap(({ sentUs }) => sentUs);
  const warmRounds = (part: number) => summarise(warm.map(({ sentUs }) => quantile(sentUs, part)));
  return {
    name: "tpu",
    title: "Transactions to leaders over QUIC",
    notes: [
      `Transactions of ${transactionBytes} bytes, each on a stream of its own, acknowledged; the route's ` +
        `QUIC process and the process that offers share the CPUs with the leaders. Up to ${pendingMax} under way.`,
      "On the wire: the kernel has the last byte. A cold leader is one that nobody was connected with: " +
        "its handshake comes first.",
      `For the times of a connected leader, the CPUs are idle for ${pauseMs} ms before each transaction.`,
    ],
    tables: [
      {
        title: "Rate, and processor time of route and QUIC process together",
        columns: ["connections", "transactions/s", "µs each"],
        rows: [rate("1", one), rate(String(manyLeaders), many)],
      },
      {
        title: "From the offer, µs",
        columns: ["to", "p50", "p99"],
        rows: [
          ["the wire, warm connection", ...percentiles(warmSentUs)],
          [
            "the acknowledgement, warm",
            ...percentiles(warm.flatMap(({ acknowledgedUs }) => acknowledgedUs)),
          ],
          ["the wire, cold leader", ...percentiles(cold.sentUs)],
          ["the acknowledgement, cold", ...percentiles(cold.acknowledgedUs)],
        ],
      },
    ],
    findings: [
      finding("from the offer to the wire of a connected leader, p50", warmRounds(0.5), {
        target: 120,
        unit: "µs",
      }),
      finding("from the offer to the wire of a connected leader, p99", warmRounds(0.99), {
        target: 1000,
        unit: "µs",
      }),
      finding(
        "from the offer to the wire of a leader without a connection, p99",
        summarise([quantile(cold.sentUs, 0.99)]),
        { target: 10_000, unit: "µs" },
      ),
    ],
    values: {
      "transactions/s, 1 connection": of(one, "perSecond"),
      [`transactions/s, ${manyLeaders} connections`]: of(many, "perSecond"),
      "processor time each, 1 connection, µs": of(one, "cpuUs"),
      [`processor time each, ${manyLeaders} connections, µs`]: of(many, "cpuUs"),
      "offer to wire, warm, µs": summarise(warmSentUs),
      "offer to wire, cold, µs": summarise(cold.sentUs),
    },
  };
}

export async function tpuSection({
  rounds,
  small,
}: {
  rounds: number;
  small: boolean;
}): Promise<Section> {
  const problem = quicheProblem();
  if (problem !== null) {
    const notes = [`Not measured: the optional package @matrixai/quic is not here (${problem}).`];
    const title = "Transactions to leaders over QUIC";
    return { name: "tpu", title, notes, tables: [], findings: [], values: {} };
  }
  const leaders = await Leaders.open(manyLeaders);
  try {
    const count = small ? 2000 : 20_000;
    await throughput(leaders, 1, count / 4); // warm-up for the compiler, on both sides
    const one: Throughput[] = [];
    const many: Throughput[] = [];
    for (let i = 0; i < rounds; i++) {
      one.push(await throughput(leaders, 1, count));
      many.push(await throughput(leaders, manyLeaders, count));
    }
    const warm = await warmMoments(leaders, small ? 200 : 1000, rounds);
    const cold = await coldMoments(leaders, small ? 1 : 15);
    return report({ one, many, warm, cold });
  } finally {
    await leaders.close();
  }
}
