#!/usr/bin/env node
// The program `shredway`: finds the command, parses its arguments, and maps every result to an
// exit code: 0 ok, 1 failed, 2 wrong usage.

import { realpathSync } from "node:fs";
import { basename, relative } from "node:path";
import { messageOf, quote, ShredwayError } from "../core/errors.ts";
import { nodeVersionError } from "../core/node-version.mjs";
import { packageVersion } from "../core/version.ts";
import { allCommands, commands } from "./commands.ts";
import { exitCodes, helpOf, parseArguments, programHelp, usageError } from "./terminal/command.ts";
import { Terminal } from "./terminal/terminal.ts";

// The reader of the output has exited (`… | head -1`): exit silently. Report a full device.
function endWhenOutputFails(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(exitCodes.ok);
    process.stderr.write(`shredway: cannot write to standard output: ${error.message}\n`);
    process.exit(exitCodes.failed);
  });
  process.stderr.on("error", (error: NodeJS.ErrnoException) => {
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

function makeTerminal(stopped: AbortSignal): Terminal {
  const { NO_COLOR, TERM } = process.env;
  return new Terminal({
    stdout: process.stdout,
    stderr: process.stderr,
    stopped,
    self: selfCommand(),
    colours: !NO_COLOR && TERM !== "dumb",
    movesCursor: TERM !== "dumb",
  });
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

async function run(given: readonly string[]): Promise<number> {
  const [name = "--help", ...rest] = given;
  if (name === "--help" || name === "-h" || name === "help") {
    process.stdout.write(programHelp(await allCommands()));
    return exitCodes.ok;
  }
  if (name === "--version" || name === "-v") {
    process.stdout.write(`${packageVersion()}\n`);
    return exitCodes.ok;
  }
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (!load) {
    const expected = Object.keys(commands).join(", ");
    throw usageError(`unknown command ${quote(name)}; expected one of ${expected}`);
  }
  // The doctor reports the version among its findings.
  const wrongNode = name === "doctor" ? null : nodeVersionError();
  if (wrongNode !== null) {
    process.stderr.write(`shredway: ${wrongNode}\n`);
    return exitCodes.failed;
  }
  const stopped = stopOnSignals(); // before the command loads, which takes time
  const command = await load();
  const parsed = parseArguments(command, rest);
  if (parsed === "help") {
    process.stdout.write(helpOf(command));
    return exitCodes.ok;
  }
  return command.run(parsed, makeTerminal(stopped));
}

function isOutOfFiles(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EMFILE";
}

function report(error: unknown, given: readonly string[]): number {
  if (isOutOfFiles(error)) {
    process.stderr.write(
      "shredway: too many open files; expected a limit of at least 128. Raise it with `ulimit -n 65536` " +
        "(in a systemd unit: LimitNOFILE=65536)\n",
    );
    return exitCodes.failed;
  }
  if (!(error instanceof ShredwayError)) {
    const text = error instanceof Error ? (error.stack ?? error.message) : messageOf(error);
    process.stderr.write(`shredway: ${text}\n`);
    return exitCodes.failed;
  }
  const name = given[0] !== undefined && Object.hasOwn(commands, given[0]) ? ` ${given[0]}` : "";
  const hint = error.reason === "usage" ? `See: shredway${name} --help\n` : "";
  process.stderr.write(`shredway${name}: ${error.message}\n${hint}`);
  return error.row.exitCode ?? exitCodes.failed;
}

const given = process.argv.slice(2);
endWhenOutputFails();
try {
  process.exitCode = await run(given);
} catch (error) {
  process.exitCode = report(error, given);
}
