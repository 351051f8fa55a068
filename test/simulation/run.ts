// npm run simulate: runs of the whole system from seeds, until one violates an invariant.
//
// Exit code 1: an invariant was violated, or a run differs from its repetition. docs/simulation.md
// describes the simulation and what to do with a seed.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { guarded } from "./guard.ts";
import { faultNames, findFault } from "./planted-faults.ts";
import { drawScenario } from "./quiet-scenario.ts";
import type { RunResult } from "./run-result.ts";
import { describeEvent, drawBusyScenario, type ScenarioEvent } from "./scenario.ts";
import { shrink } from "./shrink.ts";
import { timelineOf } from "./timeline.ts";
import { World } from "./world.ts";

const usage = `npm run simulate -- [options]
  --seed N      first seed (default 1)
  --seeds N     number of seeds (default 1)
  --steps N     busy slots of 400 ms in each run (default 150)
  --busy        no quiet periods between them
  --hours H     run further seeds for H hours
  --trace       print everything that happens
  --html FILE   draw the last run; after a violation, the shortest one that violates the invariant
  --repeat      run each seed twice and compare the runs byte for byte
  --no-shrink   do not look for a shorter list of events
  --faults      find the planted faults instead (all, or NAME …), and print the table`;

/** A planted fault must be found within this number of runs, unless --seeds says otherwise. */
const faultSeeds = 1000;

interface Options {
  readonly firstSeed: number;
  readonly seeds: number;
  readonly slots: number;
  readonly isBusy: boolean;
  /** process.hrtime of the end; undefined: after `seeds`. */
  readonly endNs: bigint | undefined;
  readonly trace: boolean;
  /** Path of the drawing; undefined: none. */
  readonly html: string | undefined;
  readonly repeat: boolean;
  readonly shrinks: boolean;
  /** Names of planted faults to find; null: run the system as it is. */
  readonly faults: readonly string[] | null;
}

function wholeNumber(name: string, text: string, least: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least) return value;
  throw new RangeError(`--${name}: expected an integer of at least ${least}, got ${text}`);
}

/** The page is written after the run, which may take hours. */
function writable(path: string | undefined): string | undefined {
  if (path === undefined) return undefined;
  try {
    writeFileSync(path, "", { flag: "a" });
    return path;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new RangeError(`--html: expected a file that can be written, got ${path} (${reason})`);
  }
}

/** Names of the faults to find; null: none. */
function namesOfFaults(isAsked: boolean, names: readonly string[]): readonly string[] | null {
  const known = faultNames();
  if (!isAsked && names[0] !== undefined)
    throw new RangeError(`expected options only, got ${names[0]}`);
  for (const name of names)
    if (!known.includes(name))
      throw new RangeError(`--faults: expected one of ${known.join(", ")}, got ${name}`);
  if (!isAsked) return null;
  return names.length > 0 ? names : known;
}

function readOptions(): Options {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      seed: { type: "string", default: "1" },
      seeds: { type: "string", default: "1" },
      steps: { type: "string", default: "150" },
      busy: { type: "boolean", default: false },
      hours: { type: "string" },
      trace: { type: "boolean", default: false },
      html: { type: "string" },
      repeat: { type: "boolean", default: false },
      "no-shrink": { type: "boolean", default: false },
      faults: { type: "boolean", default: false },
    },
  });
  const hours = values.hours === undefined ? undefined : Number(values.hours);
  if (hours !== undefined && !(hours > 0))
    throw new RangeError(`--hours: expected a number above 0, got ${values.hours}`);
  return {
    firstSeed: wholeNumber("seed", values.seed, 0),
    seeds: wholeNumber("seeds", values.seeds, 1),
    slots: wholeNumber("steps", values.steps, 1),
    isBusy: values.busy,
    endNs:
      hours === undefined
        ? undefined
        : process.hrtime.bigint() + BigInt(Math.round(hours * 3.6e12)),
    trace: values.trace,
    html: writable(values.html),
    repeat: values.repeat,
    shrinks: !values["no-shrink"],
    faults: namesOfFaults(values.faults, positionals),
  };
}

function summaryOf(seed: number, result: RunResult): string {
  const { digest, packets, sent, sentToCustomers, steps, accepted, landed, taken, simulatedMs } =
    result;
  return (
    `seed ${seed}: ${(simulatedMs / 1000).toFixed(1)} s, ${steps} steps, ${packets} packets, ` +
    `${sent} sent (${sentToCustomers} to customers), ${accepted} submissions (${landed} landed, ${taken} on the fast path), ` +
    `digest ${digest.slice(0, 16)}`
  );
}

interface Run {
  readonly seed: number;
  readonly events: readonly ScenarioEvent[];
  readonly folder: string;
}

/** Draws the run, which happens once more for it. */
async function draw(path: string, { seed, events, folder }: Run): Promise<void> {
  const lines: string[] = [];
  const trace = (line: string): void => void lines.push(line);
  const { violation } = await guarded(() => new World({ seed, events, folder, trace }).run());
  const title = `Simulation of seed ${seed}, ${events.length} events`;
  writeFileSync(path, timelineOf({ title, lines, violation: violation?.message }));
  console.log(`drawn in ${path}`);
}

async function explain(run: Run, options: Options, result: RunResult): Promise<void> {
  const { seed, events, folder } = run;
  console.log(`VIOLATION ${result.violation?.message}`);
  const busy = options.isBusy ? " --busy" : "";
  console.log(
    `repeat it: npm run simulate -- --seed ${seed} --steps ${options.slots}${busy} --trace`,
  );
  if (!options.shrinks) {
    if (options.html !== undefined) await draw(options.html, run);
    return;
  }
  const shrunk = await guarded(() => shrink({ seed, events, folder, result }));
  console.log(
    `${shrunk.events.length} of ${events.length} events suffice (${shrunk.runs} runs): ` +
      `${shrunk.result.violation?.message}`,
  );
  for (const event of shrunk.events) console.log(describeEvent(event));
  if (options.html !== undefined) await draw(options.html, { ...run, events: shrunk.events });
}

/** Returns whether all invariants held. */
async function runSeed(seed: number, options: Options, folder: string): Promise<RunResult | null> {
  const draws = options.isBusy ? drawBusyScenario : drawScenario;
  const events = draws(seed, options.slots);
  const trace = options.trace ? (line: string): void => console.log(line) : undefined;
  const result = await guarded(() => new World({ seed, events, folder, trace }).run());
  console.log(summaryOf(seed, result));
  if (result.violation) {
    await explain({ seed, events, folder }, options, result);
    return null;
  }
  if (options.html !== undefined) await draw(options.html, { seed, events, folder });
  if (!options.repeat) return result;
  const again = await guarded(() => new World({ seed, events, folder }).run());
  if (again.digest === result.digest) return result;
  console.log(`the second run differs: digest ${again.digest.slice(0, 16)}`);
  return null;
}

/** Returns whether all were found. */
function runFaults(names: readonly string[], { seeds, slots, isBusy }: Options): boolean {
  let areFound = true;
  for (const name of names) {
    const most = seeds > 1 ? seeds : faultSeeds;
    const { runs, text } = findFault(name, { seeds: most, slots, isBusy });
    areFound &&= runs !== null;
    console.log(`| ${name} | ${runs ?? "not found"} | ${text} |`);
  }
  return areFound;
}

async function main(): Promise<number> {
  const options = readOptions();
  if (options.faults) return runFaults(options.faults, options) ? 0 : 1;
  // Files of a run never reach a disk, so that no fsync takes real time.
  const folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "shredway-"));
  const beganNs = process.hrtime.bigint();
  const cpuBefore = process.cpuUsage();
  let simulatedMs = 0;
  let quietMs = 0;
  let runs = 0;
  try {
    for (let seed = options.firstSeed; ; seed++) {
      const { endNs, firstSeed, seeds } = options;
      const isOver =
        endNs === undefined ? seed >= firstSeed + seeds : process.hrtime.bigint() >= endNs;
      if (isOver) break;
      const result = await runSeed(seed, options, folder);
      if (!result) return 1;
      simulatedMs += result.simulatedMs;
      quietMs += result.quietMs;
      runs++;
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const tookMs = Number(process.hrtime.bigint() - beganNs) / 1e6;
  const { user, system } = process.cpuUsage(cpuBefore);
  console.log(
    `${runs} runs, no violation: ${(simulatedMs / 1000).toFixed(0)} s simulated ` +
      `(${(quietMs / 1000).toFixed(0)} s in quiet periods), ` +
      `${(simulatedMs / tookMs).toFixed(1)} times real time, ` +
      `${(simulatedMs / ((user + system) / 1000)).toFixed(1)} times processor time`,
  );
  return 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof RangeError) && !(error instanceof TypeError)) throw error;
  console.error(`${error.message}\n\n${usage}`);
  process.exitCode = 2;
}
