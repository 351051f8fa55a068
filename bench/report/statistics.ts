// Statistics of the bench: quartiles, ratios round by round, and verdicts on targets.
//
// Pure. On a shared machine a mean says little, so medians and quartiles are reported. The interval
// between the quartiles is compared with a target, so noise widens the interval and never hides a
// miss.

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

/** Distance of the quartiles as a share of the median; 0 for a single value or none. */
export function spread(summary: Summary): number {
  return summary.count === 0 || summary.median === 0
    ? 0
    : (summary.high - summary.low) / Math.abs(summary.median);
}

/** Values of one variant by round. */
export type Rounds = ReadonlyMap<number, number>;

/**
 * Combines values that were measured in the same round. Rounds that lack one of them are omitted.
 */
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

/** Below this number of rounds, quartiles are not an interval for judging a ratio. */
export const judgedRoundsMin = 5;

/**
 * met: the whole interval is on the target's side. missed: the whole interval is beyond the target.
 * inconclusive: the target lies within the interval, or there is no interval.
 */
export type Verdict = "met" | "missed" | "inconclusive";

export type Bound = "at most" | "at least";

export interface Target {
  readonly target: number;
  /** Default: "at most". */
  readonly bound?: Bound | undefined;
  /**
   * A ratio to something measured in the same rounds; never met after fewer than judgedRoundsMin.
   */
  readonly isRatio?: boolean | undefined;
}

/**
 * Compares the interval from the lower to the upper quartile with the target; a value equal to the
 * target meets it. A single absolute value is an interval of width 0.
 */
export function judge(
  value: Summary,
  { target, bound = "at most", isRatio = false }: Target,
): Verdict {
  if (value.count === 0 || Number.isNaN(value.median)) return "inconclusive";
  const [best, worst] = bound === "at most" ? [value.low, value.high] : [value.high, value.low];
  const meets = (one: number) => (bound === "at most" ? one <= target : one >= target);
  if (!meets(best)) return "missed";
  const isEnough = !isRatio || value.count >= judgedRoundsMin;
  return meets(worst) && isEnough ? "met" : "inconclusive";
}

/**
 * Noise of the machine: spread of the CPU time of constant work, and the share by which wall time
 * exceeded it (another process used the CPU). Both as shares; 0 is a quiet machine.
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
