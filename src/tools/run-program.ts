// Runs a command line: finds the command, parses its arguments, and maps every result to an exit
// code: 0 ok, 1 failed, 2 wrong usage.

import { messageOf, quote, ShredwayError } from "../core/errors.ts";
import { openFilesLeast } from "../core/files.ts";
import { didYouMean } from "../core/near-names.ts";
import { nodeVersionError } from "../core/node-version.mjs";
import { packageVersion } from "../core/version.ts";
import { allCommands, commands } from "./commands.ts";
import {
  exitCodes,
  helpOf,
  helpWidth,
  parseArguments,
  programHelp,
  usageError,
} from "./terminal/command.ts";
import { type Output, Terminal } from "./terminal/terminal.ts";

/** Surroundings of the program: a process, or a test. */
interface ProgramHost {
  readonly stdout: Output;
  readonly stderr: Output;
  /** The command with which the user started the program, for examples to copy. */
  readonly self: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Called once a command is known: from then on, the signal asks it to stop. */
  readonly stopSignal: () => AbortSignal;
  /** Called before a service runs: output that cannot be written must not end it. Default: nothing. */
  readonly serviceStarts?: () => void;
}

function makeTerminal({ stdout, stderr, self, environment }: ProgramHost, stopped: AbortSignal) {
  const { NO_COLOR, TERM } = environment;
  return new Terminal({
    stdout,
    stderr,
    stopped,
    self,
    environment,
    colours: !NO_COLOR && TERM !== "dumb",
    movesCursor: TERM !== "dumb",
  });
}

/** Runs the command line `given`, without the program's name. Returns the exit code; never throws. */
export async function runProgram(given: readonly string[], host: ProgramHost): Promise<number> {
  try {
    return await run(given, host);
  } catch (error) {
    return report(error, given, host);
  }
}

async function run(given: readonly string[], host: ProgramHost): Promise<number> {
  const [name = "--help", ...rest] = given;
  if (name === "--help" || name === "-h" || name === "help") {
    host.stdout.write(programHelp(await allCommands(), helpWidth(host.stdout.columns)));
    return exitCodes.ok;
  }
  if (name === "--version" || name === "-v") {
    host.stdout.write(`${packageVersion()}\n`);
    return exitCodes.ok;
  }
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (!load) {
    const known = Object.keys(commands);
    const hint = didYouMean(name, known, "shredway ");
    throw usageError(`unknown command ${quote(name)}; expected one of ${known.join(", ")}${hint}`);
  }
  // The doctor reports the version among its findings.
  const wrongNode = name === "doctor" ? null : nodeVersionError();
  if (wrongNode !== null) {
    host.stderr.write(`shredway: ${wrongNode}\n`);
    return exitCodes.failed;
  }
  const stopped = host.stopSignal(); // before the command loads, which takes time
  const command = await load();
  const parsed = parseArguments(command, rest);
  if (parsed === "help") {
    host.stdout.write(helpOf(command, helpWidth(host.stdout.columns)));
    return exitCodes.ok;
  }
  if (command.isService?.(parsed)) host.serviceStarts?.();
  return command.run(parsed, makeTerminal(host, stopped));
}

function isOutOfFiles(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EMFILE";
}

function report(error: unknown, given: readonly string[], { stderr }: ProgramHost): number {
  if (isOutOfFiles(error)) {
    stderr.write(
      `shredway: too many open files; expected a limit of at least ${openFilesLeast}. Raise it with "ulimit -n 65536" ` +
        "(in a systemd unit: LimitNOFILE=65536)\n",
    );
    return exitCodes.failed;
  }
  if (!(error instanceof ShredwayError)) {
    const text = error instanceof Error ? (error.stack ?? error.message) : messageOf(error);
    stderr.write(`shredway: ${text}\n`);
    return exitCodes.failed;
  }
  const name = given[0] !== undefined && Object.hasOwn(commands, given[0]) ? ` ${given[0]}` : "";
  const hint = error.reason === "usage" ? `See: shredway${name} --help\n` : "";
  stderr.write(`shredway${name}: ${error.message}\n${hint}`);
  return error.row.exitCode ?? exitCodes.failed;
}
