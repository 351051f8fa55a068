// npm run bench -- --against COMMIT: this code and another commit, measured in turn.
//
// The other commit is checked out and built in a temporary folder. Both run their own bench, one round at
// a time and each time in the other order, so that both meet the same noise. Every number that both
// report becomes a ratio; a ratio above 1 means that this code's number is larger.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Summary, summarise } from "./report/statistics.ts";
import type { Report } from "./report/stored-report.ts";
import { number, renderText, type Table } from "./report/table.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

interface AgainstOptions {
  readonly commit: string;
  readonly only: readonly string[];
  readonly rounds: number;
  readonly small: boolean;
  readonly loopback: boolean;
}

/** Output of a command. Throws with it if the command fails. */
function output(cwd: string, command: string, ...words: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, words, {
    cwd,
    encoding: "utf8",
    maxBuffer: 256 << 20,
  });
  if (status === 0) return stdout;
  throw new Error(
    `${command} ${words.join(" ")} failed in ${cwd}:\n${stdout.slice(-4000)}${stderr.slice(-4000)}`,
  );
}

/** The commit's checkout, built, in a folder that the caller removes. */
function checkOut(commit: string, folder: string): void {
  output(root, "git", "clone", "--quiet", "--no-checkout", root, folder);
  output(folder, "git", "checkout", "--quiet", "--detach", commit);
  const lock = (where: string): string => readFileSync(join(where, "package-lock.json"), "utf8");
  if (lock(root) === lock(folder))
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  else output(folder, "npm", "ci");
  output(folder, process.execPath, "native/build.mjs", "native_bench");
}

/** One round of the bench in this checkout: medians by section and name. */
function measured(folder: string, options: AgainstOptions): Map<string, number> {
  const words = options.only.flatMap((name) => ["--only", name]);
  if (options.small) words.push("--small");
  if (options.loopback) words.push("--loopback");
  const program = join(folder, "build/Release/shredway_bench");
  const fixed = ["--rounds", "1", "--json", "--program", program];
  const text = output(folder, "npm", "run", "--silent", "bench", "--", ...fixed, ...words);
  const report: Pick<Report, "sections"> = JSON.parse(text);
  const values = new Map<string, number>();
  for (const section of report.sections) {
    for (const [name, value] of Object.entries(section.values)) {
      values.set(`${section.name}: ${name}`, value.median);
    }
  }
  return values;
}

function ratioRow(
  name: string,
  own: readonly Map<string, number>[],
  other: readonly Map<string, number>[],
): readonly string[] | null {
  const pairs = own.flatMap((values, round) => {
    const [a, b] = [values.get(name), other[round]?.get(name)];
    return a === undefined || b === undefined || !(b > 0) ? [] : [{ a, b }];
  });
  if (pairs.length === 0) return null;
  const text = ({ low, median, high }: Summary): string =>
    `${number(median)} (${number(low)} to ${number(high)})`;
  return [
    name,
    text(summarise(pairs.map(({ a }) => a))),
    text(summarise(pairs.map(({ b }) => b))),
    text(summarise(pairs.map(({ a, b }) => a / b))),
  ];
}

/** Measures and returns the report's text. */
export function compareWithCommit(options: AgainstOptions, say: (text: string) => void): string {
  const { commit, rounds } = options;
  const folder = mkdtempSync(join(tmpdir(), "shredway-against-"));
  try {
    say(`building ${commit} …`);
    checkOut(commit, folder);
    const own: Map<string, number>[] = [];
    const other: Map<string, number>[] = [];
    for (let round = 0; round < rounds; round++) {
      say(`round ${round + 1} of ${rounds} …`);
      const turns = [
        () => own.push(measured(root, options)),
        () => other.push(measured(folder, options)),
      ];
      for (const turn of round % 2 === 0 ? turns : turns.toReversed()) turn();
    }
    const names = [...(own[0]?.keys() ?? [])];
    const rows = names.map((name) => ratioRow(name, own, other)).filter((row) => row !== null);
    const table: Table = {
      title: `This code against ${commit}: medians of ${rounds} interleaved rounds, quartiles in brackets`,
      columns: ["value", "this code", "other", "this code ÷ other"],
      rows,
    };
    return renderText(table);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
