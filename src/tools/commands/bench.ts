// `shredway bench`: runs the benchmark on this machine.
//
// The benchmark needs a checkout: it builds its native part and runs TypeScript sources. This
// command starts `npm run bench` there.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ShredwayError } from "../../core/errors.ts";
import { type Arguments, type Command, exitCodes } from "../terminal/command.ts";
import type { Terminal } from "../terminal/terminal.ts";

const root = new URL("../../../", import.meta.url);
/** A checkout has them after `npm ci`. */
const needed = ["bench/run.ts", "node_modules/tsx"];

/** Parts of the benchmark, in the order in which they run. */
const parts = [
  "steps",
  "worker",
  "cost",
  "latency",
  "rate",
  "transmit",
  "receive",
  "divided",
  "recovery",
  "deshred",
  "hand-over",
  "beside",
  "landings",
  "attacks",
  "gateway",
  "quic",
  "shreds",
  "tpu",
  "peer",
  "peers",
  "loop",
  "streams",
  "regions",
  "micro",
] as const;
export type BenchPart = (typeof parts)[number];

const switches = ["small", "markdown", "json"] as const;

export const bench: Command = {
  name: "bench",
  summary: "run the benchmark, or parts of it, on this machine",
  usage: ["bench [--only NAMES] [--rounds N] [--small] [--markdown | --json]"],
  description: `
Runs the benchmark of a checkout, the same as npm run bench. It prints medians of several rounds and
ratios against baselines of the same run. docs/benchmarks.md describes each measurement.`,
  options: {
    only: {
      value: "NAMES",
      choices: parts,
      isList: true,
      help: "parts to run, separated by commas, for example cost,latency",
    },
    rounds: { value: "N", help: "rounds of each part" },
    small: { help: "a short run that only checks that every part works" },
    markdown: { help: "print the report as Markdown" },
    json: { help: "print the lines of the report as JSON" },
  },
  examples: ["shredway bench --small", "shredway bench --only cost,transmit --rounds 3"],
  run,
};

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  if (!needed.every((path) => existsSync(new URL(path, root)))) {
    throw new ShredwayError(
      "usage",
      "this installation does not contain the benchmark; run it in a checkout after `npm ci`",
    );
  }
  const chosen = args.text("only")?.split(",") ?? [];
  const rounds = args.integer("rounds", { min: 1, max: 1000 });
  const words = [
    "run",
    "--silent",
    "bench",
    "--",
    ...chosen.flatMap((part) => ["--only", part]),
    ...(rounds === undefined ? [] : ["--rounds", String(rounds)]),
    ...switches.filter((name) => args.flag(name)).map((name) => `--${name}`),
  ];
  const child = spawn("npm", words, { stdio: "inherit", cwd: fileURLToPath(root) });
  terminal.stopped.addEventListener("abort", () => child.kill("SIGTERM"), { once: true });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => resolve(code === 0 ? exitCodes.ok : exitCodes.failed));
  });
}
