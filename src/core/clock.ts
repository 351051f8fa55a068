// Clock: the only source of time and timers in TypeScript.
//
// Classes take a Clock. The service passes the system's clock, tests pass a manual one
// (test/support/clocks/manual-clock.ts).

export interface Timer {
  /** Stops the timer. Idempotent. */
  cancel(): void;
}

export interface Clock {
  /** Wall clock, nanoseconds since 1970 (UTC). May jump when the system's clock is set. */
  nowNs(): bigint;
  /** Nanoseconds since an arbitrary moment; never goes back. For durations. */
  monotonicNs(): bigint;
  /** Calls `action` once, `delayMs` from now. */
  after(delayMs: number, action: () => void): Timer;
  /** Calls `action` every `periodMs`, first after one period. Missed calls are skipped. */
  every(periodMs: number, action: () => void): Timer;
  /** Settles after `delayMs`; at once, without error, when `signal` is or becomes aborted. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

/** Implements `sleep` by `after`, for every clock. */
export function sleepWith(clock: Pick<Clock, "after">): Clock["sleep"] {
  return (delayMs, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) {
        resolve();
        return;
      }
      const finish = (): void => {
        timer.cancel();
        signal?.removeEventListener("abort", finish);
        resolve();
      };
      const timer = clock.after(delayMs, finish);
      signal?.addEventListener("abort", finish, { once: true });
    });
}

function systemAfter(delayMs: number, action: () => void): Timer {
  const handle = setTimeout(action, delayMs);
  return { cancel: () => clearTimeout(handle) };
}

/**
 * Wall-clock time with the resolution of the monotonic clock. Date.now() is truncated to milliseconds, so
 * every difference of the two clocks is too small by up to a millisecond. The largest difference seen is
 * used, until the wall clock is set back.
 */
export class WallClock {
  readonly #wallMs: () => number;
  readonly #monotonicNs: () => bigint;
  #differenceNs: bigint | undefined;

  constructor(wallMs: () => number, monotonicNs: () => bigint) {
    this.#wallMs = wallMs;
    this.#monotonicNs = monotonicNs;
  }

  nowNs(): bigint {
    // In this order, because a delay between the two readings makes the difference smaller, as truncation
    // does. In the other order the result could lie in the future.
    const wallMs = this.#wallMs();
    const monotonicNs = this.#monotonicNs();
    const differenceNs = BigInt(wallMs) * msNs - monotonicNs;
    const known = this.#differenceNs;
    if (known === undefined || differenceNs > known) {
      this.#differenceNs = differenceNs;
      return monotonicNs + differenceNs;
    }
    const setBackNs = known - differenceNs > setBackMinNs ? this.#setBackNs(known) : 0n;
    this.#differenceNs = known - setBackNs;
    return monotonicNs + known - setBackNs;
  }

  /** Time by which the wall clock was set back; 0: it was not, but a delay between the two readings looked like it. */
  #setBackNs(knownNs: bigint): bigint {
    for (let attempt = 0; attempt < readingsMax; attempt++) {
      const beforeNs = this.#monotonicNs();
      const wallMs = this.#wallMs();
      const afterNs = this.#monotonicNs();
      if (afterNs - beforeNs >= msNs) continue;
      const setBackNs = knownNs - (BigInt(wallMs) * msNs - afterNs);
      return setBackNs > setBackMinNs ? setBackNs : 0n;
    }
    return 0n; // the next call decides
  }
}

const msNs = 1_000_000n;
/** More than the truncation, and some for the time between the two readings. */
const setBackMinNs = 2n * msNs;
/** Attempts to read both clocks without a delay between them. */
const readingsMax = 3;
const wallClock = new WallClock(
  () => Date.now(),
  () => process.hrtime.bigint(),
);

/**
 * The system's clock. `nowNs` is at most a millisecond behind the kernel's wall clock, usually some
 * microseconds. Timers keep the process alive until they are cancelled.
 */
export const systemClock: Clock = {
  nowNs: () => wallClock.nowNs(),
  monotonicNs: () => process.hrtime.bigint(),
  after: systemAfter,
  every: (periodMs, action) => {
    const handle = setInterval(action, periodMs);
    return { cancel: () => clearInterval(handle) };
  },
  sleep: sleepWith({ after: systemAfter }),
};
