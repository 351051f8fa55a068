// Service clock: the only module of the page that reads a clock, sets timers or draws random numbers.
//
// Ages and grace periods use the service's clock, because the browser's clock can be minutes off.

let aheadMs = 0;

/** Monotonic milliseconds for delays. */
export function steadyMs(): number {
  return performance.now();
}

/** The service's current time in milliseconds since 1970. */
export function nowMs(): number {
  return Date.now() + aheadMs;
}

/**
 * Sets the clock from the service. Ignores differences below half a second: messages have
 * latency.
 */
export function takeServiceTime(serviceMs: number): void {
  const ahead = serviceMs - Date.now();
  if (Math.abs(ahead - aheadMs) > 500) aheadMs = ahead;
}

/** Returns a function that cancels the timer. */
export function after(ms: number, work: () => void): () => void {
  const timer = setTimeout(work, ms);
  return () => clearTimeout(timer);
}

/** Returns a function that cancels the timer. */
export function every(ms: number, work: () => void): () => void {
  const timer = setInterval(work, ms);
  return () => clearInterval(timer);
}

export function chance(): number {
  return Math.random();
}
