// The present moment, as the service sees it; the page's one place that reads a clock or sets timers.
//
// Ages and graces are told by the service's clock: the reader's own may be minutes off.

let aheadMs = 0;

/** Milliseconds that only go forward, for waits. */
export function steadyMs(): number {
  return performance.now();
}

/** The service's present moment in milliseconds since 1970. */
export function nowMs(): number {
  return Date.now() + aheadMs;
}

/** Takes the clock from the service. Below half a second it stays: messages take their time. */
export function takeServiceTime(serviceMs: number): void {
  const ahead = serviceMs - Date.now();
  if (Math.abs(ahead - aheadMs) > 500) aheadMs = ahead;
}

/** Returns how to end it. */
export function after(ms: number, work: () => void): () => void {
  const timer = setTimeout(work, ms);
  return () => clearTimeout(timer);
}

/** Returns how to end it. */
export function every(ms: number, work: () => void): () => void {
  const timer = setInterval(work, ms);
  return () => clearInterval(timer);
}

export function chance(): number {
  return Math.random();
}
