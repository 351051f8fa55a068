// Submissions: rate, cost, latency to a route, and behaviour under overload.
//
// Four servers in their own processes (ours, ours without signature verification, ours with a fixed
// answer, and the plain one of plain-gateway.mjs) get the same signed transactions from the native
// callers, round by round in turn; a bare loop verifies the same signatures. All on loopback.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pubkeyOf } from "../../src/core/primitives.ts";
import { HttpLoad, LineReader, type LoadPlan, type LoadResult } from "../load/http-load.ts";
import { numberOf, textOf } from "../report/lines.ts";
import { type Summary, summarise } from "../report/statistics.ts";
import { micros, number } from "../report/table.ts";
import { finding, type Section } from "./section.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const tipBytes = new Uint8Array(32).fill(5);
const paddingBytes = 300;
const checkThreads = 2;
const connections = 256;
/** More transactions than may wait for their checks. */
const overloadConnections = 6000;

const drivers = ["gateway", "unchecked", "fixed", "plain"] as const;
type Driver = (typeof drivers)[number];
const titles: Readonly<Record<Driver, string>> = {
  gateway: "gateway",
  unchecked: "gateway, signatures taken on trust",
  fixed: "its HTTP server with a fixed answer",
  plain: "node:http and @solana/web3.js",
};
/** About the capacity of each server, so that few signed transactions are wasted. */
const signedPerSecond: Readonly<Record<Driver, number>> = {
  gateway: 20_000,
  unchecked: 30_000,
  fixed: 60_000,
  plain: 2000,
};

interface Server {
  readonly child: ChildProcess;
  readonly target: Pick<LoadPlan, "port" | "pid" | "credential" | "path">;
}

async function start(driver: Driver, sinkPort: number, folder: string): Promise<Server> {
  const words =
    driver === "plain"
      ? [join(root, "bench/baselines/plain-gateway.mjs"), String(sinkPort), pubkeyOf(tipBytes)]
      : [
          "--import",
          "tsx",
          join(root, "bench/load/gateway-process.ts"),
          driver,
          String(sinkPort),
          folder,
        ];
  const child = spawn(process.execPath, words, { cwd: root, stdio: ["pipe", "pipe", "inherit"] });
  const line = await new LineReader(child).next();
  const target = {
    port: numberOf(line, "port"),
    pid: numberOf(line, "pid"),
    credential: textOf(line, "credential"),
    path: "/relay",
  };
  return { child, target };
}

interface Round {
  readonly checksPerSecond: number;
  readonly most: Readonly<Record<Driver, LoadResult>>;
  readonly calm: LoadResult;
}

interface RoundOptions {
  readonly load: HttpLoad;
  readonly servers: Readonly<Record<Driver, Server>>;
  readonly seconds: number;
}

async function most({ load, servers, seconds }: RoundOptions, driver: Driver): Promise<LoadResult> {
  await load.make(Math.ceil(signedPerSecond[driver] * seconds), tipBytes, paddingBytes);
  const plan = { ...servers[driver].target, connections, seconds, ratePerSecond: 0 };
  return load.load(driver, plan);
}

async function calm({ load, servers, seconds }: RoundOptions): Promise<LoadResult> {
  const ratePerSecond = 500;
  await load.make(Math.ceil(ratePerSecond * seconds), tipBytes, paddingBytes);
  const plan = { ...servers.gateway.target, connections: 16, seconds, ratePerSecond };
  return load.load("calm", plan);
}

async function round(options: RoundOptions): Promise<Round> {
  const results = {
    gateway: await most(options, "gateway"),
    unchecked: await most(options, "unchecked"),
    fixed: await most(options, "fixed"),
    plain: await most(options, "plain"),
  };
  await options.load.make(4000, tipBytes, paddingBytes);
  const checksPerSecond = await options.load.checksPerSecond(4000, checkThreads);
  return { checksPerSecond, most: results, calm: await calm(options) };
}

/** Ten times the capacity of the gateway, requested on many connections. */
async function overload(
  { load, servers, seconds }: RoundOptions,
  perSecond: number,
): Promise<LoadResult> {
  const ratePerSecond = 10 * perSecond;
  await load.make(Math.min(150_000, Math.ceil(ratePerSecond * seconds)), tipBytes, paddingBytes);
  const plan = {
    ...servers.gateway.target,
    connections: overloadConnections,
    seconds,
    ratePerSecond,
  };
  return load.load("overload", plan);
}

const perSecond = ({ accepted, answered, seconds }: LoadResult, driver: Driver): number =>
  (driver === "fixed" ? answered : accepted) / seconds;

function report(rounds: readonly Round[], flood: LoadResult): Section {
  const rates = (driver: Driver): Summary =>
    summarise(rounds.map(({ most: results }) => perSecond(results[driver], driver)));
  const ratio = (a: (one: Round) => number, b: (one: Round) => number): Summary =>
    summarise(rounds.map((one) => a(one) / b(one)));
  const rateOf = (driver: Driver) => (one: Round) => perSecond(one.most[driver], driver);
  const checks = summarise(rounds.map(({ checksPerSecond }) => checksPerSecond));
  const toChecks = ratio(rateOf("gateway"), ({ checksPerSecond }) => checksPerSecond);
  const cpuPerAccepted = (driver: Driver) =>
    summarise(rounds.map(({ most: { [driver]: one } }) => one.cpuNs / one.answered));
  const cpuToChecks = ratio(
    ({ checksPerSecond }) => (checkThreads * 1e9) / checksPerSecond,
    ({ most: { gateway } }) => gateway.cpuNs / gateway.accepted,
  );
  const toFixed = ratio(rateOf("unchecked"), rateOf("fixed"));
  const toPlain = ratio(rateOf("gateway"), rateOf("plain"));
  const route = summarise(rounds.map(({ calm: one }) => one.routeP50Ns / 1e3));
  const routeTail = summarise(rounds.map(({ calm: one }) => one.routeP99Ns / 1e3));
  const answered = summarise(rounds.map(({ calm: one }) => one.p50Ns / 1e3));
  const lost = flood.accepted - Math.min(flood.accepted, flood.arrived);
  return {
    name: "gateway",
    title: "Submissions through the gateway",
    notes: [
      `sendTransaction of about ${paddingBytes + 300} bytes, a signature each, ${connections} connections, one ` +
        "SWQoS route to a partner that takes everything (arrays of up to 16 calls), submissions kept in " +
        "SQLite. Callers and partner run on the same CPUs: the rates contain them, the processor time of " +
        "the server's process does not.",
      `Signatures by a bare loop on ${checkThreads} threads: ${number(checks.median)}/s.`,
      `At 500/s the answer came after ${number(answered.median)} µs (p50), the first byte was with the ` +
        `partner after ${number(route.median)} µs (p50), ${number(routeTail.median)} µs (median p99).`,
      `Overload, ten times the rate above for ${number(flood.seconds)} s: ${flood.answered} answers, ` +
        `${flood.accepted} accepted, ${flood.limited} with 429, ${flood.refused} refused otherwise, ` +
        `${flood.broken} connections lost; ${flood.arrived} arrived at the partner.`,
    ],
    tables: [
      {
        title: "As fast as answers come",
        columns: ["server", "answers/s", "CPU per answer, µs"],
        rows: drivers.map((driver) => [
          titles[driver],
          number(rates(driver).median),
          micros(cpuPerAccepted(driver).median),
        ]),
      },
    ],
    findings: [
      finding("submissions accepted ÷ signatures checked by a bare loop, per second", toChecks, {
        target: 0.8,
        unit: "×",
        bound: "at least",
        isRatio: true,
      }),
      finding("processor time of a signature check ÷ that of an accepted submission", cpuToChecks, {
        target: 0.8,
        unit: "×",
        bound: "at least",
        isRatio: true,
      }),
      finding(
        "submissions with signatures taken on trust ÷ fixed answers of the same HTTP server, per second",
        toFixed,
        {
          target: 0.6,
          unit: "×",
          bound: "at least",
          isRatio: true,
        },
      ),
      finding("from the request to the first byte on a route, p50 at 500/s", route, {
        target: 300,
        unit: "µs",
      }),
      finding("overload: acknowledged and not arrived", summarise([lost]), {
        target: 0,
        unit: "transactions",
      }),
      finding(
        "submissions ÷ those of the plain node:http and @solana/web3.js gateway, per second",
        toPlain,
        { target: 1, unit: "×", bound: "at least", isRatio: true },
      ),
    ],
    values: {
      "checks per second": checks,
      ...Object.fromEntries(drivers.map((driver) => [`${driver} per second`, rates(driver)])),
      "first byte on the route, µs": route,
    },
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
    const server = await start(driver, load.sinkPort, join(folder, driver));
    children.push(server.child);
    return server;
  };
  try {
    const servers = {
      gateway: await open("gateway"),
      unchecked: await open("unchecked"),
      fixed: await open("fixed"),
      plain: await open("plain"),
    };
    const options = { load, servers, seconds: small ? 0.5 : 2 };
    await most(options, "gateway"); // warm-up for the compiler
    await most(options, "unchecked");
    const results: Round[] = [];
    for (let i = 0; i < rounds; i++) results.push(await round(options));
    const rate = summarise(results.map(({ most: { gateway } }) => perSecond(gateway, "gateway")));
    return report(results, await overload(options, rate.median));
  } finally {
    load.close();
    for (const child of children) child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}
