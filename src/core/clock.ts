// Clock: the only place in TypeScript that knows the time or waits.
//
// Rules and adapters take a Clock; main hands them the system's, tests a manual one
// (test/support/clocks/manual-clock.ts).

export interface Timer {
  /** Nothing happens afterwards. Idempotent. */
  cancel(): void;
}

export interface Clock {
  /** Wall clock, nanoseconds since 1970 (UTC). May jump when the system's clock is set. */
  nowNs(): bigint;
  /** Nanoseconds since an arbitrary moment; never goes back. For durations. */
  monotonicNs(): bigint;
  /** Calls `action` once, `delayMs` from now. */
  after(delayMs: number, action: () => void): Timer;
  /** Calls `action` every `periodMs`, first after one period. Missed calls are not made up for. */
  every(periodMs: number, action: () => void): Timer;
  /** Settles after `delayMs`; at once, without error, when `signal` is or becomes aborted. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

/** Builds `sleep` from `after`, so that every clock waits the same way. */
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
 * Wall time with the resolution of the monotonic clock. Date.now() is cut to milliseconds, so each
 * difference of the two clocks is too small, by nothing at the best of many moments: the largest
 * one holds, until the wall clock was set back.
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
    // In this order: a thread that is held up between the two makes their difference too small, as
    // cutting does. The other way round it would tell a time that is still to come.
    const wallMs = this.#wallMs();
    const monotonicNs = this.#monotonicNs();
    const differenceNs = BigInt(wallMs) * msNs - monotonicNs;
    const known = this.#differenceNs;
    // More than what is cut, and some for the time between the two readings.
    const wasSetBack = known !== undefined && known - differenceNs > 2n * msNs;
    if (known === undefined || differenceNs > known || wasSetBack) {
      this.#differenceNs = differenceNs;
      return monotonicNs + differenceNs;
    }
    return monotonicNs + known;
  }
}

const msNs = 1_000_000n;
const wallClock = new WallClock(
  () => Date.now(),
  () => process.hrtime.bigint(),
);

/**
 * The system's clock. `nowNs` is at most a millisecond behind the kernel's wall clock, mostly some
 * microseconds. Timers keep the process alive until cancelled.
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
