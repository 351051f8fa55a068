// The generated parts of docs/benchmarks.md, docs/performance.md, docs/transmit.md and docs/security.md, docs/proof.md,
// and the picture docs/images/peers.svg, made from the stored report.
//
// `npm run bench -- --report` writes them; test/bench/documents.test.ts compares them with the file.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { proofDocument } from "../proof/document.ts";
import { readResults } from "../proof/results.ts";
import { measuredText, targetText, verdictsText } from "../sections/section.ts";
import { peersPicture } from "./peers-picture.ts";
import type { StoredReport, StoredRun, StoredSection } from "./stored-report.ts";
import { summaryPart } from "./summary-table.ts";
import { renderMarkdown } from "./table.ts";
import { transmitPart } from "./transmit-table.ts";

/** The run of most sections; if several runs have as many, the last one. */
export function mainRun({ runs, sections }: StoredReport): number {
  const sizes = runs.map((_, place) => sections.filter(({ run }) => run === place).length);
  return sizes.lastIndexOf(Math.max(...sizes));
}

function originOf({ takenAt, commit }: StoredRun): string[] {
  if (takenAt === null) return [];
  return [`Taken on ${takenAt.slice(0, 10)}${commit === null ? "" : `, commit ${commit}`}`];
}

/** The differences between the run of a section and that of most sections. */
function ownRun(run: StoredRun, main: StoredRun): string {
  const facts = run.facts.filter((fact) => !main.facts.includes(fact));
  const own = [`From a separate run: medians of ${run.rounds} rounds`, ...originOf(run), ...facts];
  return own.map((sentence) => `${sentence}.`).join(" ");
}

function sectionPart(section: StoredSection, own: string | null): string[] {
  const notes = own === null ? section.notes : [...section.notes, own];
  return [
    "",
    `### ${section.title}`,
    ...section.tables.flatMap((table) => ["", renderMarkdown(table)]),
    ...(notes.length > 0 ? ["", notes.join("\n\n")] : []),
  ];
}

/** The numbers of docs/benchmarks.md. */
export function numbersPart(stored: StoredReport): string {
  const place = mainRun(stored);
  const main = stored.runs[place];
  if (!main) throw new Error("expected a run");
  const heading = [
    ...originOf(main),
    ...main.facts,
    `Medians of ${main.rounds} interleaved rounds, quartiles in brackets, processor time unless said otherwise`,
  ];
  const parts = heading.map((line) => `- ${line}.`);
  for (const section of stored.sections) {
    const run = stored.runs[section.run];
    parts.push(...sectionPart(section, !run || run === main ? null : ownRun(run, main)));
  }
  const findings = stored.sections.flatMap((section) => section.findings);
  if (findings.length > 0) {
    const rows = findings.map((found) => [
      found.what,
      measuredText(found),
      targetText(found),
      found.verdict,
    ]);
    const columns = ["what", "measured", "target", "verdict"];
    const table = { title: verdictsText(findings), columns, rows };
    parts.push("", "### Targets", "", renderMarkdown(table));
  }
  return parts.join("\n");
}

/** The measured attacks of docs/security.md. */
function attacksPart({ runs, sections }: StoredReport): string {
  const section = sections.find(({ name }) => name === "attacks");
  if (!section) return "Not measured yet.";
  const run = runs[section.run];
  const origin = run ? [`${originOf(run).join()}; ${run.rounds} rounds.`] : [];
  const tables = section.tables.map(renderMarkdown);
  return [...section.notes, ...origin, ...tables].join("\n\n");
}

const begin = "<!-- made by `npm run bench -- --report`: begin -->";
const end = "<!-- made by `npm run bench -- --report`: end -->";

/** Text with `part` between the two marks. */
export function replacePart(text: string, part: string): string {
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from < 0 || to < from) throw new Error(`expected ${begin} and ${end}`);
  return `${text.slice(0, from + begin.length)}\n\n${part}\n\n${text.slice(to)}`;
}

interface Document {
  readonly path: string;
  readonly text: string;
  /** Parses a report in the format of the stored report. */
  readonly wanted: string;
}

export function documents(stored: StoredReport): Document[] {
  const main = stored.runs[mainRun(stored)];
  if (!main) throw new Error("expected a run");
  const parts = [
    ["docs/benchmarks.md", numbersPart(stored)],
    ["docs/performance.md", summaryPart(stored, main)],
    ["docs/transmit.md", transmitPart(stored)],
    ["docs/security.md", attacksPart(stored)],
  ] as const;
  const picture = peersPicture(stored);
  return [
    ...parts.map(([path, part]) => {
      const text = readFileSync(fileOf(path), "utf8");
      return { path, text, wanted: replacePart(text, part) };
    }),
    wholeDocument("docs/proof.md", proofDocument(stored, readResults())),
    ...(picture === undefined ? [] : [wholeDocument("docs/images/peers.svg", picture)]),
  ];
}

function fileOf(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url));
}

function wholeDocument(path: string, wanted: string): Document {
  const file = fileOf(path);
  return { path, text: existsSync(file) ? readFileSync(file, "utf8") : "", wanted };
}

export function writeDocuments(stored: StoredReport): void {
  for (const { path, wanted } of documents(stored)) {
    writeFileSync(fileOf(path), wanted);
  }
}
