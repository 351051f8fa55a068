// npm run soak: the real service under mixed load and faults for a given time, with a verdict.
//
// Ends by itself. Exit code 1: memory or descriptors grow, the feed was interrupted, or something that
// the service acknowledged was lost (report.ts). docs/contributing.md describes a run.

import { setMaxListeners } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { systemClock } from "../../src/core/clock.ts";
import { SeededRandom } from "../../src/core/seeded-random.ts";
import { endOf } from "../../src/tools/terminal/terminal.ts";
import { renderText } from "../report/table.ts";
import { Cluster } from "./cluster.ts";
import { Destinations } from "./destinations.ts";
import { allFaults, FaultSchedule, type StoppableDatabase } from "./faults.ts";
import { Load } from "./load.ts";
import { type SoakResult, soakTables, violations } from "./report.ts";
import { type FeedSample, type ProcessSample, readMetrics, readProcess } from "./samples.ts";
import { fakeTimeLibrary, Service } from "./service.ts";
import { Sockets } from "./sockets.ts";

const usage = `npm run soak -- [options]
  --minutes N      duration of the load (default 5)
  --seed N         seed of the load and of the faults (default 1)
  --rate N         transactions per second (default 20)
  --fault-ms N     mean duration of a fault and of the pause before it (default 8000)
  --postgres       on a PostgreSQL server that is frozen and killed, instead of SQLite
  --clock-jumps    also move the wall clock of the service (Debian's package faketime)
  --program FILE   compiled command line (default dist/tools/shredway.js)`;

interface Options {
  /** Files of the run: configuration, data, log of the service. */
  readonly folder: string;
  readonly seconds: number;
  readonly seed: number;
  readonly rate: number;
  readonly faultMs: number;
  readonly postgres: boolean;
  readonly clockJumps: boolean;
  readonly program: string;
}

const sampleMs = 1000;
const progressSeconds = 60;
/** A transaction expires within about a minute; a registration is settled a little later. */
const endMsMax = 240_000;
/** A pair is submitted again after this many half seconds. */
const repeatTurns = 20;
const quietMs = 1000;
const defaultProgram = fileURLToPath(new URL("../../dist/tools/shredway.js", import.meta.url));

function readOptions(): Options | null {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: "5" },
      seed: { type: "string", default: "1" },
      rate: { type: "string", default: "20" },
      "fault-ms": { type: "string", default: "8000" },
      postgres: { type: "boolean", default: false },
      "clock-jumps": { type: "boolean", default: false },
      program: { type: "string", default: defaultProgram },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return null;
  const positive = (name: "minutes" | "seed" | "rate" | "fault-ms"): number => {
    const value = Number(values[name]);
    if (value > 0 && Number.isFinite(value)) return value;
    throw new Error(`--${name}: expected a number above 0, got ${values[name]}`);
  };
  if (!existsSync(values.program)) {
    throw new Error(`--program: no file ${values.program}; run npm run compile`);
  }
  if (values["clock-jumps"] && !existsSync(fakeTimeLibrary)) {
    throw new Error(`--clock-jumps: no file ${fakeTimeLibrary}; run apt-get install faketime`);
  }
  return {
    folder: mkdtempSync(join(tmpdir(), "shredway-soak-")),
    seconds: positive("minutes") * 60,
    seed: positive("seed"),
    rate: positive("rate"),
    faultMs: positive("fault-ms"),
    postgres: values.postgres,
    clockJumps: values["clock-jumps"],
    program: values.program,
  };
}

interface Database extends StoppableDatabase {
  readonly folder: string;
  url(): string;
  remove(): Promise<void>;
}

async function openDatabase(): Promise<Database> {
  process.env["SHREDWAY_TESTS"] = "all"; // otherwise the module does not look for the server's programs
  const { PostgresServer, postgresPrograms } = await import(
    "../../test/support/postgres/postgres.ts"
  );
  if (postgresPrograms === null) {
    throw new Error("--postgres: no PostgreSQL server; run apt-get install postgresql");
  }
  return PostgresServer.start();
}

interface SoakContext {
  readonly options: Options;
  readonly cluster: Cluster;
  readonly service: Service;
  readonly destinations: Destinations;
  readonly load: Load;
  readonly sockets: Sockets;
  readonly faults: FaultSchedule;
}

function progress({ load, faults }: SoakContext, seconds: number, rssBytes: number): void {
  const { submissions, registrations } = load;
  console.error(
    `${Math.round(seconds)} s: ${Math.round(rssBytes / 2 ** 20)} MiB, ` +
      `${submissions.acknowledged} transactions acknowledged, ${submissions.open} open, ` +
      `${registrations.acknowledged} registrations, ${registrations.open} pending, fault: ${faults.current}`,
  );
}

/** Samples until the signal aborts. */
async function sample(context: SoakContext, stopped: AbortSignal) {
  const { service, cluster, destinations, faults } = context;
  const processSamples: ProcessSample[] = [];
  const feedSamples: FeedSample[] = [];
  const beginMs = performance.now();
  let nextProgress = progressSeconds;
  while (!stopped.aborted) {
    await systemClock.sleep(sampleMs, stopped);
    const seconds = (performance.now() - beginMs) / 1000;
    const { sent } = await cluster.count();
    const received = new Map(destinations.counts().map((each) => [each.name, each.received]));
    feedSamples.push({ seconds, sent, received, fault: faults.current });
    const facts = readProcess(service.pid);
    if (facts === null || service.exit !== null) break;
    const heapBytes = (await readMetrics(service.url))?.get("nodejs_heap_size_used_bytes") ?? null;
    processSamples.push({ seconds, ...facts, heapBytes });
    if (seconds >= nextProgress) {
      nextProgress += progressSeconds;
      progress(context, seconds, facts.rssBytes);
    }
  }
  return { processSamples, feedSamples };
}

/** Waits until everything that was acknowledged has ended, or the time is over. */
async function awaitEnds({ load, service }: SoakContext): Promise<void> {
  const untilMs = performance.now() + endMsMax;
  const isOver = () =>
    load.counts.underWay === 0 && load.submissions.open + load.registrations.open === 0;
  console.error(`waiting for ${load.submissions.open + load.registrations.open} ends`);
  for (let turn = 0; !isOver() && performance.now() < untilMs && service.exit === null; turn++) {
    await systemClock.sleep(500);
    await load.settle();
    if (turn % repeatTurns === repeatTurns - 1) await load.repeatPair();
  }
}

/** Pauses the sources, and counts when no shred is on its way. */
async function quietCounts({ cluster, destinations, service }: SoakContext) {
  await cluster.do({ do: "pause" });
  const sum = () => destinations.counts().reduce((total, { received }) => total + received, 0);
  for (let before = -1; before !== sum(); ) {
    before = sum();
    await systemClock.sleep(quietMs);
  }
  const metrics = await readMetrics(service.url);
  const drops = metrics?.get("shredway_relay_receive_drops_total") ?? 0;
  const verdicts = new Map(
    [...(metrics ?? [])].flatMap(([name, count]): [string, number][] => {
      const verdict = /^shredway_relay_packets_total\{verdict="(\w+)"\}$/.exec(name)?.[1];
      return verdict === undefined || count === 0 ? [] : [[verdict, count]];
    }),
  );
  return {
    verdicts,
    sent: (await cluster.count()).sent,
    drops,
    destinations: destinations.counts(),
  };
}

async function runLoad(
  context: SoakContext,
  interrupted: AbortSignal,
): Promise<Omit<SoakResult, "exit">> {
  const { options, load, sockets, faults, service, destinations } = context;
  await load.prepare();
  await destinations.addAccountDestination(load.client);
  while (destinations.counts().at(-1)?.received === 0) await systemClock.sleep(50);
  const since = await quietCounts(context);
  await context.cluster.do({ do: "resume" });

  const beginMs = performance.now();
  const ending = endOf(interrupted, options.seconds);
  setMaxListeners(0, ending); // each pause of the load listens
  const [samples] = await Promise.all([
    sample(context, ending),
    load.run(ending),
    sockets.run(ending),
    faults.run(ending),
  ]);
  const seconds = (performance.now() - beginMs) / 1000;
  const unexpectedExit = service.exit;
  if (unexpectedExit === null) await awaitEnds(context);
  const end = await quietCounts(context);
  const feeds = end.destinations.map((counts, i) => ({
    name: counts.name,
    sent: end.sent - since.sent,
    received: counts.received - (since.destinations[i]?.received ?? 0),
    duplicates: counts.duplicates,
    kernelDrops: counts.kernelDrops + end.drops,
  }));
  return {
    ...samples,
    seconds,
    feeds,
    verdicts: end.verdicts,
    calls: load.counts.kinds,
    sockets: sockets.counts,
    ledgers: new Map([
      ["transactions", load.submissions],
      ["registrations", load.registrations],
    ]),
    faults: faults.begun,
    leftOut: leftOut(context),
    unexpectedExit,
  };
}

function leftOut({ options, service }: SoakContext): string[] {
  return [
    ...(service.canFillDisk || options.postgres ? [] : ["disk full: needs root, for a tmpfs"]),
    ...(options.postgres ? [] : ["database away: --postgres"]),
    ...(options.clockJumps ? [] : ["clock jumps: --clock-jumps"]),
  ];
}

async function soak(options: Options, interrupted: AbortSignal): Promise<SoakResult> {
  const { folder } = options;
  const cluster = await Cluster.open(folder);
  const destinations = new Destinations();
  let database: Database | undefined;
  let service: Service | undefined;
  try {
    database = options.postgres ? await openDatabase() : undefined;
    const { program, clockJumps, seed, rate } = options;
    service = await Service.start({
      folder,
      program,
      cluster: cluster.ready,
      destinations: destinations.fixed,
      postgres: database?.url(),
      clockJumps,
    });
    await cluster.do({ do: "feed", to: service.relayAddress });
    const { url, apiKey } = service;
    const load = new Load({ url, apiKey, cluster: cluster.ready, rate, seed });
    const sockets = new Sockets({ url, apiKey, seed });
    const random = new SeededRandom(seed);
    const list = allFaults(cluster, service, { database, clockJumps });
    const faults = new FaultSchedule(list, { random, meanMs: options.faultMs });
    const context = { options, cluster, service, destinations, load, sockets, faults };
    const result = await runLoad(context, interrupted);
    return { ...result, exit: await service.stop() };
  } finally {
    service?.kill();
    service?.removeDisk();
    await database?.remove();
    destinations.close();
    cluster.close();
  }
}

async function main(): Promise<number> {
  const options = readOptions();
  if (options === null) {
    console.log(usage);
    return 0;
  }
  const interrupting = new AbortController();
  process.once("SIGINT", () => interrupting.abort());
  process.once("SIGTERM", () => interrupting.abort());
  const result = await soak(options, interrupting.signal);
  const { seed, rate } = options;
  console.log(`Soak, ${Math.round(result.seconds)} s, seed ${seed}, ${rate} transactions/s`);
  for (const table of soakTables(result)) console.log(`\n${renderText(table)}`);
  for (const each of result.leftOut) console.log(`\nleft out: ${each}`);
  const found = violations(result);
  if (found.length === 0) {
    console.log("\nResult: passed");
    rmSync(options.folder, { recursive: true, force: true });
    return 0;
  }
  console.log(`\nResult: FAILED (log of the service: ${join(options.folder, "log")})`);
  for (const each of found) console.log(`  ${each}`);
  return 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`soak: ${error instanceof Error ? error.message : String(error)}\n${usage}`);
  process.exitCode = 1;
}
process.exit();
