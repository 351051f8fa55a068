// A time limit for a request with fetch, from its begin to the last byte of its response.

import { untilAborted } from "./bounded-body.ts";
import { systemClock } from "./clock.ts";

/** Runs a request with a signal that aborts after `timeoutMs`. Rejects then with an Error "TimeoutError". */
export async function withTimeout<T>(
  timeoutMs: number,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const ending = new AbortController();
  const timer = systemClock.after(timeoutMs, () => {
    ending.abort(new DOMException("The operation was aborted due to timeout", "TimeoutError"));
  });
  try {
    return await untilAborted(ending.signal, run(ending.signal));
  } finally {
    timer.cancel();
  }
}
