// The native half of the bench: built from binding.gyp, run one scenario at a time.
//
// Each scenario is a process of its own; its network namespace and its children end with it.

import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Line, parseLine } from "../report/lines.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Builds shredway_bench with node-gyp and returns its path. Throws with the compiler's output. */
export function buildNativeProgram(): string {
  const headers = dirname(dirname(process.execPath));
  const env = { ...process.env };
  if (existsSync(join(headers, "include/node/node_api.h"))) env["npm_config_nodedir"] ??= headers;
  const nodeGyp = join(root, "node_modules/node-gyp/bin/node-gyp.js");
  for (const step of [
    ["configure", "--", "-Dnative_bench=1"],
    ["build", "-j", "max"],
  ]) {
    const { status, stdout, stderr } = spawnSync(process.execPath, [nodeGyp, ...step], {
      cwd: root,
      env,
      encoding: "utf8",
      maxBuffer: 64 << 20,
    });
    if (status !== 0) throw new Error(`node-gyp ${step.join(" ")} failed:\n${stdout}${stderr}`);
  }
  const program = join(root, "build/Release/shredway_bench");
  if (!existsSync(program)) throw new Error(`expected node-gyp to make ${program}`);
  return program;
}

/** Full path of a program of the PATH, or undefined. */
export function findProgram(name: string): string | undefined {
  return (process.env["PATH"] ?? "")
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
}

export interface ScenarioOptions {
  readonly small: boolean;
  readonly rounds: number;
  /** Maximum duration of the program. */
  readonly timeoutMs: number;
  /** Run without a network namespace, even if one is available. */
  readonly loopback: boolean;
  /** Further options of the program. */
  readonly words?: readonly string[];
}

/** Runs one scenario and returns its lines. Throws if the program fails or takes too long. */
export async function runScenario(
  program: string,
  scenario: string,
  options: ScenarioOptions,
): Promise<Line[]> {
  const samplicator = findProgram("samplicator");
  const words = [
    scenario,
    "--rounds",
    String(options.rounds),
    ...(options.small ? ["--small"] : []),
    ...(options.loopback ? ["--loopback"] : []),
    "--node",
    process.execPath,
    "--dgram",
    join(root, "bench/baselines/dgram-relay.mjs"),
    ...(samplicator ? ["--samplicator", samplicator] : []),
    ...(options.words ?? []),
  ];
  const child = spawn(program, words, {
    stdio: ["ignore", "pipe", "inherit"],
    timeout: options.timeoutMs,
    killSignal: "SIGKILL",
  });
  // The kernel notifies the program's own children when it dies.
  const stop = () => child.kill("SIGKILL");
  process.once("exit", stop);
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>(
    (resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code, signal) => resolve({ code, signal }));
    },
  );
  const lines: Line[] = [];
  for await (const text of createInterface({ input: child.stdout })) lines.push(parseLine(text));
  const { code, signal } = await ended;
  process.removeListener("exit", stop);
  if (code !== 0) {
    throw new Error(
      `${scenario}: expected the native program to end with 0, got ` +
        `${signal ? `${signal} (it may take ${options.timeoutMs / 1000} s)` : code}`,
    );
  }
  return lines;
}
