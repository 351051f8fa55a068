// Backoff: delay before the live feed reconnects.
//
// Pure. The delay doubles from 1 s to 5 s, so a page is live again at most 5 s after its service. A fifth of it is random, so that open pages do not
// reconnect simultaneously after a restart of the service.

const firstMs = 1000;
const lastMs = 5000;
const chanceShare = 0.2;

/** `failures` counts failures in a row, from 1. `chance` is 0 to 1. */
export function waitMs(failures: number, chance: number): number {
  const whole = Math.min(lastMs, firstMs * 2 ** Math.min(failures - 1, 10));
  return Math.round(whole * (1 - chanceShare * chance));
}
