// npm run proof: repeats the entries of docs/proof.md, stores their results in bench/results/proof.json, and
// writes the page again.
//
// A command that fails, or a result that is not the claimed one, ends the program with status 1; the results of
// the entries before it are stored, and the page still shows the earlier result of that one.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { describeMachine, machineText } from "../report/machine.ts";
import { commitOfCode, readStoredReport } from "../report/stored-report.ts";
import { proofDocument } from "./document.ts";
import { type ProofEntry, proofEntries } from "./entries.ts";
import { landOutcome, readResults, testsOutcome, writeResults } from "./results.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const page = join(root, "docs/proof.md");
const names = proofEntries.map(({ name }) => name);

const usage = `npm run proof -- [options]
  --only NAME   one of ${names.join(", ")}; may be repeated
  --documents   runs nothing: writes the page again from the stored results`;

/** Runs a shell command and returns what it printed. Throws if it fails. */
function run(command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn("bash", ["-c", command], {
      cwd: root,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    child.once("error", reject);
    child.once("close", (status) => {
      if (status === 0) resolve(output);
      else reject(new Error(`status ${status} of: ${command}\n${output.slice(-4000)}`));
    });
  });
}

async function outcomeOf({ kind, command }: ProofEntry): Promise<ReturnType<typeof landOutcome>> {
  if (kind === "land") return landOutcome(await run(command));
  const folder = mkdtempSync(join(tmpdir(), "shredway-proof-"));
  try {
    const report = join(folder, "tests.json");
    await run(`${command} --reporter=json --outputFile.json=${report}`);
    return testsOutcome(readFileSync(report, "utf8"));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function repeat(entry: ProofEntry): Promise<void> {
  console.log(`${entry.title}: ${entry.command}`);
  if (entry.kind === "benchmark") {
    await run(entry.command);
    return;
  }
  const machine = machineText(describeMachine());
  const begin = performance.now();
  const outcome = await outcomeOf(entry);
  const seconds = Math.round((performance.now() - begin) / 1000);
  const takenAt = new Date().toISOString();
  const result = { takenAt, commit: commitOfCode(), machine, seconds, ...outcome };
  writeResults({ ...readResults(), [entry.name]: result });
}

const { values } = parseArgs({
  options: {
    only: { type: "string", multiple: true },
    documents: { type: "boolean" },
    help: { type: "boolean", short: "h" },
  },
});
const unknown = values.only?.filter((name) => !names.includes(name)) ?? [];
if (values.help || unknown.length > 0) {
  for (const name of unknown) console.error(`--only: expected an entry, got "${name}"`);
  console.log(usage);
  process.exit(values.help ? 0 : 2);
}
const chosen = values.documents
  ? []
  : proofEntries.filter(({ name }) => values.only?.includes(name) ?? true);
try {
  for (const entry of chosen) await repeat(entry);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
writeFileSync(page, proofDocument(readStoredReport(), readResults()));
