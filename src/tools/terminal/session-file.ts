// Session file: a file that a command writes while it measures.
//
// Used by `listen --record` and `race --csv`. Writing may fail in a timer, for example because the disk is
// full. The measurement then continues without the file, and the command reports the failure at its end.

import { closeSync, openSync, writeSync } from "node:fs";
import { messageOf, ShredwayError } from "../../core/errors.ts";

export class SessionFile {
  readonly path: string;
  readonly #file: number;
  #failure: ShredwayError | null = null;
  #isOpen = true;

  /** Throws ShredwayError "system" if the file cannot be opened. */
  constructor(path: string) {
    this.path = path;
    try {
      this.#file = openSync(path, "w");
    } catch (cause) {
      throw this.#failed(cause);
    }
  }

  /** The first failed write; null: none. Nothing is written after it. */
  get failure(): ShredwayError | null {
    return this.#failure;
  }

  /** Never throws. */
  write(bytes: Uint8Array): void {
    if (this.#failure) return;
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at);
    } catch (cause) {
      this.#failure = this.#failed(cause);
    }
  }

  /** Never throws. May be called repeatedly. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    try {
      closeSync(this.#file);
    } catch (cause) {
      this.#failure ??= this.#failed(cause);
    }
  }

  #failed(cause: unknown): ShredwayError {
    const message = `cannot write ${this.path}: ${messageOf(cause)}`;
    return new ShredwayError("system", message, { cause });
  }
}
