// Submissions over QUIC: rate against HTTP on the same server, latency to a route, and idle connections.
//
// Two servers in their own processes (with signature verification, and without) get the same signed
// transactions by HTTP and by QUIC, round by round in turn. The callers over QUIC are a native program
// (quic_load.cc), those over HTTP and the partner are that of the gateway's section. All on loopback.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { quicheProblem } from "../../src/core/quic/quiche.ts";
import { type ForgedKind, ForgedPackets } from "../load/forged-packets.ts";
import { HttpLoad, LineReader, type LoadResult } from "../load/http-load.ts";
import {
  type IdleResult,
  QuicLoad,
  type QuicResult,
  quicLoadProblem,
  type RouteTimes,
} from "../load/quic-load.ts";
import { serviceArguments } from "../load/service-arguments.ts";
import { numberOf, textOf } from "../report/lines.ts";
import { type Summary, summarise } from "../report/statistics.ts";
import { number } from "../report/table.ts";
import { type Finding, finding, type Section } from "./section.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const tipBytes = new Uint8Array(32).fill(5);
const paddingBytes = 300;
const httpConnections = 256;
/** The same number of concurrent submissions: 64 streams each. */
const quicConnections = 4;
const calmPerSecond = 500;
const idleConnections = 1000;
/** Collections of garbage and the server's own timers make one round inaccurate. */
const idleRounds = 5;
const forgedPerSecond = 100_000;
const kinds = ["quic", "quic-unchecked"] as const;
type Kind = (typeof kinds)[number];
/** About the capacity, so that few signed transactions are wasted. */
const signedPerSecond: Readonly<Record<Kind, number>> = {
  quic: 30_000,
  "quic-unchecked": 60_000,
};

interface Server {
  readonly child: ChildProcess;
  readonly port: number;
  readonly quicPort: number;
  /** The process of the connections, then the gateway. */
  readonly pids: readonly [number, number];
  readonly credential: string;
  readonly load: QuicLoad;
}

async function start(kind: Kind, sinkPort: number, folder: string): Promise<Server> {
  const words = [...serviceArguments, join(root, "bench/load/gateway-process.ts"), kind];
  const child = spawn(process.execPath, [...words, String(sinkPort), join(folder, kind)], {
    cwd: root,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const line = await new LineReader(child).next();
  const credential = textOf(line, "credential");
  return {
    child,
    port: numberOf(line, "port"),
    quicPort: numberOf(line, "quicPort"),
    pids: [numberOf(line, "quicPid"), numberOf(line, "pid")],
    credential,
    load: QuicLoad.open(join(folder, kind), credential),
  };
}

interface Bench {
  readonly http: HttpLoad;
  readonly servers: Readonly<Record<Kind, Server>>;
  readonly forged: ForgedPackets;
  readonly folder: string;
  readonly seconds: number;
}

async function mostByHttp({ http, servers, seconds }: Bench, kind: Kind): Promise<LoadResult> {
  const { port, pids, credential } = servers[kind];
  await http.make(Math.ceil(signedPerSecond[kind] * seconds), tipBytes, paddingBytes);
  const plan = { port, pid: pids[1], credential, path: "/relay", connections: httpConnections };
  return http.load(kind, { ...plan, seconds, ratePerSecond: 0 });
}

type QuicRun = QuicResult & RouteTimes;

interface Load {
  /** 0: as fast as answers come. */
  readonly ratePerSecond: number;
  /** Port that gets forged packets meanwhile, first ones unless it says otherwise. */
  readonly floodedPort?: number;
  readonly forged?: ForgedKind;
}

async function byQuic(
  bench: Bench,
  kind: Kind,
  { ratePerSecond, floodedPort, forged = "first" }: Load,
): Promise<QuicRun> {
  const { http, servers, folder, seconds } = bench;
  const { quicPort: port, pids, load } = servers[kind];
  const count = Math.ceil((ratePerSecond || signedPerSecond[kind]) * seconds);
  const file = join(folder, "transactions");
  const arrivals = join(folder, "arrivals");
  await http.make(count, tipBytes, paddingBytes);
  await http.exportNext(count, file);
  const plan = { port, connections: quicConnections, seconds, ratePerSecond, file, pids };
  const flood =
    floodedPort === undefined
      ? null
      : bench.forged.flood({
          port: floodedPort,
          seconds,
          packetsPerSecond: forgedPerSecond,
          kind: forged,
        });
  const result = await load.load(plan);
  await flood;
  await http.arrivals(arrivals, result.accepted);
  return { ...result, ...(await load.routeTimes(arrivals)) };
}

/** At 500/s. */
interface CalmRound {
  readonly calm: QuicRun;
  /** The same rate beside forged packets for the server's port, and for a socket that nobody reads. */
  readonly attacked: QuicRun;
  readonly strayed: QuicRun;
  readonly besideFlood: QuicRun;
}

interface Round extends CalmRound {
  readonly http: Readonly<Record<Kind, LoadResult>>;
  readonly quic: Readonly<Record<Kind, QuicRun>>;
}

async function measureCalm(bench: Bench): Promise<CalmRound> {
  const calm = (flooded = {}) =>
    byQuic(bench, "quic", { ratePerSecond: calmPerSecond, ...flooded });
  return {
    calm: await calm(),
    attacked: await calm({ floodedPort: bench.servers.quic.quicPort }),
    strayed: await calm({ floodedPort: bench.servers.quic.quicPort, forged: "stray" }),
    besideFlood: await calm({ floodedPort: bench.forged.unreadPort }),
  };
}

async function measureMost(bench: Bench): Promise<Pick<Round, "http" | "quic">> {
  const both = async (kind: Kind) => ({
    http: await mostByHttp(bench, kind),
    quic: await byQuic(bench, kind, { ratePerSecond: 0 }),
  });
  const checked = await both("quic");
  const unchecked = await both("quic-unchecked");
  return {
    http: { quic: checked.http, "quic-unchecked": unchecked.http },
    quic: { quic: checked.quic, "quic-unchecked": unchecked.quic },
  };
}

const rateOf = ({ accepted, seconds }: { readonly accepted: number; readonly seconds: number }) =>
  accepted / seconds;
const cpuUsOf = ({ cpuNs, answered }: { readonly cpuNs: number; readonly answered: number }) =>
  cpuNs / answered / 1e3;
const each = (rounds: readonly Round[], of: (round: Round) => number): Summary =>
  summarise(rounds.map(of));
const mebibytes = (bytes: number) => bytes / 2 ** 20;

const calmNumbers: readonly (readonly [name: string, of: (result: QuicRun) => number])[] = [
  [
    "last packet sent to first byte on the route, p50",
    ({ sentToRouteP50Ns }) => sentToRouteP50Ns / 1e3,
  ],
  [
    "last packet sent to first byte on the route, p99",
    ({ sentToRouteP99Ns }) => sentToRouteP99Ns / 1e3,
  ],
  ["stream to first byte on the route, p50", ({ routeP50Ns }) => routeP50Ns / 1e3],
  ["stream to first byte on the route, p99", ({ routeP99Ns }) => routeP99Ns / 1e3],
  ["response, p50", ({ p50Ns }) => p50Ns / 1e3],
  ["response, p99", ({ p99Ns }) => p99Ns / 1e3],
  ["CPU per answer, both processes", cpuUsOf],
];

const calmRuns = [
  ["quiet", "calm"],
  ["forged first packets", "attacked"],
  ["packets of no connection", "strayed"],
  ["first packets elsewhere", "besideFlood"],
] as const;

interface Idle extends IdleResult {
  /** Processor time that the connections add, in percent of one CPU, of each round. */
  readonly addedPercent: readonly number[];
}

function valuesOf(rounds: readonly Round[], idle: Idle): Record<string, Summary> {
  const values: Record<string, Summary> = {};
  for (const kind of kinds) {
    const name = kind === "quic" ? "" : ", signatures taken on trust";
    values[`QUIC per second${name}`] = each(rounds, ({ quic }) => rateOf(quic[kind]));
    values[`HTTP per second${name}`] = each(rounds, ({ http }) => rateOf(http[kind]));
    values[`QUIC CPU per answer${name}, µs`] = each(rounds, ({ quic }) => cpuUsOf(quic[kind]));
    values[`HTTP CPU per answer${name}, µs`] = each(rounds, ({ http }) => cpuUsOf(http[kind]));
  }
  for (const [name, of] of calmNumbers) {
    for (const [title, run] of calmRuns) {
      values[`${title}: ${name}, µs`] = each(rounds, (round) => of(round[run]));
    }
  }
  values["memory of an idle connection, KiB"] = summarise([
    (idle.beforeBytes - idle.emptyBytes) / idle.connections / 1024,
  ]);
  return values;
}

function lostIn(rounds: readonly Round[]): number {
  const all = rounds.flatMap(({ quic, calm, attacked, strayed, besideFlood }) => [
    calm,
    attacked,
    strayed,
    besideFlood,
    ...Object.values(quic),
  ]);
  return all.reduce((sum, { accepted, arrived }) => sum + Math.max(0, accepted - arrived), 0);
}

function findingsOf(rounds: readonly Round[], idle: Idle): Finding[] {
  const ratio = (kind: Kind): Summary =>
    each(rounds, ({ quic, http }) => rateOf(quic[kind]) / rateOf(http[kind]));
  const atLeast = { unit: "×", bound: "at least", isRatio: true, target: 3 } as const;
  // The kernel has the last byte soon after the call that sends it.
  const routeTime = (of: (calm: QuicRun) => number) => each(rounds, ({ calm }) => of(calm) / 1e3);
  return [
    finding(
      "from the last packet of a stream to the first byte on a route, p50 at 500/s",
      routeTime(({ sentToRouteP50Ns }) => sentToRouteP50Ns),
      { target: 120, unit: "µs" },
    ),
    finding(
      "from the last packet of a stream to the first byte on a route, p99 at 500/s",
      routeTime(({ sentToRouteP99Ns }) => sentToRouteP99Ns),
      { target: 1000, unit: "µs" },
    ),
    finding("submissions accepted over QUIC ÷ over HTTP, per second", ratio("quic"), atLeast),
    finding(
      "submissions over QUIC ÷ over HTTP with signatures taken on trust, per second",
      ratio("quic-unchecked"),
      atLeast,
    ),
    finding(
      `response p99 at 500/s with ${forgedPerSecond / 1000},000 forged first packets a second ÷ quiet`,
      each(rounds, ({ attacked, calm }) => attacked.p99Ns / calm.p99Ns),
      { target: 2, unit: "×", isRatio: true },
    ),
    finding(
      "response p99 at 500/s with the forged packets ÷ with the same packets to an unread socket",
      each(rounds, ({ attacked, besideFlood }) => attacked.p99Ns / besideFlood.p99Ns),
      { target: 2, unit: "×", isRatio: true },
    ),
    finding(
      `response p99 at 500/s with ${forgedPerSecond / 1000},000 packets of no connection a second ÷ with as many packets to an unread socket`,
      each(rounds, ({ strayed, besideFlood }) => strayed.p99Ns / besideFlood.p99Ns),
      { target: 2, unit: "×", isRatio: true },
    ),
    finding("acknowledged over QUIC and not arrived", summarise([lostIn(rounds)]), {
      target: 0,
      unit: "transactions",
    }),
    finding(
      `growth of memory with ${idle.connections} idle connections`,
      summarise([mebibytes(idle.afterBytes - idle.beforeBytes)]),
      { target: 1, unit: "MiB" },
    ),
    finding(
      `processor time that ${idle.connections} idle connections add, share of one CPU`,
      summarise(idle.addedPercent),
      { target: 1, unit: "%" },
    ),
  ];
}

function report(rounds: readonly Round[], idle: Idle): Section {
  const values = valuesOf(rounds, idle);
  const median = (name: string): string => number(values[name]?.median ?? Number.NaN);
  const row = (title: string, suffix: string): string[] => [
    title,
    median(`QUIC per second${suffix}`),
    median(`HTTP per second${suffix}`),
    median(`QUIC CPU per answer${suffix}, µs`),
    median(`HTTP CPU per answer${suffix}, µs`),
  ];
  return {
    name: "quic",
    title: "Submissions over QUIC",
    notes: [
      `The server, the transactions and the partner are those of the gateway's section. ${quicConnections} connections with ` +
        `64 bidirectional streams each submit over QUIC, ${httpConnections} connections over HTTP. Callers and partner run on the ` +
        "same CPUs. The processor time over QUIC contains both processes of the server, without callers.",
      "The time to a route from the stream begins when the caller's stream is due, before it is encrypted and sent. It therefore " +
        "contains the caller's own work, as over HTTP. The time from the last packet begins with the system call that sends it.",
      `Forged packets come from addresses of strangers, ${forgedPerSecond / 1000},000 a second: first packets of handshakes, or packets of ` +
        "connections that do not exist. Their sender uses the same CPUs, so the last column sends first packets to a socket that nobody reads.",
      `${idle.connections} idle connections: ${number(mebibytes(idle.beforeBytes))} MiB resident, without connections ` +
        `${number(mebibytes(idle.emptyBytes))} MiB; measured for ${number(idle.seconds)} s with a keep-alive packet every 25 s. The processor ` +
        `time of both processes without connections, for as long before, is subtracted: ${idle.addedPercent.length} times.`,
    ],
    tables: [
      {
        title: "As fast as answers come",
        columns: ["server", "QUIC, accepted/s", "HTTP, accepted/s", "QUIC CPU, µs", "HTTP CPU, µs"],
        rows: [
          row("gateway", ""),
          row("gateway, signatures taken on trust", ", signatures taken on trust"),
        ],
      },
      {
        title: `Over QUIC at ${calmPerSecond}/s on ${quicConnections} connections, µs`,
        columns: ["value", ...calmRuns.map(([title]) => title)],
        rows: calmNumbers.map(([name]) => [
          name,
          ...calmRuns.map(([title]) => median(`${title}: ${name}, µs`)),
        ]),
      },
    ],
    findings: findingsOf(rounds, idle),
    values,
  };
}

function skipped(problem: string): Section {
  const notes = [`Skipped: ${problem}`];
  return {
    name: "quic",
    title: "Submissions over QUIC",
    notes,
    tables: [],
    findings: [],
    values: {},
  };
}

async function measureIdle({ servers }: Bench, small: boolean): Promise<Idle> {
  const { load, quicPort, pids } = servers.quic;
  const connections = small ? 50 : idleConnections;
  // Every connection sends one keep-alive packet in this time.
  const seconds = small ? 1 : 25;
  const percent = ({ cpuNs, seconds: passed }: IdleResult): number => cpuNs / 1e7 / passed;
  const measureOnce = async (): Promise<Idle> => {
    const none = await load.idle(quicPort, { connections: 0, seconds, pids });
    const idle = await load.idle(quicPort, { connections, seconds, pids });
    return { ...idle, addedPercent: [percent(idle) - percent(none)] };
  };
  const idle = await measureOnce();
  const added = [...idle.addedPercent];
  for (let i = 1; i < (small ? 1 : idleRounds); i++) {
    added.push(...(await measureOnce()).addedPercent);
  }
  return { ...idle, addedPercent: added };
}

/**
 * All rounds at 500/s come first: nothing lands here, so that the other rounds leave tens of thousands of open
 * submissions.
 */
async function measure(bench: Bench, count: number, small: boolean): Promise<Section> {
  if (!small) for (let i = 0; i < 2; i++) await measureCalm(bench); // warm-up for the compiler
  const calmRounds: CalmRound[] = [];
  for (let i = 0; i < count; i++) calmRounds.push(await measureCalm(bench));
  const idle = await measureIdle(bench, small);
  if (!small) await byQuic(bench, "quic-unchecked", { ratePerSecond: 0 }); // warm-up for what follows
  const rounds: Round[] = [];
  for (const calm of calmRounds) rounds.push({ ...calm, ...(await measureMost(bench)) });
  return report(rounds, idle);
}

export async function quicSection(
  program: string,
  { rounds, small }: { rounds: number; small: boolean },
): Promise<Section> {
  const problem = quicheProblem() ?? quicLoadProblem();
  if (problem !== null) return skipped(problem);
  const folder = mkdtempSync(join(tmpdir(), "shredway-bench-"));
  const http = await HttpLoad.open(program);
  const forged = await ForgedPackets.open(folder);
  const started: Server[] = [];
  const open = async (kind: Kind): Promise<Server> => {
    const server = await start(kind, http.sinkPort, folder);
    started.push(server);
    return server;
  };
  try {
    const servers = { quic: await open("quic"), "quic-unchecked": await open("quic-unchecked") };
    const bench = { http, servers, forged, folder, seconds: small ? 0.3 : 2 };
    return await measure(bench, rounds, small);
  } finally {
    http.close();
    forged.close();
    for (const { child, load } of started) {
      load.close();
      child.kill("SIGKILL");
    }
    rmSync(folder, { recursive: true, force: true });
  }
}
