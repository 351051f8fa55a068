// Small functions on values: checks of parsed JSON of unknown shape, and ratios.

/** Whether a value is an object, but not an array or null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** numerator / denominator; 0 if the denominator is 0. */
export function ratio(numerator: bigint | number, denominator: bigint | number): number {
  return Number(denominator) === 0 ? 0 : Number(numerator) / Number(denominator);
}
