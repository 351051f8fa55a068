// The gateway next to another sender over QUIC: request to the leader, response, cost, and rate.
//
// The gateway with one TPU route, the sender that SHREDWAY_PEER_SENDER names, and a native proxy that
// checks nothing get the same kind of signed transactions, round by round in turn. All send to the same
// leader (tpu-sink.ts). All on loopback.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/core/clock.ts";
import { quicheProblem } from "../../src/core/quic/quiche.ts";
import { HttpLoad, LineReader, type LoadPlan, type LoadResult } from "../load/http-load.ts";
import { buildQuicProxy, peerProgram, startPeer } from "../load/peer-process.ts";
import { processTreeUs } from "../load/process-cpu.ts";
import { programArguments, serviceArguments } from "../load/service-arguments.ts";
import { numberOf, textOf } from "../report/lines.ts";
import { quantile, type Summary, summarise } from "../report/statistics.ts";
import { number } from "../report/table.ts";
import { type Finding, finding, type Section } from "./section.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const title = "The gateway next to another sender over QUIC";
const tipBytes = new Uint8Array(32).fill(5);
const paddingBytes = 300;
const senders = ["gateway", "proxy", "peer"] as const;
type Sender = (typeof senders)[number];
const quietPerSecond = 500;
const quietConnections = 16;
const closedConnections = 32;
/** More than each sender accepts, so that transactions last for the whole time. */
const signedPerSecond: Readonly<Record<Sender, number>> = {
  gateway: 15_000,
  proxy: 40_000,
  peer: 40_000,
};
/** The leader is quiet when nothing arrives for so long; transactions of one sender must not burden the next. */
const quietMs = 250;
const quietTurnsMax = 40;

const titles: Readonly<Record<Sender, string>> = {
  gateway: "gateway",
  proxy: "C++ and ngtcp2: copies, checks nothing",
  peer: "peer",
};

/** The leader of all senders. */
class LeaderSink {
  readonly port: number;
  readonly #child: ChildProcess;
  readonly #lines: LineReader;

  static async open(): Promise<LeaderSink> {
    const words = [...programArguments, "bench/load/tpu-sink.ts", "1"];
    const child = spawn(process.execPath, words, { cwd: root, stdio: ["pipe", "pipe", "inherit"] });
    const lines = new LineReader(child);
    return new LeaderSink(child, lines, Number(textOf(await lines.next(), "ports")));
  }

  private constructor(child: ChildProcess, lines: LineReader, port: number) {
    this.#child = child;
    this.#lines = lines;
    this.port = port;
  }

  /** Number of complete transactions since the last call of any method. */
  async received(): Promise<number> {
    this.#child.stdin?.write("\n");
    return numberOf(await this.#lines.next(), "taken");
  }

  /** Writes when each transaction since the last call of any method arrived. */
  async writeArrivals(path: string): Promise<void> {
    this.#child.stdin?.write(`arrivals ${path}\n`);
    await this.#lines.next();
  }

  /** Waits until no transaction arrives any more, and forgets those that did. */
  async clear(): Promise<void> {
    for (let turn = 0; turn < quietTurnsMax && (await this.received()) > 0; turn++)
      await systemClock.sleep(quietMs);
  }

  close(): void {
    this.#child.kill("SIGKILL");
  }
}

interface Server {
  readonly child: ChildProcess;
  readonly target: Pick<LoadPlan, "port" | "pid" | "credential" | "path">;
}

interface Setup {
  readonly load: HttpLoad;
  readonly sink: LeaderSink;
  readonly folder: string;
  readonly servers: ReadonlyMap<Sender, Server>;
  readonly isSmall: boolean;
}

/** One sender in one round, in µs. */
interface Measured {
  readonly batchP50: number;
  readonly batchP99: number;
  readonly responseP50: number;
  readonly responseP99: number;
  readonly quietCpu: number;
  /** Share of the accepted transactions that the leader received completely. */
  readonly arrived: number;
  readonly perSecond: number;
  readonly closedCpu: number;
}

interface Round {
  readonly checkUs: number;
  readonly senders: ReadonlyMap<Sender, Measured>;
}

async function startGateway(folder: string, sinkPort: number): Promise<Server> {
  const words = [...serviceArguments, join(root, "bench/load/gateway-process.ts"), "tpu"];
  const child = spawn(process.execPath, [...words, String(sinkPort), folder], {
    cwd: root,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const line = await new LineReader(child).next();
  const [port, pid] = [numberOf(line, "port"), numberOf(line, "pid")];
  return { child, target: { port, pid, credential: textOf(line, "credential"), path: "/relay" } };
}

async function startProgram(program: string, folder: string, leaderPort: number): Promise<Server> {
  const { child, port } = await startPeer(program, { leaderPort, folder });
  return { child, target: { port, pid: child.pid ?? 0, credential: "", path: "/" } };
}

/** Times by the name of the transaction, in nanoseconds. */
function readTimes(path: string): Map<string, number> {
  const lines = readFileSync(path, "latin1").trimEnd().split("\n");
  return new Map(
    lines.map((line) => {
      const [name = "", ns = ""] = line.split(" ");
      return [name, Number(ns)];
    }),
  );
}

interface LoadOptions {
  readonly connections: number;
  readonly seconds: number;
  readonly ratePerSecond: number;
}

async function measureLoad({ load, servers, sink }: Setup, sender: Sender, options: LoadOptions) {
  const server = servers.get(sender);
  if (!server) throw new Error(`expected the sender ${sender}, got none`);
  const { connections, seconds, ratePerSecond } = options;
  const count = Math.ceil((ratePerSecond > 0 ? ratePerSecond : signedPerSecond[sender]) * seconds);
  await load.make(count, tipBytes, paddingBytes);
  await sink.clear();
  const beforeUs = processTreeUs(server.target.pid);
  const result = await load.load(sender, {
    ...server.target,
    connections,
    seconds,
    ratePerSecond,
  });
  const cpuUs = (processTreeUs(server.target.pid) - beforeUs) / result.answered;
  if (result.accepted === 0)
    throw new Error(`${sender}: expected accepted transactions, got ${result.refused} refusals`);
  return { result, cpuUs };
}

/** From the request to the leader, in µs, of every transaction that arrived. */
async function leaderDelays({ load, sink, folder }: Setup, accepted: number) {
  const [begunFile, arrivedFile] = [join(folder, "begun"), join(folder, "arrived")];
  await load.writeBegun(begunFile);
  await sink.writeArrivals(arrivedFile);
  const arrivals = readTimes(arrivedFile);
  const delaysUs: number[] = [];
  for (const [name, begunNs] of readTimes(begunFile)) {
    const arrivedNs = arrivals.get(name);
    if (arrivedNs !== undefined) delaysUs.push((arrivedNs - begunNs) / 1000);
  }
  return { delaysUs, arrived: delaysUs.length / accepted };
}

async function measureSender(setup: Setup, sender: Sender): Promise<Measured> {
  const quietOptions = {
    connections: quietConnections,
    seconds: setup.isSmall ? 0.5 : 4,
    ratePerSecond: quietPerSecond,
  };
  const quiet = await measureLoad(setup, sender, quietOptions);
  const { delaysUs, arrived } = await leaderDelays(setup, quiet.result.accepted);
  const closed = await measureLoad(setup, sender, {
    connections: closedConnections,
    seconds: setup.isSmall ? 0.25 : 0.5,
    ratePerSecond: 0,
  });
  const rateOf = ({ accepted, seconds }: LoadResult): number => accepted / seconds;
  return {
    batchP50: quantile(delaysUs, 0.5),
    batchP99: quantile(delaysUs, 0.99),
    responseP50: quiet.result.p50Ns / 1000,
    responseP99: quiet.result.p99Ns / 1000,
    quietCpu: quiet.cpuUs,
    arrived,
    perSecond: rateOf(closed.result),
    closedCpu: closed.cpuUs,
  };
}

async function measureRound(setup: Setup, round: number): Promise<Round> {
  const names = [...setup.servers.keys()];
  const found = new Map<Sender, Measured>();
  for (const sender of round % 2 === 0 ? names : names.toReversed())
    found.set(sender, await measureSender(setup, sender));
  await setup.load.make(1000, tipBytes, paddingBytes);
  return { checkUs: 1e6 / (await setup.load.checksPerSecond(1000, 1)), senders: found };
}

/** Rows of the table and names of the values. */
const numbers: readonly (readonly [name: string, of: keyof Measured])[] = [
  ["500/s: request to the leader's packet batch, p50, µs", "batchP50"],
  ["500/s: request to the leader's packet batch, p99, µs", "batchP99"],
  ["500/s: response, p50, µs", "responseP50"],
  ["500/s: response, p99, µs", "responseP99"],
  ["500/s: CPU per transaction, µs", "quietCpu"],
  ["500/s: arrived at the leader ÷ accepted", "arrived"],
  ["closed loop: accepted per second", "perSecond"],
  ["closed loop: CPU per transaction, µs", "closedCpu"],
];

function summaryOf(rounds: readonly Round[], of: (round: Round) => number | undefined): Summary {
  return summarise(rounds.map(of).filter((value) => value !== undefined));
}

function findingsOf(rounds: readonly Round[]): Finding[] {
  const ratio = (
    what: string,
    combine: (own: Measured, peer: Measured, round: Round) => number,
    limit: { readonly target: number; readonly bound?: "at least" },
  ): Finding => {
    const value = summaryOf(rounds, (round) => {
      const [own, peer] = [round.senders.get("gateway"), round.senders.get("peer")];
      return own && peer ? combine(own, peer, round) : undefined;
    });
    return finding(`${what}: gateway ÷ peer`, value, { ...limit, unit: "×", isRatio: true });
  };
  const plain = (what: string, key: keyof Measured, target: number): Finding =>
    ratio(what, (own, peer) => own[key] / peer[key], { target });
  return [
    plain("request to the leader's packet batch, p50 at 500/s", "batchP50", 1.5),
    plain("request to the leader's packet batch, p99 at 500/s", "batchP99", 1.2),
    plain("durable response, p50 at 500/s", "responseP50", 4),
    ratio(
      "processor time per transaction without the signature check, at 500/s",
      (own, peer, { checkUs }) => (own.quietCpu - checkUs) / peer.quietCpu,
      { target: 1.5 },
    ),
    ratio(
      "accepted per second, closed loop with 32 connections",
      (own, peer) => own.perSecond / peer.perSecond,
      { target: 0.5, bound: "at least" },
    ),
  ];
}

function report(rounds: readonly Round[], missing: readonly string[]): Section {
  const present = senders.filter((sender) => rounds[0]?.senders.has(sender));
  const values: Record<string, Summary> = {
    "signature check, µs": summaryOf(rounds, ({ checkUs }) => checkUs),
  };
  for (const sender of present) {
    for (const [name, key] of numbers)
      values[`${sender}, ${name}`] = summaryOf(rounds, (one) => one.senders.get(sender)?.[key]);
  }
  const cell = (name: string): string => {
    const value = values[name];
    return value
      ? `${number(value.median)} (${number(value.low)} to ${number(value.high)})`
      : number(Number.NaN);
  };
  return {
    name: "peer",
    title,
    notes: [
      `sendTransaction of about ${paddingBytes + 300} bytes, ${quietConnections} connections at ${quietPerSecond}/s, then ` +
        `${closedConnections} connections as fast as answers come. All senders use the same leader, which ` +
        "is on the same CPUs. The gateway checks the signature and stores each submission before it responds; " +
        `a check alone takes ${number(values["signature check, µs"]?.median ?? Number.NaN)} µs.`,
      "The processor time is that of the sender's process and all its descendants.",
      ...missing,
    ],
    tables: [
      {
        title: "Medians and quartiles of the rounds",
        columns: ["value", ...present.map((sender) => titles[sender])],
        rows: numbers.map(([name]) => [name, ...present.map((one) => cell(`${one}, ${name}`))]),
      },
    ],
    findings: present.includes("peer") ? findingsOf(rounds) : [],
    values,
  };
}

async function startAll(setup: {
  readonly folder: string;
  readonly sink: LeaderSink;
  readonly servers: Map<Sender, Server>;
}): Promise<string[]> {
  const { folder, sink, servers } = setup;
  const missing: string[] = [];
  servers.set("gateway", await startGateway(join(folder, "gateway"), sink.port));
  const proxy = buildQuicProxy(folder);
  if (proxy !== null) servers.set("proxy", await startProgram(proxy, folder, sink.port));
  else
    missing.push(
      "The native proxy was not measured: it needs a compiler and ngtcp2 0.x with GnuTLS.",
    );
  const peer = peerProgram();
  if (peer !== null) servers.set("peer", await startProgram(peer, folder, sink.port));
  else missing.push("The peer was not measured: set SHREDWAY_PEER_SENDER.");
  return missing;
}

export async function peerSection(
  program: string,
  { rounds, small }: { rounds: number; small: boolean },
): Promise<Section> {
  const problem = quicheProblem();
  if (problem !== null) {
    const notes = [`Not measured: the optional package @matrixai/quic is not here (${problem}).`];
    return { name: "peer", title, notes, tables: [], findings: [], values: {} };
  }
  const folder = mkdtempSync(join(tmpdir(), "shredway-bench-"));
  mkdirSync(join(folder, "gateway"));
  const servers = new Map<Sender, Server>();
  const sink = await LeaderSink.open();
  const load = await HttpLoad.open(program);
  try {
    const missing = await startAll({ folder, sink, servers });
    const setup = { load, sink, folder, servers, isSmall: small };
    for (const sender of servers.keys()) await measureSender({ ...setup, isSmall: true }, sender); // warm-up
    const results: Round[] = [];
    for (let i = 0; i < rounds; i++) results.push(await measureRound(setup, i));
    return report(results, missing);
  } finally {
    load.close();
    sink.close();
    for (const { child } of servers.values()) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}
