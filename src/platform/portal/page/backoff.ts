// How long to wait before the live feed is opened again.
//
// Pure. Doubles from 1 s to 30 s; a fifth of it is chance, so that after a restart of the service not
// every open page comes in the same moment.

const firstMs = 1000;
const lastMs = 30_000;
const chanceShare = 0.2;

/** `failures`: in a row, from 1. `chance`: 0 to 1. */
export function waitMs(failures: number, chance: number): number {
  const whole = Math.min(lastMs, firstMs * 2 ** Math.min(failures - 1, 10));
  return Math.round(whole * (1 - chanceShare * chance));
}
