// Submissions: rate, cost, latency to a route, and behaviour under overload.
//
// Six servers in their own processes (ours, ours without signature verification, ours with a fixed
// answer, the plain one of plain-gateway.mjs, and two proxies that check nothing, with undici and
// native) get the same signed transactions from the native callers, round by round in turn; a bare loop
// verifies the same signatures. All on loopback.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pubkeyOf } from "../../src/core/primitives.ts";
import { HttpLoad, LineReader, type LoadPlan, type LoadResult } from "../load/http-load.ts";
import { serviceArguments } from "../load/service-arguments.ts";
import { numberOf, textOf } from "../report/lines.ts";
import { type Summary, summarise } from "../report/statistics.ts";
import { number } from "../report/table.ts";
import { type Finding, finding, type Section } from "./section.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const tipBytes = new Uint8Array(32).fill(5);
const paddingBytes = 300;
const checkThreads = 2;
const connections = 256;
/** More transactions than may wait for their checks. */
const overloadConnections = 6000;

const drivers = ["gateway", "unchecked", "fixed", "plain", "undici", "proxy"] as const;
type Driver = (typeof drivers)[number];
const titles: Readonly<Record<Driver, string>> = {
  gateway: "gateway",
  unchecked: "gateway, signatures taken on trust",
  fixed: "its HTTP server with a fixed answer",
  plain: "node:http and @solana/web3.js",
  undici: "node:http and undici: copies the body, checks nothing",
  proxy: "C++: copies the body, checks nothing",
};
/** About the capacity of each server, so that few signed transactions are wasted. */
const signedPerSecond: Readonly<Record<Driver, number>> = {
  gateway: 20_000,
  unchecked: 30_000,
  fixed: 60_000,
  plain: 2000,
  undici: 30_000,
  proxy: 80_000,
};

interface Server {
  readonly child: ChildProcess;
  readonly target: Pick<LoadPlan, "port" | "pid" | "credential" | "path">;
}

interface StartOptions {
  /** The native program. */
  readonly program: string;
  readonly sinkPort: number;
  readonly folder: string;
}

async function startProxy({ program, sinkPort }: StartOptions): Promise<Server> {
  const child = spawn(program, ["http_proxy", "--loopback"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdin.write(`${sinkPort}\n`);
  const lines = new LineReader(child);
  await lines.next(); // every scenario prints these lines about the machine
  const line = await lines.next();
  const [port, pid] = [numberOf(line, "port"), numberOf(line, "pid")];
  return { child, target: { port, pid, credential: "", path: "/" } };
}

/** The arguments of Node.js for a server in JavaScript. */
function wordsOf(driver: Exclude<Driver, "proxy">, { sinkPort, folder }: StartOptions): string[] {
  const port = String(sinkPort);
  if (driver === "plain")
    return [join(root, "bench/baselines/plain-gateway.mjs"), port, pubkeyOf(tipBytes)];
  if (driver === "undici") return [join(root, "bench/baselines/undici-proxy.mjs"), port];
  return [...serviceArguments, join(root, "bench/load/gateway-process.ts"), driver, port, folder];
}

async function start(driver: Driver, options: StartOptions): Promise<Server> {
  if (driver === "proxy") return startProxy(options);
  const child = spawn(process.execPath, wordsOf(driver, options), {
    cwd: root,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const line = await new LineReader(child).next();
  const target = {
    port: numberOf(line, "port"),
    pid: numberOf(line, "pid"),
    credential: textOf(line, "credential"),
    path: "/relay",
  };
  return { child, target };
}

const calmDrivers = ["gateway", "unchecked", "undici", "proxy"] as const;
type CalmDriver = (typeof calmDrivers)[number];

interface Round {
  readonly checksPerSecond: number;
  readonly most: Readonly<Record<Driver, LoadResult>>;
  /** At 500/s. */
  readonly calm: Readonly<Record<CalmDriver, LoadResult>>;
}

interface RoundOptions {
  readonly load: HttpLoad;
  readonly servers: Readonly<Record<Driver, Server>>;
  readonly seconds: number;
  /** Whether rounds before the first one warm up the compilers. */
  readonly warmsUp: boolean;
}

async function most({ load, servers, seconds }: RoundOptions, driver: Driver): Promise<LoadResult> {
  await load.make(Math.ceil(signedPerSecond[driver] * seconds), tipBytes, paddingBytes);
  const plan = { ...servers[driver].target, connections, seconds, ratePerSecond: 0 };
  return load.load(driver, plan);
}

async function calm(
  { load, servers, seconds }: RoundOptions,
  driver: CalmDriver,
): Promise<LoadResult> {
  const ratePerSecond = 500;
  await load.make(Math.ceil(ratePerSecond * seconds), tipBytes, paddingBytes);
  const plan = { ...servers[driver].target, connections: 16, seconds, ratePerSecond };
  return load.load("calm", plan);
}

async function measureCalm(options: RoundOptions): Promise<Round["calm"]> {
  return {
    gateway: await calm(options, "gateway"),
    unchecked: await calm(options, "unchecked"),
    undici: await calm(options, "undici"),
    proxy: await calm(options, "proxy"),
  };
}

async function measureMost(options: RoundOptions): Promise<Omit<Round, "calm">> {
  const results = {
    gateway: await most(options, "gateway"),
    unchecked: await most(options, "unchecked"),
    fixed: await most(options, "fixed"),
    plain: await most(options, "plain"),
    undici: await most(options, "undici"),
    proxy: await most(options, "proxy"),
  };
  await options.load.make(4000, tipBytes, paddingBytes);
  const checksPerSecond = await options.load.checksPerSecond(4000, checkThreads);
  return { checksPerSecond, most: results };
}

/**
 * All rounds at 500/s come first: nothing lands here, so that the other rounds leave tens of thousands of open
 * submissions, which no gateway has at this rate.
 */
async function measureRounds(options: RoundOptions, count: number): Promise<Round[]> {
  if (options.warmsUp) for (let i = 0; i < 2; i++) await measureCalm(options);
  const calmRounds: Round["calm"][] = [];
  for (let i = 0; i < count; i++) calmRounds.push(await measureCalm(options));
  if (options.warmsUp)
    for (const driver of ["gateway", "unchecked", "undici"] as const) await most(options, driver);
  const rounds: Round[] = [];
  for (const one of calmRounds) rounds.push({ ...(await measureMost(options)), calm: one });
  return rounds;
}

type Floods = Readonly<Record<"gateway" | "proxy", LoadResult>>;

/** Ten times the capacity of the gateway, requested on many connections, from it and from the bare proxy. */
async function overload(
  { load, servers, seconds: roundSeconds }: RoundOptions,
  perSecond: number,
): Promise<Floods> {
  const seconds = 5 * roundSeconds;
  const ratePerSecond = 10 * perSecond;
  const count = Math.min(150_000, Math.ceil(ratePerSecond * seconds));
  const flood = async (driver: keyof Floods): Promise<LoadResult> => {
    await load.make(count, tipBytes, paddingBytes);
    const { target } = servers[driver];
    const plan = { ...target, connections: overloadConnections, seconds, ratePerSecond };
    return load.load("overload", plan);
  };
  return { gateway: await flood("gateway"), proxy: await flood("proxy") };
}

const perSecond = ({ accepted, answered, seconds }: LoadResult, driver: Driver): number =>
  (driver === "fixed" ? answered : accepted) / seconds;

/** A summary of one number of each round. */
function each(rounds: readonly Round[], of: (round: Round) => number): Summary {
  return summarise(rounds.map(of));
}

const rateOf = (driver: Driver) => (round: Round) => perSecond(round.most[driver], driver);
const cpuUsOf = ({ cpuNs, answered }: LoadResult): number => cpuNs / answered / 1e3;

/** The numbers at 500/s, in µs. */
const calmNumbers: readonly (readonly [name: string, of: (result: LoadResult) => number])[] = [
  ["written request to first byte on the route, p50", ({ writtenToRouteP50Ns: ns }) => ns / 1e3],
  ["written request to first byte on the route, p99", ({ writtenToRouteP99Ns: ns }) => ns / 1e3],
  ["due request to first byte on the route, p50", ({ routeP50Ns }) => routeP50Ns / 1e3],
  ["due request to first byte on the route, p99", ({ routeP99Ns }) => routeP99Ns / 1e3],
  ["response, p50", ({ p50Ns }) => p50Ns / 1e3],
  ["response, p99", ({ p99Ns }) => p99Ns / 1e3],
  ["CPU per answer", cpuUsOf],
];

function valuesOf(rounds: readonly Round[]): Record<string, Summary> {
  const values: Record<string, Summary> = {
    "checks per second": each(rounds, ({ checksPerSecond }) => checksPerSecond),
  };
  for (const driver of drivers) {
    values[`${driver} per second`] = each(rounds, rateOf(driver));
    values[`${driver} CPU per answer, µs`] = each(rounds, ({ most: all }) => cpuUsOf(all[driver]));
  }
  for (const driver of calmDrivers) {
    for (const [name, of] of calmNumbers) {
      values[`${driver} at 500/s: ${name}, µs`] = each(rounds, ({ calm: all }) => of(all[driver]));
    }
  }
  return values;
}

/** The part of the overload that the gateway accepted, against the quiet rounds. */
function overloadFindings(rounds: readonly Round[], flood: LoadResult): Finding[] {
  const lost = flood.accepted - Math.min(flood.accepted, flood.arrived);
  return [
    finding("overload: acknowledged and not arrived", summarise([lost]), {
      target: 0,
      unit: "transactions",
    }),
    finding(
      "overload: from the written request to the first byte on a route, p99 ÷ the p99 at 500/s",
      each(
        rounds,
        ({ calm: { gateway } }) => flood.writtenToRouteP99Ns / gateway.writtenToRouteP99Ns,
      ),
      { target: 3, unit: "×", isRatio: true },
    ),
  ];
}

function findingsOf(rounds: readonly Round[], flood: LoadResult): Finding[] {
  const ratio = (a: (one: Round) => number, b: (one: Round) => number): Summary =>
    each(rounds, (one) => a(one) / b(one));
  const calmOf = (of: (result: LoadResult) => number): Summary =>
    each(rounds, ({ calm: { gateway } }) => of(gateway));
  const atLeast = { unit: "×", bound: "at least", isRatio: true } as const;
  const atMost = (target: number) => ({ target, unit: "µs" });
  return [
    finding(
      "submissions accepted ÷ signatures checked by a bare loop, per second",
      ratio(rateOf("gateway"), ({ checksPerSecond }) => checksPerSecond),
      { target: 0.7, ...atLeast },
    ),
    finding(
      "submissions with signatures taken on trust ÷ fixed answers of the same HTTP server, per second",
      ratio(rateOf("unchecked"), rateOf("fixed")),
      { target: 0.5, ...atLeast },
    ),
    finding(
      "processor time per accepted submission",
      each(rounds, ({ most: { gateway } }) => gateway.cpuNs / gateway.accepted / 1e3),
      atMost(90),
    ),
    finding(
      "from the written request to the first byte on a route, p50 at 500/s",
      calmOf(({ writtenToRouteP50Ns }) => writtenToRouteP50Ns / 1e3),
      atMost(150),
    ),
    finding(
      "from the written request to the first byte on a route, p99 at 500/s",
      calmOf(({ writtenToRouteP99Ns }) => writtenToRouteP99Ns / 1e3),
      atMost(1000),
    ),
    finding(
      "response to the caller, p50 at 500/s",
      calmOf(({ p50Ns }) => p50Ns / 1e3),
      atMost(400),
    ),
    finding(
      "response to the caller, p99 at 500/s",
      calmOf(({ p99Ns }) => p99Ns / 1e3),
      atMost(3000),
    ),
    ...overloadFindings(rounds, flood),
    finding(
      "submissions ÷ those of the plain node:http and @solana/web3.js gateway, per second",
      ratio(rateOf("gateway"), rateOf("plain")),
      { target: 1, ...atLeast },
    ),
  ];
}

const routeTimesOf = ({ writtenToRouteP50Ns, writtenToRouteP99Ns }: LoadResult): string =>
  `p50 ${number(writtenToRouteP50Ns / 1e3)} µs and p99 ${number(writtenToRouteP99Ns / 1e3)} µs after ` +
  "the request was written";

function report(rounds: readonly Round[], { gateway: flood, proxy }: Floods): Section {
  const values = valuesOf(rounds);
  const median = (name: string): number => values[name]?.median ?? Number.NaN;
  return {
    name: "gateway",
    title: "Submissions through the gateway",
    notes: [
      `sendTransaction of about ${paddingBytes + 300} bytes, a signature each, ${connections} connections, one ` +
        "SWQoS route to a partner that takes everything (arrays of up to 16 calls), submissions kept in " +
        "SQLite. Callers and partner run on the same CPUs: the rates contain them, the processor time of " +
        "the server's process does not.",
      "A request is written when its caller begins to pass it to the kernel. It is due before: the caller " +
        "shares the CPUs and may be late.",
      `Signatures by a bare loop on ${checkThreads} threads: ${number(median("checks per second"))}/s.`,
      `The server accepts ${overloadConnections} connections before the overload begins. ` +
        `Overload, ten times the rate above for ${number(flood.seconds)} s: ${flood.answered} answers, ` +
        `${flood.accepted} accepted, ${flood.limited} with 429, ${flood.refused} refused otherwise, ` +
        `${flood.broken} connections lost. ${flood.arrived} arrived at the partner, ${routeTimesOf(flood)}, ` +
        `p99 ${number(flood.routeP99Ns / 1e3)} µs after it was due: callers wait for a free connection. ` +
        `The same load on the proxy in C++, which refuses nothing: ${proxy.accepted} accepted, ${routeTimesOf(proxy)}.`,
    ],
    tables: [
      {
        title: "As fast as answers come",
        columns: ["server", "answers/s", "CPU per answer, µs"],
        rows: drivers.map((driver) => [
          titles[driver],
          number(median(`${driver} per second`)),
          number(median(`${driver} CPU per answer, µs`)),
        ]),
      },
      {
        title: "At 500/s on 16 connections, µs",
        columns: ["value", ...calmDrivers.map((driver) => titles[driver])],
        rows: calmNumbers.map(([name]) => [
          name,
          ...calmDrivers.map((driver) => number(median(`${driver} at 500/s: ${name}, µs`))),
        ]),
      },
    ],
    findings: findingsOf(rounds, flood),
    values,
  };
}

export async function gatewaySection(
  program: string,
  { rounds, small }: { rounds: number; small: boolean },
): Promise<Section> {
  const folder = mkdtempSync(join(tmpdir(), "shredway-bench-"));
  const load = await HttpLoad.open(program);
  const children: ChildProcess[] = [];
  const open = async (driver: Driver): Promise<Server> => {
    const server = await start(driver, {
      program,
      sinkPort: load.sinkPort,
      folder: join(folder, driver),
    });
    children.push(server.child);
    return server;
  };
  try {
    const servers = {
      gateway: await open("gateway"),
      unchecked: await open("unchecked"),
      fixed: await open("fixed"),
      plain: await open("plain"),
      undici: await open("undici"),
      proxy: await open("proxy"),
    };
    const options = { load, servers, seconds: small ? 0.3 : 2, warmsUp: !small };
    const results = await measureRounds(options, rounds);
    const rate = summarise(results.map(({ most: { gateway } }) => perSecond(gateway, "gateway")));
    return report(results, await overload(options, rate.median));
  } finally {
    load.close();
    for (const child of children) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}
