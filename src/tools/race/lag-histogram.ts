// LagHistogram: how early or late something was, as a distribution of signed nanoseconds.
//
// Answers percentiles and "what share was at most x". Whole nanoseconds below 2,048 are exact, beyond
// that a value is right to a tenth of a per cent; count, least and greatest are exact always. Memory is
// bounded by the number of different buckets, some ten thousands at the very most.

const exactMax = 2048;
const perOctave = 1024;
const log2PerOctave = 10;

function bucketOf(value: number): number {
  const size = Math.abs(value);
  if (size < exactMax) return value;
  const shift = Math.floor(Math.log2(size)) - log2PerOctave;
  const bucket = perOctave * shift + Math.floor(size / 2 ** shift);
  return value < 0 ? -bucket : bucket;
}

/** The value of a bucket that is nearest to nought. */
function lagOf(bucket: number): number {
  const size = Math.abs(bucket);
  if (size < exactMax) return bucket;
  const shift = Math.floor(size / perOctave) - 1;
  const value = (size - perOctave * shift) * 2 ** shift;
  return bucket < 0 ? -value : value;
}

export class LagHistogram {
  count = 0;
  min = Number.POSITIVE_INFINITY;
  max = Number.NEGATIVE_INFINITY;
  readonly #counts = new Map<number, number>();
  #sorted: readonly (readonly [number, number])[] | undefined;

  /** Whole nanoseconds; below 0 is early. */
  record(value: number, times = 1): void {
    const bucket = bucketOf(value);
    this.#counts.set(bucket, (this.#counts.get(bucket) ?? 0) + times);
    this.count += times;
    this.min = Math.min(this.min, value);
    this.max = Math.max(this.max, value);
    this.#sorted = undefined;
  }

  /** Nearest rank, `p` from 0 to 100; null while nothing was recorded. */
  percentile(p: number): number | null {
    if (this.count === 0) return null;
    const rank = Math.max(1, Math.ceil((p / 100) * this.count));
    if (rank === 1) return this.min;
    if (rank === this.count) return this.max;
    let seen = 0;
    for (const [bucket, times] of this.#inOrder()) {
      seen += times;
      if (seen >= rank) return Math.min(Math.max(lagOf(bucket), this.min), this.max);
    }
    return this.max;
  }

  /** How many were at most `value`, to the resolution of the buckets. */
  countAtMost(value: number): number {
    const last = bucketOf(value);
    let seen = 0;
    for (const [bucket, times] of this.#inOrder()) {
      if (bucket > last) break;
      seen += times;
    }
    return seen;
  }

  #inOrder(): readonly (readonly [number, number])[] {
    this.#sorted ??= [...this.#counts].toSorted(([a], [b]) => a - b);
    return this.#sorted;
  }
}
