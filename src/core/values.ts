// What parsed JSON can be asked before its shape is known.
//
// Called by whoever reads files and answers that somebody else wrote.

/** Whether a value has named fields: no array, no null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
