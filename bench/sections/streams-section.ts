// Decoded streams: delay of messages with 50 subscribers, their effect on the relay and on each other, and
// the cost of matching.
//
// A relay with the stream service runs in its own process. This process sends the shreds (on a native
// thread) and contains the subscribers. The cost of matching is measured by the native program.

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/core/clock.ts";
import { PacedSender } from "../../src/relay/data-plane/paced-sender.ts";
import { openUdpDescriptor } from "../../src/relay/data-plane/udp-socket.ts";
import { echoRoundTrips } from "../load/grpc-echo-load.ts";
import { LineReader } from "../load/http-load.ts";
import { serviceArguments } from "../load/service-arguments.ts";
import { StreamSubscribers, subscriberCount } from "../load/stream-subscribers.ts";
import { StreamTraffic, sourceAddress } from "../load/stream-traffic.ts";
import { raiseThreads } from "../load/thread-priority.ts";
import { byRound, type Line, numberOf, ofKind, textOf } from "../report/lines.ts";
import { quantile, type Summary, summarise } from "../report/statistics.ts";
import { number } from "../report/table.ts";
import { bucketQuantile } from "./loop-section.ts";
import { type Finding, finding, type Section } from "./section.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const shredsPerSecond = 10_000;
const sinkAddress = "127.0.0.9";
const sinkPort = 20_019;
const transactionsPerSecond = 100_000;
const accountsMatched = 10_000;
const pollMs = 20;
const pollTurnsMax = 250;
/** `none`: no subscribers. `stopped`: one more than `subscribers`, which never reads. */
const cases = ["none", "subscribers", "stopped"] as const;
type Case = (typeof cases)[number];

class StreamServer {
  readonly streams: string;
  readonly relay: string;
  readonly #child: ChildProcess;
  readonly #lines: LineReader;

  private constructor(child: ChildProcess, lines: LineReader, ready: Line) {
    this.#child = child;
    this.#lines = lines;
    this.streams = textOf(ready, "streams");
    this.relay = textOf(ready, "relay");
  }

  static async start(leader: Uint8Array): Promise<StreamServer> {
    const words = [...serviceArguments, join(root, "bench/load/streams-process.ts")];
    const hex = Buffer.from(leader).toString("hex");
    const child = spawn(process.execPath, [...words, hex, `${sinkAddress}:${sinkPort}`], {
      cwd: root,
      stdio: ["pipe", "pipe", "inherit"],
    });
    const lines = new LineReader(child);
    return new StreamServer(child, lines, await lines.next());
  }

  /** Counts since the last call. */
  async counts(): Promise<Line> {
    this.#child.stdin?.write("\n");
    return this.#lines.next();
  }

  /** Waits until this number of streams is open and their filters are in force. */
  async whenOpen(streams: number): Promise<void> {
    for (let turn = 0; turn < pollTurnsMax; turn++) {
      const counts = await this.counts();
      if (numberOf(counts, "open") === streams && counts.get("is_current") === true) return;
      await systemClock.sleep(pollMs);
    }
    throw new Error(`expected ${streams} open streams, got another number`);
  }

  close(): void {
    this.#child.kill("SIGKILL");
  }
}

interface Run {
  /** Latency of the relay, from a shred's receive time until it was sent. */
  readonly relayP50Ns: number;
  readonly relayP99Ns: number;
  /** Delay of messages until the kernel has them, by the service's own metric, and to the subscriber. */
  readonly givenP50Ns: number;
  readonly givenP99Ns: number;
  readonly delayP50Ns: number;
  readonly delayP99Ns: number;
  /** Processor time of the relay's process and of the subscribers' process, as a share of one CPU. */
  readonly serverShare: number;
  readonly ownShare: number;
  /** Messages that did not arrive. */
  readonly missing: number;
  readonly messages: number;
}

interface Bench {
  readonly server: StreamServer;
  readonly sender: PacedSender;
  readonly traffic: StreamTraffic;
  readonly seconds: number;
}

function bucketsOf(counts: Line): Map<number, number> {
  const bounds = textOf(counts, "delay_bounds").split(" ").map(Number);
  const sums = textOf(counts, "delay_counts").split(" ").map(Number);
  const buckets = new Map(bounds.map((bound, i) => [bound, sums[i] ?? 0]));
  return buckets.set(Number.POSITIVE_INFINITY, numberOf(counts, "delay_count"));
}

async function measureRun(bench: Bench, which: Case): Promise<Run> {
  const { server, sender, seconds } = bench;
  const traffic = bench.traffic.make(shredsPerSecond * seconds);
  const subscribers = which === "none" ? null : new StreamSubscribers(server.streams);
  try {
    if (which === "stopped") subscribers?.openStopped();
    await server.whenOpen(subscribers ? subscriberCount + (which === "stopped" ? 1 : 0) : 0);
    const before = bucketsOf(await server.counts());
    const cpuBefore = process.cpuUsage();
    const beganNs = systemClock.monotonicNs();
    const { packets } = traffic;
    const gapNs = 1e9 / shredsPerSecond;
    sender.enqueue(
      packets,
      BigUint64Array.from(packets, (_, i) => BigInt(Math.round(i * gapNs))),
    );
    await systemClock.sleep((packets.length / shredsPerSecond) * 1000);
    const expected = subscribers?.expectedOf(traffic) ?? 0;
    for (let turn = 0; turn < pollTurnsMax; turn++) {
      if ((subscribers?.received ?? 0) >= expected && sender.counts().queued === 0n) break;
      await systemClock.sleep(pollMs);
    }
    const after = await server.counts();
    const elapsedUs = Number(systemClock.monotonicNs() - beganNs) / 1e3;
    const cpu = process.cpuUsage(cpuBefore);
    const delays = subscribers?.takeDelays() ?? [];
    const given = (part: number): number => bucketQuantile(before, bucketsOf(after), part) * 1e9;
    return {
      relayP50Ns: numberOf(after, "latency_p50_ns"),
      relayP99Ns: numberOf(after, "latency_p99_ns"),
      givenP50Ns: given(0.5),
      givenP99Ns: given(0.99),
      delayP50Ns: quantile(delays, 0.5),
      delayP99Ns: quantile(delays, 0.99),
      serverShare: numberOf(after, "cpu_us") / elapsedUs,
      ownShare: (cpu.user + cpu.system) / elapsedUs,
      missing: expected - (subscribers?.received ?? 0),
      messages: delays.length,
    };
  } finally {
    subscribers?.close();
    await server.whenOpen(0);
  }
}

type Round = Readonly<Record<Case, Run>> & {
  readonly echoP50Ns: number;
  readonly echoP99Ns: number;
};

/** The order changes from round to round, because later runs find warmer memory. */
async function measureRound(bench: Bench, round: number): Promise<Round> {
  const runs = new Map<Case, Run>();
  const order = round % 2 === 0 ? cases : cases.toReversed();
  for (const which of order) runs.set(which, await measureRun(bench, which));
  const echo = await echoRoundTrips(subscriberCount, bench.seconds);
  const of = (which: Case): Run => {
    const run = runs.get(which);
    if (!run) throw new Error(`expected a run of ${which}`);
    return run;
  };
  return {
    none: of("none"),
    subscribers: of("subscribers"),
    stopped: of("stopped"),
    echoP50Ns: quantile(echo, 0.5),
    echoP99Ns: quantile(echo, 0.99),
  };
}

const each = (rounds: readonly Round[], of: (round: Round) => number): Summary =>
  summarise(rounds.map(of));

function valuesOf(rounds: readonly Round[], matching: ReadonlyMap<string, Summary>) {
  const us = (of: (round: Round) => number): Summary => each(rounds, (round) => of(round) / 1e3);
  const values: Record<string, Summary> = {
    "to the kernel, p50, µs": us(({ subscribers }) => subscribers.givenP50Ns),
    "to the kernel, p99, µs": us(({ subscribers }) => subscribers.givenP99Ns),
    "to the subscriber, p50, µs": us(({ subscribers }) => subscribers.delayP50Ns),
    "to the subscriber, p99, µs": us(({ subscribers }) => subscribers.delayP99Ns),
    "to the subscriber beside a stopped one, p50, µs": us(({ stopped }) => stopped.delayP50Ns),
    "to the subscriber beside a stopped one, p99, µs": us(({ stopped }) => stopped.delayP99Ns),
    "echo of grpc-js, round trip, p50, µs": us(({ echoP50Ns }) => echoP50Ns),
    "echo of grpc-js, round trip, p99, µs": us(({ echoP99Ns }) => echoP99Ns),
  };
  for (const which of cases) {
    const name = `relay, ${caseNames[which]}`;
    values[`CPU of the relay's process, ${caseNames[which]}, %`] = each(
      rounds,
      (round) => round[which].serverShare * 100,
    );
    values[`CPU of the subscribers' process, ${caseNames[which]}, %`] = each(
      rounds,
      (round) => round[which].ownShare * 100,
    );
    values[`${name}, p50, µs`] = us((round) => round[which].relayP50Ns);
    values[`${name}, p99, µs`] = us((round) => round[which].relayP99Ns);
  }
  for (const [name, summary] of matching) values[name] = summary;
  return values;
}

const caseNames: Readonly<Record<Case, string>> = {
  none: "no subscribers",
  subscribers: `${subscriberCount} subscribers`,
  stopped: `${subscriberCount} subscribers and a stopped one`,
};

/** A message that never arrived does not count as in time. */
function unlessMissing(found: Finding, missing: number): Finding {
  if (missing <= 0) return found;
  return { ...found, what: `${found.what} (${missing} messages missing)`, verdict: "missed" };
}

function findingsOf(rounds: readonly Round[], cpuShare: Summary): Finding[] {
  const missingOf = (which: Case): number =>
    rounds.reduce((sum, round) => sum + round[which].missing, 0);
  const delay = (part: "p50" | "p99", target: number): Finding => {
    const value = each(rounds, ({ subscribers: { givenP50Ns, givenP99Ns } }) =>
      part === "p50" ? givenP50Ns / 1e3 : givenP99Ns / 1e3,
    );
    const what = `from the last needed shred until the kernel has the message, ${part}, ${subscriberCount} subscribers`;
    return unlessMissing(finding(what, value, { target, unit: "µs" }), missingOf("subscribers"));
  };
  return [
    delay("p50", 400),
    delay("p99", 2000),
    finding(
      `latency of the relay with ${subscriberCount} subscribers ÷ without, p50`,
      each(rounds, ({ subscribers, none }) => subscribers.relayP50Ns / none.relayP50Ns),
      { target: 1.05, unit: "×", isRatio: true },
    ),
    unlessMissing(
      finding(
        "p99 to the subscriber beside one that stops reading ÷ without",
        each(rounds, ({ stopped, subscribers }) => stopped.delayP99Ns / subscribers.delayP99Ns),
        { target: 1.1, unit: "×", isRatio: true },
      ),
      missingOf("stopped"),
    ),
    finding(
      "matching 100,000 transactions per second against 10,000 accounts, share of one CPU",
      cpuShare,
      { target: 10, unit: "%" },
    ),
  ];
}

/** Nanoseconds for each transaction, by the number of accounts. */
function matchingOf(lines: readonly Line[]): ReadonlyMap<number, Summary> {
  const rounds = byRound(
    ofKind(lines, "stream_filters"),
    (line) => String(numberOf(line, "accounts")),
    (line) => numberOf(line, "ns"),
  );
  return new Map(
    [...rounds].map(([accounts, values]) => [Number(accounts), summarise([...values.values()])]),
  );
}

function report(rounds: readonly Round[], lines: readonly Line[], hasPace: boolean): Section {
  const matching = matchingOf(lines);
  const named = new Map(
    [...matching].map(([accounts, summary]) => [
      `matching a transaction, ${accounts.toLocaleString("en-US")} accounts, ns`,
      summary,
    ]),
  );
  const values = valuesOf(rounds, named);
  const median = (name: string): string => number(values[name]?.median ?? Number.NaN);
  const row = (title: string, name: string): string[] => [
    title,
    median(`${name}, p50, µs`),
    median(`${name}, p99, µs`),
  ];
  const most = matching.get(accountsMatched) ?? summarise([]);
  const share = (ns: number): number => (ns * transactionsPerSecond) / 1e7;
  const cpuShare = {
    ...most,
    median: share(most.median),
    low: share(most.low),
    high: share(most.high),
  };
  const messages = each(rounds, ({ subscribers }) => subscribers.messages).median;
  return {
    name: "streams",
    title: "Decoded streams",
    notes: [
      `${shredsPerSecond.toLocaleString("en-US")} shreds/s with about 200 bytes for each transaction, half of them votes. 45 subscribers ` +
        `name ten accounts each and are measured (${number(messages)} messages in a run), three receive everything but votes, two ` +
        "all entries. Source and subscribers share the CPUs with the relay. " +
        (hasPace
          ? "The source has the priority of the relay's worker, so that it keeps its pace."
          : "The source has no raised priority (CAP_SYS_NICE), so that its bursts count in the relay's latency."),
      "To the kernel: by the service's metric, in its buckets, for all subscribers. To the subscriber: for those that are measured, " +
        "also the loopback and the subscriber's own work. Each message of the echo makes a round trip.",
    ],
    tables: [
      {
        title: "From the last needed shred, µs",
        columns: ["to", "p50", "p99"],
        rows: [
          row("the kernel, on the subscriber's socket", "to the kernel"),
          row("the subscriber", "to the subscriber"),
          row("the subscriber, beside a stopped one", "to the subscriber beside a stopped one"),
          row("lower bound: echo of grpc-js, round trip", "echo of grpc-js, round trip"),
        ],
      },
      {
        title:
          "Receive to send of the relay, µs, and processor time of both processes, % of one CPU",
        columns: ["with", "p50", "p99", "relay and streams", "source and subscribers"],
        rows: cases.map((which) => [
          ...row(caseNames[which], `relay, ${caseNames[which]}`),
          median(`CPU of the relay's process, ${caseNames[which]}, %`),
          median(`CPU of the subscribers' process, ${caseNames[which]}, %`),
        ]),
      },
      {
        title: "Matching, CPU time",
        columns: ["case", "median"],
        rows: [...named.keys()].map((name) => [name, median(name)]),
      },
    ],
    findings: findingsOf(rounds, cpuShare),
    values,
  };
}

export async function streamsSection(
  lines: readonly Line[],
  { rounds, small }: { rounds: number; small: boolean },
): Promise<Section> {
  const traffic = new StreamTraffic();
  const sink = openUdpDescriptor(sinkAddress, sinkPort);
  const server = await StreamServer.start(traffic.leader);
  const sender = PacedSender.open({ to: server.relay, from: `${sourceAddress}:0` });
  const hasPace = raiseThreads("shredway-paced");
  try {
    const bench = { server, sender, traffic, seconds: small ? 1 : 5 };
    await measureRun(bench, "subscribers"); // warm-up for the compiler
    const results: Round[] = [];
    for (let i = 0; i < rounds; i++) results.push(await measureRound(bench, i));
    return report(results, lines, hasPace);
  } finally {
    sender.close();
    server.close();
    closeSync(sink);
  }
}
