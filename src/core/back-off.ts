// Back-off: growing delays between the attempts of an action that fails. Pure.

interface BackOffRange {
  readonly firstMs: number;
  readonly maxMs: number;
}

/**
 * The delay after a failure that follows `failures` others in a row: each twice the one before. `random`
 * (0 to 1) removes up to a half, so that many clients do not return together.
 */
export function backOffMs({ firstMs, maxMs }: BackOffRange, failures: number, random = 0): number {
  return Math.min(maxMs, firstMs * 2 ** failures) * (1 - random / 2);
}
