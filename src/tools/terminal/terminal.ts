// Terminal of a command: output lines, a block that is redrawn in place, and the stop signal.
//
// Created once by run-program.ts. A closed pipe (`shredway listen --json | head -1`) ends the
// program without a message. Ctrl-C or SIGTERM aborts `stopped`; a second one ends the program
// immediately.

import { systemClock } from "../../core/clock.ts";
import { cutLine, type Paint, paint } from "./formatting.ts";

export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

interface TerminalOptions {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly stopped: AbortSignal;
  /** The command with which the user started the program, for examples to copy. */
  readonly self: string;
  readonly colours: boolean;
  /** Whether cursor movement works; false for TERM=dumb. */
  readonly movesCursor: boolean;
  /** Variables of the process. Default: none. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

export class Terminal {
  readonly stopped: AbortSignal;
  readonly self: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly paint: Paint;
  /** Colours for stderr (warnings). */
  readonly errorPaint: Paint;
  /** Whether stdout is a terminal that can be redrawn. */
  readonly isLive: boolean;
  /** Whether stderr is a terminal that shows progress. */
  readonly showsProgress: boolean;
  readonly #stdout: Output;
  readonly #stderr: Output;
  #blockLines = 0;
  /** Size of the terminal at the last redraw. */
  #size = "";
  #progressShown = false;

  constructor(options: TerminalOptions) {
    this.stopped = options.stopped;
    this.self = options.self;
    this.environment = options.environment ?? {};
    this.isLive = options.movesCursor && options.stdout.isTTY === true;
    this.showsProgress = options.movesCursor && options.stderr.isTTY === true;
    this.paint = paint(options.colours && this.isLive);
    this.errorPaint = paint(options.colours && this.showsProgress);
    this.#stdout = options.stdout;
    this.#stderr = options.stderr;
  }

  /** Maximum number of lines of a redrawn block. */
  get rows(): number {
    return (this.#stdout.rows ?? 24) - 1; // a taller block cannot be drawn over
  }

  get columns(): number {
    return this.#stdout.columns ?? 80;
  }

  line(text = ""): void {
    this.#stdout.write(`${text}\n`);
  }

  /** Writes warnings and notes to stderr, so that stdout contains only data. */
  note(text: string): void {
    this.clearProgress();
    this.#stderr.write(`${text}\n`);
  }

  /**
   * Draws lines over those of the last call. Requires `isLive`. After a change of the terminal's size
   * it clears the screen, because the terminal may have wrapped the old lines.
   */
  redraw(lines: readonly string[]): void {
    const { columns, rows } = this;
    const shown = lines.slice(0, Math.max(1, rows)).map((line) => cutLine(line, columns));
    const size = `${columns}x${rows}`;
    const isResized = this.#blockLines > 0 && size !== this.#size;
    const up = this.#blockLines > 0 ? `\u001b[${this.#blockLines}A` : "";
    const body = shown.map((line) => `${line}\u001b[K\n`).join("");
    this.#stdout.write(`${isResized ? "\u001b[H\u001b[2J" : up}${body}\u001b[J`);
    this.#blockLines = shown.length;
    this.#size = size;
  }

  /** Ends the redrawn block; later lines are written below it. */
  endBlock(): void {
    this.#blockLines = 0;
  }

  /** Writes one line to stderr that replaces the previous one. Does nothing without a terminal. */
  progress(text: string): void {
    if (!this.showsProgress) return;
    this.#stderr.write(`\r${cutLine(text, (this.#stderr.columns ?? 80) - 1)}\u001b[K`);
    this.#progressShown = true;
  }

  clearProgress(): void {
    if (!this.#progressShown) return;
    this.#stderr.write("\r\u001b[K");
    this.#progressShown = false;
  }
}

/** Calls `work` every `ms` (without drift) until stopped or until it returns false. */
export async function every(
  ms: number,
  stopped: AbortSignal,
  work: () => boolean | undefined,
): Promise<void> {
  for (let next = performance.now() + ms; ; next += ms) {
    await systemClock.sleep(Math.max(0, next - performance.now()), stopped);
    if (stopped.aborted || work() === false) return;
  }
}

/** Returns a signal that aborts when stopped or after the given seconds. */
// AbortSignal.any with AbortSignal.timeout does not work: Node 20 may collect the timeout before
// it fires.
export function endOf(stopped: AbortSignal, seconds: number | undefined): AbortSignal {
  if (seconds === undefined) return stopped;
  const ending = new AbortController();
  const timer = systemClock.after(seconds * 1000, () => ending.abort());
  stopped.addEventListener("abort", () => {
    timer.cancel();
    ending.abort();
  });
  return ending.signal;
}
