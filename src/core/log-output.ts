// Output of the log: a file descriptor whose reader or disk can never stop or end the service.
//
// Used by log.ts for standard error. Lines are written at once. If the descriptor accepts nothing (a full disk, a
// closed terminal, a reader without activity), lines wait in bounded memory and precede the next one.

import { counted } from "./counted.ts";
import { messageOf } from "./errors.ts";

const waitingBytesMax = 1024 * 1024;
/** A reader that reads gets the last lines of the process within this time. */
const exitAttempts = { count: 100, everyMs: 10 } as const;

interface LogOutputDependencies {
  /** Returns the number of bytes that were written, or throws. Pipes and sockets must not block it. */
  readonly write: (bytes: Uint8Array) => number;
  /** A line of the log with this message. */
  readonly warningLine: (message: string) => string;
}

export class LogOutput {
  readonly #write: LogOutputDependencies["write"];
  readonly #warningLine: LogOutputDependencies["warningLine"];
  /** Whole lines; the first one may have begun already. */
  readonly #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #lost = 0;
  #failure = "";

  constructor({ write, warningLine }: LogOutputDependencies) {
    this.#write = write;
    this.#warningLine = warningLine;
  }

  write(line: string): void {
    if (this.#waitingBytes > 0) this.flush();
    const bytes = Buffer.from(line);
    if (this.#waitingBytes > 0 && this.#waitingBytes + bytes.length > waitingBytesMax) {
      this.#lost++;
      return;
    }
    this.#push(bytes);
    this.flush();
  }

  /** Writes what the descriptor accepts now. Returns whether nothing waits. Never throws. */
  flush(): boolean {
    for (let first = this.#waiting[0]; first; first = this.#waiting[0]) {
      const written = this.#writeOnce(first);
      if (written === 0) return false;
      this.#waitingBytes -= written;
      if (written < first.length) this.#waiting[0] = first.subarray(written);
      else this.#waiting.shift();
      if (this.#waiting.length === 0 && this.#lost > 0) this.#push(this.#lossLine());
    }
    return true;
  }

  /** Waits a second at most until nothing waits. */
  flushAtExit(): void {
    const sleeping = new Int32Array(new SharedArrayBuffer(4));
    for (let attempt = 0; attempt < exitAttempts.count && !this.flush(); attempt++) {
      if (this.#failure !== "EAGAIN") return;
      Atomics.wait(sleeping, 0, 0, exitAttempts.everyMs);
    }
  }

  #writeOnce(bytes: Buffer): number {
    try {
      return this.#write(bytes);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      this.#failure = typeof code === "string" ? code : messageOf(error);
      return 0;
    }
  }

  #push(bytes: Buffer): void {
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
  }

  #lossLine(): Buffer {
    const lost = counted(this.#lost, "line");
    this.#lost = 0;
    const why = `because the log could not be written: ${this.#failure}`;
    return Buffer.from(this.#warningLine(`log: ${lost} lost here, ${why}`));
  }
}
