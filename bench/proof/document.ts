// The page of evidence, docs/proof.md, made from the stored results. Pure.

import type { StoredReport } from "../report/stored-report.ts";
import { renderMarkdown, type Table } from "../report/table.ts";
import { type ProofEntry, proofEntries } from "./entries.ts";
import type { ProofResults } from "./results.ts";

const head = `<!-- Made by \`npm run proof\` from bench/results; do not edit. -->

# Evidence

For customers and operators who want to check what Shredway claims. Each entry has a claim, the measured result, and the one command that
repeats it on your machine, after \`npm ci\`. \`npm run proof\` repeats them all and writes this page again.

The commands use only your machine: loopback, a network namespace of their own, and a chain in the same process. They end by themselves.`;

/** "45 s" or "12 min". */
function durationText(seconds: number): string {
  return seconds < 100
    ? `${Math.max(1, Math.round(seconds))} s`
    : `${Math.round(seconds / 60)} min`;
}

/** The numbers of an entry: parts of the page, and the duration of its command in seconds. */
interface Evidence {
  readonly seconds: number | null;
  readonly parts: readonly string[];
}

const notMeasured: Evidence = {
  seconds: null,
  parts: ["There is no stored result yet."],
};

/** The table without the rows that have no valid round; empty: no row is left. */
function withResults(table: Table): Table[] {
  const at = table.columns.indexOf("rounds");
  const rows = table.rows.filter((row) => at < 0 || !row[at]?.startsWith("0 of"));
  return rows.length === 0 ? [] : [{ ...table, rows }];
}

function benchmarkEvidence({ name }: ProofEntry, { runs, sections }: StoredReport): Evidence {
  const section = sections.find((one) => one.name === name);
  const run = section && runs[section.run];
  if (!section || !run) return notMeasured;
  const origin = [
    ...(run.takenAt === null ? [] : [`Taken on ${run.takenAt.slice(0, 10)}`]),
    ...(run.commit === null ? [] : [`commit ${run.commit}`]),
    `${run.rounds} rounds`,
  ];
  const facts = run.facts.map((fact) => `${fact}.`);
  return {
    seconds: section.seconds,
    parts: [
      ...section.notes,
      ...section.tables.flatMap(withResults).map(renderMarkdown),
      [`${origin.join(", ")}.`, ...facts].join(" "),
    ],
  };
}

function commandEvidence({ name }: ProofEntry, results: ProofResults): Evidence {
  const result = results[name];
  if (!result) return notMeasured;
  const commit = result.commit === null ? "" : `, commit ${result.commit}`;
  return {
    seconds: result.seconds,
    parts: [
      renderMarkdown(result.table),
      ...(result.sentences.length > 0 ? [`\`\`\`\n${result.sentences.join("\n")}\n\`\`\``] : []),
      `Taken on ${result.takenAt.slice(0, 10)}${commit}. Machine: ${result.machine}.`,
    ],
  };
}

/** Text of docs/proof.md. */
export function proofDocument(stored: StoredReport, results: ProofResults): string {
  const all = proofEntries.map((entry) => ({
    entry,
    evidence:
      entry.kind === "benchmark"
        ? benchmarkEvidence(entry, stored)
        : commandEvidence(entry, results),
  }));
  const time = ({ seconds }: Evidence) => (seconds === null ? "–" : durationText(seconds));
  const overview = {
    title: "Entries",
    columns: ["claim", "time to repeat"],
    rows: all.map(({ entry, evidence }) => [entry.title, time(evidence)]),
  };
  const parts = all.flatMap(({ entry, evidence }) => [
    `## ${entry.title}`,
    entry.claim,
    `\`\`\`sh\n${entry.command}\n\`\`\``,
    ...evidence.parts,
  ]);
  return `${[head, renderMarkdown(overview), ...parts].join("\n\n")}\n`;
}
