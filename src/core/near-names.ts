// Suggests the known name that a mistyped name is closest to, for error messages.
//
// Used by the configuration (keys) and the command line (commands, actions, options). Pure.

/** Texts are compared up to this length; names of keys and commands are shorter. */
const lengthMax = 64;

/**
 * Optimal string alignment: the number of insertions, deletions, replacements and swaps of neighbours
 * that turn `a` into `b`.
 */
function distance(a: string, b: string): number {
  let older: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const differs = a[i - 1] === b[j - 1] ? 0 : 1;
      const replaced = (above[j - 1] ?? 0) + differs;
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwap ? (older[j - 2] ?? 0) + 1 : replaced;
      row.push(Math.min(replaced, swapped, (above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    older = above;
    above = row;
  }
  return above[b.length] ?? 0;
}

/** Compares without case and separators: `shred-version` and `ShredVersion` are one name. */
function simplified(name: string): string {
  return name.slice(0, lengthMax).toLowerCase().replaceAll(/[-_ ]/g, "");
}

/** The known name that is close to `given`; undefined: none is close enough. */
export function nearestName(given: string, known: readonly string[]): string | undefined {
  const text = simplified(given);
  let best: { name: string; steps: number } | undefined;
  for (const name of known) {
    const candidate = simplified(name);
    const steps = distance(text, candidate);
    // A third of the letters may be wrong, and one letter of a short name.
    const stepsMax = Math.max(1, Math.floor(Math.min(text.length, candidate.length) / 3));
    if (steps <= stepsMax && steps < (best?.steps ?? Number.POSITIVE_INFINITY)) {
      best = { name, steps };
    }
  }
  return best?.name;
}

/** `; did you mean workers?`, or "" without a near name. Ends an error message. */
export function didYouMean(given: string, known: readonly string[], prefix = ""): string {
  const near = nearestName(given, known);
  return near === undefined ? "" : `; did you mean ${prefix}${near}?`;
}
