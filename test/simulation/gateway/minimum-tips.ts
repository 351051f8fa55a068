// The minimum tip that the operator has configured, and the values that a call may have met.

import { minimumTip } from "./transactions.ts";

export class MinimumTips {
  readonly #nowMs: () => number;
  /** In the order of time. */
  readonly #history: { readonly fromMs: number; readonly lamports: number }[] = [
    { fromMs: Number.NEGATIVE_INFINITY, lamports: minimumTip },
  ];

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** The operator reloads the configuration, or has changed it before the next start. */
  set(lamports: number): void {
    this.#history.push({ fromMs: this.#nowMs(), lamports });
  }

  get present(): number {
    return this.#history.at(-1)?.lamports ?? minimumTip;
  }

  /** Values in force at a time since `sinceMs`. */
  since(sinceMs: number): number[] {
    const first = this.#history.findLastIndex(({ fromMs }) => fromMs <= sinceMs);
    return this.#history.slice(Math.max(0, first)).map(({ lamports }) => lamports);
  }
}
