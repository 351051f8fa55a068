// Failure log: warnings about the database, listeners and the node, at most one in ten seconds.

import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { RareWarning } from "../../core/rare-warning.ts";

const warnEveryMs = 10_000;

export class FailureLog {
  readonly #warning: RareWarning;

  constructor(clock: Clock, log: Pick<Logger, "warn">) {
    this.#warning = new RareWarning({ clock, log }, warnEveryMs);
  }

  /** Logs at most one line in ten seconds. */
  warn(what: string, error: unknown): void {
    this.#warning.give(() => `submissions: ${what} failed: ${messageOf(error)}`);
  }
}
