// Log-linear histograms: below 2^P each whole number has a bucket, above that every power of two has 2^P
// buckets.
//
// native/relay/histogram.h has the same formula for the data plane. decodeHistogram reads the data plane's
// counts (P = 4, resolution about 6 %); LagHistogram counts signed nanoseconds for races (P = 10, 0.1 %).
// Metrics of the control plane have fixed decimal bounds instead: duration-histogram.ts.

/** Distribution of durations in nanoseconds; bucket resolution about 6 %. */
export interface Histogram {
  readonly count: bigint;
  readonly max: bigint;
  readonly sum: bigint;
  /** 0: the histogram is empty. */
  readonly mean: number;
  /** Upper edge of the bucket of the nearest-rank percentile, at most `max`; 0n: empty. */
  percentile(p: number): bigint;
  /** For each of `edges` (ascending), the number of values below it; exact for powers of two. */
  countsBelow(edges: readonly bigint[]): bigint[];
  /** Only the durations that were added since `before`, an earlier state of the same histogram. */
  since(before: Histogram): Histogram;
  /** Two edges for every power of two, from the first non-empty bucket to the last; ascending. */
  bars(): HistogramBar[];
  /** Sum, maximum, then the bucket counts. */
  readonly words: BigUint64Array;
}

interface HistogramBar {
  /** The largest duration that this histogram counts. */
  readonly upTo: bigint;
  readonly count: bigint;
}

/** Number of the bucket that counts `value`, a whole number from 0. */
function bucketOf(value: number, precisionBits: number): number {
  const linear = 1 << precisionBits;
  if (value < linear) return value;
  const shift = Math.floor(Math.log2(value)) - precisionBits;
  return linear * shift + Math.floor(value / 2 ** shift);
}

/** Smallest value of bucket `bucket`; exact, because it has at most P + 1 significant bits. */
function floorOf(bucket: number, precisionBits: number): number {
  const linear = 1 << precisionBits;
  if (bucket < linear) return bucket;
  return (linear + (bucket % linear)) * 2 ** (Math.floor(bucket / linear) - 1);
}

/** The same as a bigint. */
export function histogramFloor(bucket: number, precisionBits: number): bigint {
  return BigInt(floorOf(bucket, precisionBits));
}

/** Number of the first bucket without values below `edge`. */
function firstBucketFrom(edge: bigint, precisionBits: number): number {
  const bucket = bucketOf(Number(edge), precisionBits);
  return floorOf(bucket, precisionBits) < edge ? bucket + 1 : bucket;
}

/** Nearest rank of percentile `p` (0 to 100) among `count` values, from 1. */
function rankOf(p: number, count: number): number {
  return Math.max(1, Math.ceil((Math.min(Math.max(p, 0), 100) / 100) * count));
}

/** Decodes `words`: sum, maximum, then the bucket counts. Stores a reference, so pass a copy. */
export function decodeHistogram(words: BigUint64Array, precisionBits: number): Histogram {
  const buckets = words.subarray(2);
  const max = words[1] ?? 0n;
  let count = 0n;
  for (const bucket of buckets) count += bucket;
  return {
    count,
    max,
    sum: words[0] ?? 0n,
    words,
    since: (before) =>
      decodeHistogram(wordsSince(words, before.words, precisionBits), precisionBits),
    bars: () => barsOf(buckets, precisionBits),
    mean: count === 0n ? 0 : Number(words[0] ?? 0n) / Number(count),
    percentile(p: number): bigint {
      if (count === 0n) return 0n;
      const rank = BigInt(rankOf(p, Number(count)));
      let seen = 0n;
      for (let bucket = 0; bucket < buckets.length; bucket++) {
        seen += buckets[bucket] ?? 0n;
        if (seen >= rank) {
          const edge = histogramFloor(bucket + 1, precisionBits) - 1n;
          return edge < max ? edge : max;
        }
      }
      return max;
    },
    countsBelow(edges: readonly bigint[]): bigint[] {
      // Numbers are exact up to 2^53 and faster: a scrape reads tens of thousands of them.
      const halves = new Uint32Array(buckets.buffer, buckets.byteOffset, 2 * buckets.length);
      let below = 0;
      let bucket = 0;
      return edges.map((edge) => {
        const end = Math.min(firstBucketFrom(edge, precisionBits), buckets.length);
        for (; bucket < end; bucket++) {
          below += (halves[2 * bucket] ?? 0) + (halves[2 * bucket + 1] ?? 0) * 2 ** 32;
        }
        return BigInt(below);
      });
    },
  };
}

/** The durations since `before`; the maximum is known up to the edge of its bucket. */
function wordsSince(
  now: BigUint64Array,
  before: BigUint64Array,
  precisionBits: number,
): BigUint64Array {
  const words = now.slice();
  // Another source now uses this row of counters, so all of its counts are new.
  if (before.length !== now.length || now.some((word, i) => word < (before[i] ?? 0n))) return words;
  let highest = -1;
  for (let i = 0; i < words.length; i++) {
    if (i === 1) continue;
    words[i] = (now[i] ?? 0n) - (before[i] ?? 0n);
    if (i > 1 && words[i] !== 0n) highest = i - 2;
  }
  const edge = highest < 0 ? 0n : histogramFloor(highest + 1, precisionBits) - 1n;
  const max = now[1] ?? 0n;
  words[1] = edge < max ? edge : max;
  return words;
}

function barsOf(buckets: BigUint64Array, precisionBits: number): HistogramBar[] {
  const wide = 1 << Math.max(0, precisionBits - 1);
  const bars: HistogramBar[] = [];
  for (let bucket = 0; bucket < buckets.length; bucket += wide) {
    let count = 0n;
    for (const one of buckets.subarray(bucket, bucket + wide)) count += one;
    if (count === 0n && bars.length === 0) continue;
    bars.push({ upTo: histogramFloor(bucket + wide, precisionBits) - 1n, count });
  }
  while (bars.at(-1)?.count === 0n) bars.pop();
  return bars;
}

/** P for lags. */
const lagPrecisionBits = 10;

function lagBucketOf(value: number): number {
  const bucket = bucketOf(Math.abs(value), lagPrecisionBits);
  return value < 0 ? -bucket : bucket;
}

/** The value of a bucket that is closest to zero. */
function lagOf(bucket: number): number {
  const size = floorOf(Math.abs(bucket), lagPrecisionBits);
  return bucket < 0 ? -size : size;
}

/**
 * Distribution of signed nanoseconds, early or late. Values below 2,048 ns are exact, larger ones
 * have an error of at most 0.1 %; count, minimum and maximum are exact. Memory is bounded by the
 * number of distinct buckets, some ten thousand.
 */
export class LagHistogram {
  count = 0;
  min = Number.POSITIVE_INFINITY;
  max = Number.NEGATIVE_INFINITY;
  readonly #counts = new Map<number, number>();
  #sorted: readonly (readonly [number, number])[] | undefined;

  /** Adds a lag in whole nanoseconds; a negative one is early. */
  record(value: number, times = 1): void {
    const bucket = lagBucketOf(value);
    this.#counts.set(bucket, (this.#counts.get(bucket) ?? 0) + times);
    this.count += times;
    this.min = Math.min(this.min, value);
    this.max = Math.max(this.max, value);
    this.#sorted = undefined;
  }

  /** Nearest-rank percentile, `p` from 0 to 100; null: nothing was recorded. */
  percentile(p: number): number | null {
    if (this.count === 0) return null;
    const rank = rankOf(p, this.count);
    if (rank === 1) return this.min;
    if (rank === this.count) return this.max;
    let seen = 0;
    for (const [bucket, times] of this.#inOrder()) {
      seen += times;
      if (seen >= rank) return Math.min(Math.max(lagOf(bucket), this.min), this.max);
    }
    return this.max;
  }

  /** Number of lags that were at most `value`, up to the resolution of the buckets. */
  countAtMost(value: number): number {
    const last = lagBucketOf(value);
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
