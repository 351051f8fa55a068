// Clock: the only place in TypeScript that knows the time or waits.
//
// Rules and adapters take a Clock; main hands them the system's, tests a manual one
// (test/support/manual-clock.ts).

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
 * The system's clock. `nowNs` has the resolution of Date.now(), one millisecond; nanosecond wall
 * times come with the data plane's snapshots. Timers keep the process alive until cancelled.
 */
export const systemClock: Clock = {
  nowNs: () => BigInt(Date.now()) * 1_000_000n,
  monotonicNs: () => process.hrtime.bigint(),
  after: systemAfter,
  every: (periodMs, action) => {
    const handle = setInterval(action, periodMs);
    return { cancel: () => clearInterval(handle) };
  },
  sleep: sleepWith({ after: systemAfter }),
};
