// Results of the entries: the contents of bench/results/proof.json, made from the output of their commands.

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { percent } from "../../src/tools/report/number-text.ts";
import { number, type Table } from "../report/table.ts";

const file = fileURLToPath(new URL("../results/proof.json", import.meta.url));

export interface ProofResult {
  /** Time in ISO 8601, the commit of the code, and the machine with its load before the run. */
  readonly takenAt: string;
  readonly commit: string | null;
  readonly machine: string;
  /** Duration of the command. */
  readonly seconds: number;
  readonly table: Table;
  readonly sentences: readonly string[];
}

export type ProofResults = Readonly<Record<string, ProofResult>>;

export function readResults(): ProofResults {
  return JSON.parse(readFileSync(file, "utf8"));
}

export function writeResults(results: ProofResults): void {
  writeFileSync(file, `${JSON.stringify(results, null, 1)}\n`);
}

type Outcome = Pick<ProofResult, "table" | "sentences">;

interface TestFile {
  readonly name: string;
  readonly assertionResults: readonly {
    readonly fullName: string;
    readonly status: string;
    readonly duration?: number | null;
  }[];
}

/** `report`: vitest's JSON report. Throws if it contains no test, or one that did not pass. */
export function testsOutcome(report: string): Outcome {
  const { testResults }: { testResults: readonly TestFile[] } = JSON.parse(report);
  const tests = testResults.flatMap(({ name, assertionResults }) =>
    assertionResults.map((test) => ({ ...test, file: name.slice(name.lastIndexOf("/test/") + 1) })),
  );
  if (tests.length === 0) throw new Error("expected tests, got none");
  for (const { fullName, status } of tests)
    if (status !== "passed") throw new Error(`expected a passed test, got ${status}: ${fullName}`);
  const rows = tests.map(({ file: path, fullName, duration }) => [
    `${fullName.trim()} (\`${path}\`)`,
    number((duration ?? 0) / 1000),
  ]);
  return { table: { title: "Passed tests", columns: ["test", "seconds"], rows }, sentences: [] };
}

interface Estimate {
  readonly value: number | null;
  readonly interval: { readonly low: number; readonly high: number } | null;
}

interface LandReport {
  readonly final: boolean;
  readonly verdict: readonly string[];
  readonly senders: readonly {
    readonly name: string;
    readonly sent: number;
    readonly landed: number;
    readonly landedShare: Estimate;
    readonly timeNs: { readonly p50: Estimate; readonly p90: Estimate };
  }[];
}

function estimateText({ value, interval }: Estimate, text: (value: number) => string): string {
  if (value === null) return "–";
  return interval === null
    ? text(value)
    : `${text(value)} (${text(interval.low)} to ${text(interval.high)})`;
}

/** `output`: what `shredway land --json` printed. Throws if its last line is not a final report. */
export function landOutcome(output: string): Outcome {
  const report: LandReport = JSON.parse(output.trim().split("\n").at(-1) ?? "");
  if (!report.final) throw new Error("expected a final report, got an earlier one");
  const millis = (ns: number) => number(ns / 1e6);
  const rows = report.senders.map(({ name, sent, landed, landedShare, timeNs }) => [
    name,
    String(sent),
    String(landed),
    estimateText(landedShare, percent),
    estimateText(timeNs.p50, millis),
    estimateText(timeNs.p90, millis),
  ]);
  const columns = ["sender", "sent", "landed", "share", "p50 ms to landing", "p90 ms to landing"];
  return {
    table: { title: "Senders, with 95 % intervals", columns, rows },
    sentences: report.verdict,
  };
}
