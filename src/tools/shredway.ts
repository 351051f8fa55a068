#!/usr/bin/env -S node --max-semi-space-size=8 --no-parallel-scavenge --v8-pool-size=1
// The program `shredway`: a command line (run-program.ts) in a process of its own.

import { realpathSync } from "node:fs";
import { basename, relative } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runProgram } from "./run-program.ts";
import { exitCodes } from "./terminal/command.ts";

/** Whether a service runs: customers depend on it, and nobody needs its output. */
let goesOn = false;

// The reader of the output has exited (`… | head -1`): exit silently. Report a full device. A service goes on.
function endWhenOutputFails(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE" && !goesOn) process.exit(exitCodes.ok);
    const rest = goesOn ? "; the service goes on" : "";
    process.stderr.write(`shredway: cannot write to standard output: ${error.message}${rest}\n`);
    if (!goesOn) process.exit(exitCodes.failed);
  });
  process.stderr.on("error", (error: NodeJS.ErrnoException) => {
    if (goesOn) return;
    process.exit(error.code === "EPIPE" ? exitCodes.ok : exitCodes.failed);
  });
}

function stopOnSignals(): AbortSignal {
  // npm forwards a Ctrl-C that the terminal has already sent to this program: one request, two signals.
  const sameRequestMs = 1000;
  const stopping = new AbortController();
  let firstAtMs = 0;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (!stopping.signal.aborted) {
        firstAtMs = performance.now();
        stopping.abort();
      } else if (performance.now() - firstAtMs > sameRequestMs) {
        process.exit(exitCodes.failed);
      }
    });
  }
  return stopping.signal;
}

/** Commands that a reload or a closed terminal must not end halfway. */
const uninterrupted: readonly string[] = ["start", "import", "migrate"];

// Set before the command loads. The commands report the signal or apply it, once they can.
function surviveHangUp(): void {
  if (uninterrupted.includes(process.argv[2] ?? "")) process.on("SIGHUP", () => {});
}

/** Returns the command with which the user started this program. */
function selfCommand(): string {
  const script = process.argv[1] ?? "shredway";
  if (basename(script) === "shredway") {
    return process.env["npm_command"] === "exec" ? "npx shredway" : "shredway";
  }
  const path = relative(process.cwd(), realpathSync(script));
  return script.endsWith(".ts") ? `npx tsx ${path}` : `node ${path}`;
}

/** Settles when the output was written, or cannot be. */
async function outputWritten(): Promise<void> {
  for (const stream of [process.stdout, process.stderr])
    await new Promise<void>((resolve) => stream.write("", () => resolve()));
}

/** A reader that does not read must not delay the end of a service for longer. */
function serviceOutputTime(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1000));
}

// HTTP responses are parsed in WebAssembly. By default, V8 optimizes the parser after few of them: a quarter of a
// second on the thread that also optimizes the service, and 30 MB. Its baseline code suffices.
setFlagsFromString("--wasm-tiering-budget=1000000000"); // bytes

endWhenOutputFails();
surviveHangUp();
const code = await runProgram(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  self: selfCommand(),
  environment: process.env,
  stopSignal: stopOnSignals,
  serviceStarts: () => {
    goesOn = true;
  },
});
await Promise.race([outputWritten(), ...(goesOn ? [serviceOutputTime()] : [])]);
// Calls that still wait for others, such as a node that does not answer, must not delay the end.
process.exit(code);
