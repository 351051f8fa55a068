// Small questions about values: what parsed JSON can be asked before its shape is known, and shares.
//
// Called by whoever reads files and answers that somebody else wrote, and by whoever counts.

/** Whether a value has named fields: no array, no null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** numerator / denominator, 0 when there is nothing to divide by. */
export function ratio(numerator: bigint | number, denominator: bigint | number): number {
  return Number(denominator) === 0 ? 0 : Number(numerator) / Number(denominator);
}
