// Planted faults: each patch of faults/ makes the product wrong in one place. The simulation must find it.
//
// Each is applied to a copy of the sources, so that the working tree never contains one. Native ones
// rebuild what they change, in the copy.

import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = join(root, "test/simulation/faults");
const copied = ["src", "test", "native", "binding.gyp", "package.json", "tsconfig.json"];

/** Names of the faults, without ".patch". */
export function faultNames(): string[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".patch"))
    .map((file) => file.slice(0, -".patch".length))
    .toSorted();
}

/** Throws Error if the patch does not apply to the present sources. */
export function checkFault(name: string): void {
  execFileSync("git", ["apply", "--check", join(folder, `${name}.patch`)], {
    cwd: root,
    stdio: "pipe",
  });
}

function lastLine(text: string): string {
  return (
    text
      .trim()
      .split("\n")
      .findLast((line) => /error/i.test(line)) ?? "it ended with an error"
  );
}

interface FoundFault {
  readonly name: string;
  /** Runs until it was found; null: it was not. */
  readonly runs: number | null;
  /** The violated invariant, or the end of the output of a failed build or run. */
  readonly text: string;
}

interface FaultRuns {
  /** Most runs. */
  readonly seeds: number;
  /** Busy slots of each. */
  readonly slots: number;
  /** Without quiet periods. */
  readonly isBusy: boolean;
}

/** Runs seeds 1, 2, … of the system with this fault until one violates an invariant. */
export function findFault(name: string, { seeds, slots, isBusy }: FaultRuns): FoundFault {
  const copy = mkdtempSync(join(tmpdir(), "shredway-fault-"));
  try {
    // With the times of the files, so that only what the patch changed is built.
    const options = { recursive: true, preserveTimestamps: true };
    for (const entry of copied) cpSync(join(root, entry), join(copy, entry), options);
    symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
    const patch = join(folder, `${name}.patch`);
    execFileSync("patch", ["-p1", "--silent", "-d", copy, "-i", patch]);
    const isNative = readFileSync(patch, "utf8").includes("+++ b/native/");
    if (!isNative) symlinkSync(join(root, "build"), join(copy, "build"));
    else {
      cpSync(join(root, "build"), join(copy, "build"), options);
      // Not native/build.mjs: it would configure the build again, and compile every file.
      const built = spawnSync("make", ["-C", "build", "BUILDTYPE=Release", "shredway"], {
        cwd: copy,
        encoding: "utf8",
      });
      if (built.status !== 0) return { name, runs: null, text: lastLine(built.stderr) };
    }
    const runs = ["--seeds", `${seeds}`, "--steps", `${slots}`, "--no-shrink"];
    return runCopy(name, copy, isBusy ? [...runs, "--busy"] : runs);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function runCopy(name: string, copy: string, options: readonly string[]): FoundFault {
  const { stdout, stderr } = spawnSync(
    "node",
    ["--import", "./test/simulation/load.mjs", "test/simulation/run.ts", ...options],
    { cwd: copy, encoding: "utf8", maxBuffer: 1 << 28 },
  );
  const violation = /^VIOLATION (.*)$/m.exec(stdout)?.[1];
  const runs = stdout.match(/^seed \d+:/gm)?.length ?? 0;
  if (violation !== undefined) return { name, runs, text: violation };
  return { name, runs: null, text: stderr === "" ? "no violation" : lastLine(stderr) };
}
