// Attempts of one transaction that have been queued at a route and have no result yet.

import type { ShownEvent } from "./shown-timeline.ts";

/** The longest time-outs together: a copy waits 4 s for its leader, and a process that hangs is noticed in 3 s. */
const resultMs = 10_000;
const results: ReadonlySet<string> = new Set(["acknowledged", "refused", "failed", "dropped"]);

export class OpenAttempts {
  readonly #sinceMs = new Map<string, number>();

  add({ kind, route, attempt }: ShownEvent, nowMs: number): void {
    if (route === undefined) return;
    const name = `${attempt} at ${route}`;
    if (kind === "queued") this.#sinceMs.set(name, nowMs);
    if (results.has(kind)) this.#sinceMs.delete(name);
  }

  /** The transaction has ended, or the service was killed. */
  clear(): void {
    this.#sinceMs.clear();
  }

  /** An attempt that should have had a result; null: none. */
  overdue(nowMs: number): string | null {
    for (const [name, sinceMs] of this.#sinceMs)
      if (nowMs - sinceMs > resultMs) return `${name} after ${Math.round(nowMs - sinceMs)} ms`;
    return null;
  }
}
