// Statistics of the bench: quartiles, ratios taken round by round, and when to give no verdict.
//
// Pure. On a shared machine a mean says little: medians and quartiles are reported, and a ratio is
// judged only when its reference held still (quartiles within 5 % of the median).

export interface Summary {
  readonly median: number;
  /** Lower and upper quartile. */
  readonly low: number;
  readonly high: number;
  readonly count: number;
}

/** Quantile by linear interpolation between the closest ranks; NaN without values. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * part;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place - Math.floor(place));
}

export function summarise(values: readonly number[]): Summary {
  return {
    median: quantile(values, 0.5),
    low: quantile(values, 0.25),
    high: quantile(values, 0.75),
    count: values.length,
  };
}

/** Distance of the quartiles as a part of the median; 0 for a single value or none. */
export function spread(summary: Summary): number {
  return summary.count === 0 || summary.median === 0
    ? 0
    : (summary.high - summary.low) / Math.abs(summary.median);
}

/** Values of one variant by round. */
export type Rounds = ReadonlyMap<number, number>;

/** Combines values that were measured in the same round; rounds that one of them lacks drop out. */
export function perRound(
  inputs: readonly Rounds[],
  combine: (values: readonly number[]) => number,
): number[] {
  const [first, ...others] = inputs;
  if (!first) return [];
  const results: number[] = [];
  for (const [round, value] of first) {
    const rest = others.map((rounds) => rounds.get(round));
    const values = rest.filter((other) => other !== undefined);
    if (values.length === others.length) results.push(combine([value, ...values]));
  }
  return results;
}

export const referenceSpreadMax = 0.05;
/** Quartiles of fewer rounds say nothing. */
export const judgedRoundsMin = 5;

export type Outcome = "reached" | "missed" | "no verdict";

export type Bound = "at most" | "at least";

/**
 * Judges `value` against `limit`. When it is relative to a reference: only after enough rounds, and
 * only when the reference was steady.
 */
export function judge(
  value: Summary,
  limit: number,
  reference?: Summary,
  bound: Bound = "at most",
): Outcome {
  if (value.count === 0 || Number.isNaN(value.median)) return "no verdict";
  if (reference && value.count < judgedRoundsMin) return "no verdict";
  if (reference && spread(reference) > referenceSpreadMax) return "no verdict";
  const holds = bound === "at most" ? value.median <= limit : value.median >= limit;
  return holds ? "reached" : "missed";
}

/**
 * How unsteady the machine was: spread of the processor time of constant work, and by how much wall
 * time exceeded it (somebody else had the CPU). Both as parts; 0 is perfectly quiet.
 */
export interface NoiseIndex {
  readonly cpuSpread: number;
  readonly stolen: number;
}

export function noiseIndex(slots: readonly { cpuNs: number; wallNs: number }[]): NoiseIndex {
  const cpu = slots.reduce((sum, slot) => sum + slot.cpuNs, 0);
  const wall = slots.reduce((sum, slot) => sum + slot.wallNs, 0);
  return {
    cpuSpread: spread(summarise(slots.map((slot) => slot.cpuNs))),
    stolen: cpu === 0 ? 0 : Math.max(0, wall / cpu - 1),
  };
}
