// The command line as a child process. It runs the compiled program
// (test/support/processes/build-program.ts), like users do, which starts in half the time; without
// a compiled program, the TypeScript source.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { runProgram } from "../../../src/tools/run-program.ts";

const source = fileURLToPath(new URL("../../../src/tools/shredway.ts", import.meta.url));

/** Found from every working directory. */
const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;

/** Arguments of `node` that run the command line. */
export const programWords: readonly string[] = process.env["SHREDWAY_TEST_PROGRAM"]
  ? [process.env["SHREDWAY_TEST_PROGRAM"]]
  : ["--import", tsx, source];

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class Shredway {
  stdout = "";
  stderr = "";
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;
  readonly #watchers = new Set<() => void>();

  /**
   * Runs after a command that starts another one: in a network namespace, with fewer privileges.
   */
  static in(command: readonly string[], ...args: readonly string[]): Shredway {
    return new Shredway(args, command);
  }

  static run(...args: readonly string[]): Shredway {
    return new Shredway(args, []);
  }

  private constructor(args: readonly string[], command: readonly string[]) {
    const own = [process.execPath, ...programWords, ...args];
    const [file = "", ...words] = [...command, ...own];
    this.#child = spawn(file, words, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, NO_COLOR: "1" },
    });
    this.#child.stdout?.on("data", (chunk: Buffer) => {
      this.stdout += chunk.toString();
      this.#notify();
    });
    this.#child.stderr?.on("data", (chunk: Buffer) => {
      this.stderr += chunk.toString();
      this.#notify();
    });
    this.#ended = once(this.#child, "close").then(([code]: unknown[]) => {
      this.#notify();
      return typeof code === "number" ? code : null;
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get #over(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Closes the reading end, like `head`. */
  closeStdout(): void {
    this.#child.stdout?.destroy();
  }

  async end(): Promise<Ended> {
    const code = await this.#ended;
    return { code, stdout: this.stdout, stderr: this.stderr };
  }

  /** Waits for output that matches `pattern`; fails if the program ends without it. */
  async printed(pattern: RegExp, stream: "stdout" | "stderr" = "stdout"): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this[stream]);
      if (match) return match;
      if (this.#over) {
        throw new Error(
          `the program ended (${this.#child.exitCode}) without printing ${pattern}\n${this.stdout}\n${this.stderr}`,
        );
      }
      await new Promise<void>((resolve) => {
        const done = () => {
          clearTimeout(timer);
          this.#watchers.delete(done);
          resolve();
        };
        const timer = setTimeout(done, 1000);
        this.#watchers.add(done);
      });
    }
  }

  /** For afterEach: stops all programs, even after a failure. */
  async kill(): Promise<void> {
    if (!this.#over) this.#child.kill("SIGKILL");
    await this.#ended;
  }

  #notify(): void {
    for (const watcher of this.#watchers) watcher();
  }
}

/** Runs a command to its end. */
export async function shredway(...args: readonly string[]): Promise<Ended> {
  return Shredway.run(...args).end();
}

/** Runs a command to its end in this process, which takes a fraction of the time of a child process. */
export async function shredwayHere(...args: readonly string[]): Promise<Ended> {
  let stdout = "";
  let stderr = "";
  const code = await runProgram(args, {
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
    self: "shredway",
    environment: { ...process.env, NO_COLOR: "1" },
    stopSignal: () => new AbortController().signal,
  });
  return { code, stdout, stderr };
}
