// A command of the command line that runs in this process: its output and its end.

import { type Command, parseArguments } from "../../../src/tools/terminal/command.ts";
import { Terminal } from "../../../src/tools/terminal/terminal.ts";

export class CommandRun {
  stdout = "";
  stderr = "";
  readonly code: Promise<number>;
  readonly #stopping = new AbortController();

  constructor(command: Command, args: readonly string[]) {
    const parsed = parseArguments(command, args);
    if (parsed === "help") throw new RangeError("expected arguments to run with, got --help");
    const terminal = new Terminal({
      stdout: { write: (text) => (this.stdout += text) },
      stderr: { write: (text) => (this.stderr += text) },
      stopped: this.#stopping.signal,
      self: "shredway",
      colours: false,
      movesCursor: false,
    });
    // Immediate errors are also thrown by `code`.
    this.code = Promise.resolve().then(() => command.run(parsed, terminal));
    this.code.catch(() => undefined);
  }

  /** Aborts like Ctrl-C. */
  stop(): void {
    this.#stopping.abort();
  }

  /** The lines of JSON so far. */
  objects<T>(): T[] {
    return this.stdout
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line): T => JSON.parse(line));
  }
}
