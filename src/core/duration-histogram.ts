// DurationHistogram: durations counted in buckets with fixed bounds.
//
// Used for requests, commits and the event loop; read by src/platform/metrics. Counting costs a few
// comparisons. The bounds never change, so that counts of several machines can be added. They are decimal,
// which log-linear buckets (log-linear-histogram.ts) can only approximate.

/** Counts of a distribution; src/platform/metrics writes them as a Prometheus histogram. */
export interface HistogramValue {
  /** Upper bounds, inclusive, ascending, in the unit of the metric. */
  readonly bounds: readonly number[];
  /** For each bound, the number of values that are at most as large. */
  readonly cumulative: readonly (number | bigint)[];
  readonly count: number | bigint;
  readonly sum: number;
}

/** Bounds in seconds: from a call that is answered from memory to one that waits for a node. */
export const durationBounds = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
  10.0,
] as const;

export class DurationHistogram {
  readonly #bounds: readonly number[];
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[] = durationBounds) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  /** A negative duration (clocks of two threads) counts as 0. */
  add(seconds: number): void {
    const value = seconds > 0 ? seconds : 0;
    let at = 0;
    while (at < this.#bounds.length && value > (this.#bounds[at] ?? 0)) at++;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += value;
  }

  addNs(ns: bigint): void {
    this.add(Number(ns) / 1e9);
  }

  value(): HistogramValue {
    let count = 0;
    const cumulative = this.#bounds.map((_, at) => {
      count += this.#counts[at] ?? 0;
      return count;
    });
    count += this.#counts[this.#bounds.length] ?? 0;
    return { bounds: this.#bounds, cumulative, count, sum: this.#sum };
  }
}
