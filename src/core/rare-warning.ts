// A warning that is given at most once in a while, however often there is a reason.

import type { Clock } from "./clock.ts";

interface RareWarningOptions {
  readonly clock: Clock;
  readonly log: { warn(text: string): void };
}

export class RareWarning {
  readonly #parts: RareWarningOptions;
  readonly #everyNs: bigint;
  #nextNs: bigint | null = null;

  constructor(parts: RareWarningOptions, everyMs: number) {
    this.#parts = parts;
    this.#everyNs = BigInt(everyMs) * 1_000_000n;
  }

  /** `text` is asked for only when it is given. */
  give(text: () => string): void {
    const { clock, log } = this.#parts;
    const nowNs = clock.monotonicNs();
    if (this.#nextNs !== null && nowNs < this.#nextNs) return;
    this.#nextNs = nowNs + this.#everyNs;
    log.warn(text());
  }
}
