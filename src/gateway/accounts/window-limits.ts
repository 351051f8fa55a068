// Window limits: at most N calls of a caller in any period of one second.
//
// Unlike the token buckets of rate-limits.ts, a caller never exceeds N in a second. For public paths. Callers pass a monotonic time. The table is bounded: it drops the least recently
// active caller.

import type { RateAnswer } from "./rate-limits.ts";

const secondNs = 1_000_000_000n;

/** Times of the last calls, as a ring. */
interface Calls {
  readonly times: BigInt64Array;
  /** Index of the oldest one. */
  first: number;
  count: number;
}

export class WindowLimits {
  readonly #limit: number;
  readonly #callersMax: number;
  /** Least recently active first. */
  readonly #callers = new Map<string, Calls>();

  constructor(limit: number, callersMax: number) {
    this.#limit = limit;
    this.#callersMax = callersMax;
  }

  get size(): number {
    return this.#callers.size;
  }

  /** Counts one call of `caller` at `nowNs` (monotonic). A refused call does not count. */
  take(caller: string, nowNs: bigint): RateAnswer {
    const limit = this.#limit;
    const calls = this.#callsOf(caller);
    const { times } = calls;
    while (calls.count > 0 && nowNs - (times[calls.first] ?? 0n) >= secondNs) {
      calls.first = (calls.first + 1) % limit;
      calls.count--;
    }
    const allowed = calls.count < limit;
    if (allowed) times[(calls.first + calls.count++) % limit] = nowNs;
    // The window is a second, so whole seconds round up to one.
    return {
      allowed,
      limit,
      remaining: limit - calls.count,
      retryAfterSeconds: allowed ? 0 : 1,
      resetSeconds: 1,
    };
  }

  #callsOf(caller: string): Calls {
    const known = this.#callers.get(caller);
    if (known) {
      this.#callers.delete(caller);
    } else if (this.#callers.size >= this.#callersMax) {
      const [longestSilent] = this.#callers.keys();
      if (longestSilent !== undefined) this.#callers.delete(longestSilent);
    }
    const calls = known ?? { times: new BigInt64Array(this.#limit), first: 0, count: 0 };
    this.#callers.set(caller, calls);
    return calls;
  }
}
