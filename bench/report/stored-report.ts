// The stored report: the contents of bench/results/latest.json, and its update by a new run.
//
// The documents are generated only from this file (documents.ts), so that no number in them is
// typed by hand. A run of some sections replaces these and leaves the others, each with a reference
// to its run.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Finding, Section } from "../sections/section.ts";
import { type Machine, machineText } from "./machine.ts";
import type { NoiseIndex } from "./statistics.ts";
import { percent, type Table } from "./table.ts";

const file = fileURLToPath(new URL("../results/latest.json", import.meta.url));

/** Result of run.ts. */
export interface Report {
  readonly takenAt: string;
  readonly machine: Machine;
  readonly small: boolean;
  readonly rounds: number;
  readonly network: string;
  readonly comparable: boolean;
  readonly libraries: string;
  readonly skipped: readonly string[];
  /** Before the first and after the last scenario. */
  readonly noise: readonly NoiseIndex[];
  readonly sections: readonly (Section & { readonly seconds: number })[];
}

/** Description of the machine and the time of a run. */
export interface StoredRun {
  /** Time in ISO 8601, and the commit of the code; null: the run is older than this field. */
  readonly takenAt: string | null;
  readonly commit: string | null;
  readonly rounds: number;
  /** Sentences without their full stops: machine, libraries, network, noise, what was skipped. */
  readonly facts: readonly string[];
}

export interface StoredSection {
  readonly name: string;
  readonly title: string;
  /** Index of its run in the list of runs. */
  readonly run: number;
  /** Duration of the section; null: the run is older than this field. */
  readonly seconds: number | null;
  readonly tables: readonly Table[];
  readonly notes: readonly string[];
  readonly findings: readonly Finding[];
  readonly histograms?: Section["histograms"];
}

export interface StoredReport {
  readonly runs: readonly StoredRun[];
  readonly sections: readonly StoredSection[];
}

/** Throws if the text is not a stored report. */
export function parseStoredReport(text: string): StoredReport {
  const value: Partial<StoredReport> = JSON.parse(text);
  const { runs, sections } = value;
  if (!Array.isArray(runs) || !Array.isArray(sections)) {
    throw new Error("expected an object of runs and sections");
  }
  const sectionWithoutRun = sections.find(({ run }) => runs[run] === undefined);
  if (sectionWithoutRun) throw new Error(`expected a run of the section ${sectionWithoutRun.name}`);
  return { runs, sections };
}

export function readStoredReport(): StoredReport {
  return parseStoredReport(readFileSync(file, "utf8"));
}

export function writeStoredReport(stored: StoredReport): void {
  writeFileSync(file, `${JSON.stringify(stored, null, 1)}\n`);
}

function noiseText({ cpuSpread, stolen }: NoiseIndex): string {
  return `constant work varies by ${percent(cpuSpread)} (quartiles), others took ${percent(stolen)}`;
}

export function factsOf(report: Report): string[] {
  return [
    `Machine: ${machineText(report.machine)}`,
    `Libraries: ${report.libraries}`,
    `Network: ${report.network}${report.comparable ? "" : " [NOT COMPARABLE]"}`,
    `Noise before: ${report.noise.slice(0, 1).map(noiseText).join()}; ` +
      `after: ${report.noise.slice(1).map(noiseText).join()}`,
    ...(report.small ? ["Small form: shows that everything runs; no basis for a judgement"] : []),
    ...report.skipped,
  ];
}

/** The current commit, and whether the code has changed since; null outside a repository. */
export function commitOfCode(): string | null {
  const git = (...words: string[]) =>
    execFileSync("git", words, {
      cwd: fileURLToPath(new URL("../..", import.meta.url)),
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  try {
    const commit = git("rev-parse", "--short=12", "HEAD");
    const isChanged = git("status", "--porcelain", "--", "src", "native", "bench/*.ts") !== "";
    return isChanged ? `${commit} with changes` : commit;
  } catch {
    return null;
  }
}

/** `order`: names of all sections, as the documents show them. */
export function withRun(
  stored: StoredReport,
  report: Report,
  { commit, order }: { readonly commit: string | null; readonly order: readonly string[] },
): StoredReport {
  const { takenAt, rounds } = report;
  const run: StoredRun = { takenAt, commit, rounds, facts: factsOf(report) };
  const fresh = report.sections.map(
    ({ name, title, tables, notes, findings, seconds, histograms }): StoredSection => ({
      name,
      title,
      run: stored.runs.length,
      seconds,
      tables,
      notes,
      findings,
      ...(histograms && { histograms }),
    }),
  );
  const replaced = new Set(fresh.map(({ name }) => name));
  const all = [...stored.sections.filter(({ name }) => !replaced.has(name)), ...fresh].toSorted(
    (a, b) => order.indexOf(a.name) - order.indexOf(b.name),
  );
  // Runs without any section are removed.
  const used = [...new Set(all.map((section) => section.run))].toSorted((a, b) => a - b);
  const runs = [...stored.runs, run];
  return {
    runs: runs.filter((_, place) => used.includes(place)),
    sections: all.map((section) => ({ ...section, run: used.indexOf(section.run) })),
  };
}
