// npm run bench: measures everything that this project claims about speed.
//
// Builds the native half, runs the scenarios one after the other and prints one report;
// docs/benchmarks.md explains it. It needs no privilege. Without the permission to create a network
// namespace, the costs of sending are not comparable, and the report says so.

import { parseArgs } from "node:util";
import type { BenchPart } from "../src/tools/commands/bench.ts";
import { compareWithCommit } from "./against.ts";
import { buildNativeProgram, findProgram, runScenario } from "./load/native-program.ts";
import { findRelayPeers, peerWords } from "./load/relay-peers.ts";
import { microSection } from "./micro.ts";
import { numbersPart, writeDocuments } from "./report/documents.ts";
import { type Line, numberOf, ofKind, textOf } from "./report/lines.ts";
import { describeMachine } from "./report/machine.ts";
import { judgedRoundsMin, noiseIndex } from "./report/statistics.ts";
import {
  commitOfCode,
  factsOf,
  type Report,
  readStoredReport,
  withRun,
  writeStoredReport,
} from "./report/stored-report.ts";
import { renderText } from "./report/table.ts";
import { attacksSection } from "./sections/attacks-section.ts";
import { costSection } from "./sections/cost-section.ts";
import { besideSection, handOverSection } from "./sections/deshred-overhead-section.ts";
import { deshredSection, recoverySection } from "./sections/deshred-section.ts";
import { dividedSection } from "./sections/divided-section.ts";
import { gatewaySection } from "./sections/gateway-section.ts";
import { landingsSection } from "./sections/landing-section.ts";
import { latencySection, rateSection } from "./sections/latency-section.ts";
import { loopSection } from "./sections/loop-section.ts";
import { peerSection } from "./sections/peer-section.ts";
import { peersSection } from "./sections/peers-section.ts";
import { quicSection } from "./sections/quic-section.ts";
import { receiveSection } from "./sections/receive-section.ts";
import { regionsSection } from "./sections/regions-section.ts";
import { findingText, type Section, verdictsText } from "./sections/section.ts";
import { shredsSection } from "./sections/shreds-section.ts";
import { stepsSection, workerSection } from "./sections/steps-section.ts";
import { streamsSection } from "./sections/streams-section.ts";
import { tpuSection } from "./sections/tpu-section.ts";
import { transmitSection } from "./sections/transmit-section.ts";

interface Scenario {
  readonly name: BenchPart;
  /** Scenario of the native program; absent: the section drives the program itself. */
  readonly native?: string;
  readonly timeoutMs: number;
  /** Further options of the native program. */
  readonly words?: () => readonly string[];
  /** Takes long: the full form runs only if it is named. */
  readonly onlyNamed?: boolean;
  readonly section: (
    lines: readonly Line[],
    small: boolean,
    run: { readonly program: string; readonly rounds: number },
  ) => Section | Promise<Section>;
}

const scenarios: readonly Scenario[] = [
  { name: "steps", native: "steps", timeoutMs: 60_000, section: stepsSection },
  { name: "worker", native: "worker", timeoutMs: 120_000, section: workerSection },
  { name: "cost", native: "cost", timeoutMs: 600_000, section: costSection },
  { name: "latency", native: "latency", timeoutMs: 300_000, section: latencySection },
  { name: "rate", native: "rate", timeoutMs: 300_000, section: rateSection },
  { name: "transmit", native: "transmit", timeoutMs: 900_000, section: transmitSection },
  { name: "receive", native: "receive", timeoutMs: 120_000, section: receiveSection },
  { name: "divided", native: "divided", timeoutMs: 300_000, section: dividedSection },
  { name: "recovery", native: "recovery", timeoutMs: 60_000, section: recoverySection },
  { name: "deshred", native: "deshred", timeoutMs: 120_000, section: deshredSection },
  { name: "hand-over", native: "hand_over", timeoutMs: 120_000, section: handOverSection },
  { name: "beside", native: "beside", timeoutMs: 300_000, section: besideSection },
  { name: "landings", native: "landings", timeoutMs: 300_000, section: landingsSection },
  { name: "attacks", native: "attacks", timeoutMs: 600_000, section: attacksSection },
  {
    name: "gateway",
    timeoutMs: 300_000,
    section: (_, small, { program, rounds }) => gatewaySection(program, { rounds, small }),
  },
  {
    name: "quic",
    timeoutMs: 300_000,
    section: (_, small, { program, rounds }) => quicSection(program, { rounds, small }),
  },
  {
    name: "shreds",
    timeoutMs: 900_000,
    section: (_, small, { rounds }) => shredsSection({ rounds, small }),
  },
  {
    name: "tpu",
    timeoutMs: 300_000,
    section: (_, small, { rounds }) => tpuSection({ rounds, small }),
  },
  {
    name: "peer",
    timeoutMs: 300_000,
    section: (_, small, { program, rounds }) => peerSection(program, { rounds, small }),
  },
  {
    name: "peers",
    native: "peers",
    timeoutMs: 7_200_000,
    words: () => peerWords(findRelayPeers().peers),
    onlyNamed: true,
    section: (lines) => peersSection(lines, findRelayPeers().missing),
  },
  {
    name: "loop",
    timeoutMs: 300_000,
    section: (_, small, { rounds }) => loopSection({ rounds, small }),
  },
  {
    name: "streams",
    native: "stream_filters",
    timeoutMs: 60_000,
    section: (lines, small, { rounds }) => streamsSection(lines, { rounds, small }),
  },
  {
    name: "regions",
    timeoutMs: 300_000,
    section: (_, small, { rounds }) => regionsSection({ rounds, small }),
  },
  { name: "micro", native: "sample", timeoutMs: 10_000, section: microSection },
];

const usage = `npm run bench -- [NAME…] [options]
  NAME             the same as --only NAME
  --only NAME      one of ${scenarios.map(({ name }) => name).join(", ")}; may be repeated
  --small          everything once or twice (for CI): a smoke test, not a measurement
  --rounds N       rounds of each measurement, 1 to 1000 (default 7, small 2)
  --json           the whole report as JSON
  --markdown       the report as Markdown
  --report         the report into bench/results/latest.json, and from there into docs/benchmarks.md,
                   docs/performance.md, docs/transmit.md, docs/security.md and docs/proof.md; sections that did not run
                   stay as they are
  --documents      measures nothing: these documents again, from what is kept
  --loopback       no network namespace, even when one could be had
  --program PATH   this shredway_bench instead of building one
  --against COMMIT builds another commit in a temporary folder, measures both in turn and prints ratios`;

interface Options {
  readonly only: readonly string[];
  readonly small: boolean;
  readonly rounds: number;
  readonly format: "text" | "json" | "markdown";
  readonly loopback: boolean;
  readonly report: boolean;
  readonly documents: boolean;
  readonly program: string | undefined;
  readonly against: string | undefined;
}

function readOptions(): Options {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      only: { type: "string", multiple: true, default: [] },
      small: { type: "boolean", default: false },
      rounds: { type: "string" },
      json: { type: "boolean", default: false },
      markdown: { type: "boolean", default: false },
      loopback: { type: "boolean", default: false },
      report: { type: "boolean", default: false },
      documents: { type: "boolean", default: false },
      program: { type: "string" },
      against: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    process.exit(0);
  }
  const rounds = Number(values.rounds ?? (values.small ? 2 : 7));
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > 1000) {
    throw new Error(`--rounds: expected a number from 1 to 1000, got ${values.rounds}`);
  }
  const only = [...values.only, ...positionals];
  const unknown = only.find((name) => !scenarios.some((scenario) => scenario.name === name));
  if (unknown !== undefined) {
    const names = scenarios.map(({ name }) => name).join(", ");
    throw new Error(`--only: expected one of ${names}; got ${unknown}`);
  }
  if (values.report && values.small) {
    throw new Error("--report: expected a full measurement, got --small; run it without --small");
  }
  const format = values.json ? "json" : values.markdown ? "markdown" : "text";
  const { small, loopback, report, documents, program, against } = values;
  return { only, small, rounds, format, loopback, report, documents, program, against };
}

function heading(report: Report): string[] {
  return [
    ...factsOf(report).map((fact) => `${fact}.`),
    `Medians of ${report.rounds} interleaved rounds, quartiles in brackets, processor time unless said otherwise.`,
  ];
}

function renderReport(report: Report): string {
  const parts = [`Shredway bench, ${report.takenAt}`, ...heading(report)];
  for (const section of report.sections) {
    parts.push("", `== ${section.title} ==`);
    for (const table of section.tables) parts.push("", renderText(table));
    if (section.notes.length > 0) parts.push("", ...section.notes.map((note) => `  ${note}`));
  }
  const findings = report.sections.flatMap((section) => section.findings);
  if (findings.length > 0) {
    parts.push("", `== Targets: ${verdictsText(findings)} ==`, "");
    parts.push(...findings.map((found) => `  ${findingText(found)}`));
    parts.push(
      "",
      "  met / missed: the whole interval between the quartiles meets / misses the target.",
      `  inconclusive: the interval contains the target, or a ratio meets it in fewer than ${judgedRoundsMin} rounds.`,
    );
  }
  return parts.join("\n");
}

const order = scenarios.map(({ name }) => name);

function renderDocument(report: Report): string {
  const commit = commitOfCode();
  return numbersPart(withRun({ runs: [], sections: [] }, report, { commit, order }));
}

/** Stores the report and generates the documents from it. */
function storeReport(report: Report): void {
  writeStoredReport(withRun(readStoredReport(), report, { commit: commitOfCode(), order }));
  writeDocuments(readStoredReport());
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

async function run(options: Options): Promise<Report> {
  const machine = describeMachine();
  if (!options.program) say("building the native half …");
  const program = options.program ?? buildNativeProgram();
  const native = (name: string, timeoutMs: number, words: readonly string[] = []) =>
    runScenario(program, name, { ...options, timeoutMs, words });
  let setup: Line = new Map();
  const noise = async () => {
    const lines = await native("noise", 30_000);
    setup = ofKind(lines, "setup")[0] ?? setup;
    return noiseIndex(
      ofKind(lines, "noise").map((line) => ({
        cpuNs: numberOf(line, "cpu_ns"),
        wallNs: numberOf(line, "wall_ns"),
      })),
    );
  };

  const chosen = scenarios.filter(
    ({ name, onlyNamed = false }) =>
      options.only.includes(name) || (options.only.length === 0 && (options.small || !onlyNamed)),
  );
  const noiseBefore = await noise();
  const sections: (Section & { seconds: number })[] = [];
  for (const scenario of chosen) {
    say(`${scenario.name} …`);
    const begin = performance.now();
    const { native: nativeName, timeoutMs, words } = scenario;
    const lines = nativeName ? await native(nativeName, timeoutMs, words?.()) : [];
    const section = await scenario.section(lines, options.small, { ...options, program });
    const seconds = Math.round((performance.now() - begin) / 1000);
    say(`${scenario.name}: ${seconds} s`);
    sections.push({ ...section, seconds });
  }
  return {
    takenAt: new Date().toISOString(),
    machine,
    small: options.small,
    rounds: options.rounds,
    network: textOf(setup, "network"),
    comparable: setup.get("comparable") === true,
    libraries:
      `Ed25519 by ${textOf(setup, "ed25519")}, SHA-256 by ${textOf(setup, "sha256")}, ` +
      `Reed-Solomon by ${textOf(setup, "reed_solomon")}`,
    skipped: findProgram("samplicator") ? [] : ["Skipped: samplicator (not installed)"],
    noise: [noiseBefore, await noise()],
    sections,
  };
}

function fail(error: unknown, help: string): void {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}${help}`);
  process.exitCode = 1;
}

const renderers = {
  text: renderReport,
  markdown: renderDocument,
  json: (report: Report) => JSON.stringify(report, null, 2),
};

let options: Options | undefined;
try {
  options = readOptions();
} catch (error) {
  fail(error, `\n${usage}`);
}
if (options) {
  try {
    if (options.documents) {
      writeDocuments(readStoredReport());
    } else if (options.against !== undefined) {
      if (!options.program) buildNativeProgram();
      console.log(compareWithCommit({ ...options, commit: options.against }, say));
    } else {
      const report = await run(options);
      console.log(renderers[options.format](report));
      if (options.report) storeReport(report);
    }
  } catch (error) {
    fail(error, "");
  }
}
