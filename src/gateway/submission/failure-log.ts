// Failure log: warnings about the database, listeners and the node, at most one in ten seconds.

import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { nsPerMs } from "./tracked-transaction.ts";

const warnMs = 10_000;

export class FailureLog {
  readonly #clock: Clock;
  readonly #log: Pick<Logger, "warn">;
  #warnedMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, log: Pick<Logger, "warn">) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Logs at most one line in ten seconds. */
  warn(what: string, error: unknown): void {
    const nowMs = Number(this.#clock.monotonicNs() / nsPerMs);
    if (nowMs - this.#warnedMs < warnMs) return;
    this.#warnedMs = nowMs;
    this.#log.warn(`submissions: ${what} failed: ${messageOf(error)}`);
  }
}
