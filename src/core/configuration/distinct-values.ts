// Finds values of a list that occur twice.
//
// Used by rules.ts and rules-subscribers.ts. Pure.

/** Reports every value that occurs twice. Values without a key are not compared. */
export function checkDistinct<T>(
  values: readonly T[],
  keyOf: (value: T) => string | undefined,
  report: (index: number, first: number) => void,
): void {
  const firstIndex = new Map<string, number>();
  for (const [index, value] of values.entries()) {
    const key = keyOf(value);
    if (key === undefined) continue;
    const first = firstIndex.get(key);
    if (first === undefined) firstIndex.set(key, index);
    else report(index, first);
  }
}
