// The terminal as commands see it: lines out, a block that is redrawn in place, and the wish to stop.
//
// Made once by shredway.ts. A closed pipe (`shredway listen --json | head -1`) ends the program
// quietly; Ctrl-C or SIGTERM sets `stopped`, a second one ends at once.

import { systemClock } from "../../core/clock.ts";
import { cutLine, type Paint, paint } from "./output.ts";

interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

interface TerminalOptions {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly stopped: AbortSignal;
  /** How the user called the program, for commands to copy. */
  readonly self: string;
  readonly colours: boolean;
  /** Whether the cursor may be moved: not where TERM is dumb. */
  readonly movesCursor: boolean;
}

export class Terminal {
  readonly stopped: AbortSignal;
  readonly self: string;
  readonly paint: Paint;
  /** Colours for what goes to stderr (warnings). */
  readonly errorPaint: Paint;
  /** Whether stdout is a screen that can be redrawn. */
  readonly isLive: boolean;
  /** Whether stderr is a screen: progress of long work goes there. */
  readonly showsProgress: boolean;
  readonly #stdout: Output;
  readonly #stderr: Output;
  #blockLines = 0;
  #progressShown = false;

  constructor(options: TerminalOptions) {
    this.stopped = options.stopped;
    this.self = options.self;
    this.isLive = options.movesCursor && options.stdout.isTTY === true;
    this.showsProgress = options.movesCursor && options.stderr.isTTY === true;
    this.paint = paint(options.colours && this.isLive);
    this.errorPaint = paint(options.colours && this.showsProgress);
    this.#stdout = options.stdout;
    this.#stderr = options.stderr;
  }

  /** Lines that a redrawn block may have. */
  get rows(): number {
    return (this.#stdout.rows ?? 24) - 1; // a taller block cannot be drawn over
  }

  line(text = ""): void {
    this.#stdout.write(`${text}\n`);
  }

  /** To stderr: warnings and notes, so that data on stdout stays clean. */
  note(text: string): void {
    this.clearProgress();
    this.#stderr.write(`${text}\n`);
  }

  /** Draws lines over those of the last call. Only where `isLive`. */
  redraw(lines: readonly string[]): void {
    const width = this.#stdout.columns ?? 80;
    const shown = lines.slice(0, Math.max(1, this.rows)).map((line) => cutLine(line, width));
    const up = this.#blockLines > 0 ? `\u001b[${this.#blockLines}A` : "";
    const body = shown.map((line) => `${line}\u001b[K\n`).join("");
    this.#stdout.write(`${up}${body}\u001b[J`);
    this.#blockLines = shown.length;
  }

  /** Leaves the block standing: what follows is written below it. */
  keepBlock(): void {
    this.#blockLines = 0;
  }

  /** One line on stderr that replaces itself. Nothing where stderr is no screen. */
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

/** Calls `work` every `ms` (without drift) until stopped, or until it returns false. */
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

/** Aborts when stopped, or after so many seconds. */
// Not AbortSignal.any with AbortSignal.timeout: Node 20 may collect such a timeout before it fires.
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
