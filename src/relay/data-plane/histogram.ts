// Histograms of the data plane: log-linear buckets, decoded to percentiles.
//
// The same formula as native/relay/histogram.h: values below 2^P have a bucket each, above that
// every power of two has 2^P buckets.

/** Distribution of durations in nanoseconds; bucket resolution about 6 %. */
export interface Histogram {
  readonly count: bigint;
  readonly max: bigint;
  readonly sum: bigint;
  /** 0 when nothing was counted. */
  readonly mean: number;
  /** Upper edge of the bucket that holds the nearest-rank percentile, at most `max`; 0n when empty. */
  percentile(p: number): bigint;
  /** For each of `edges`, ascending, how many were below it: exact for powers of two. */
  countsBelow(edges: readonly bigint[]): bigint[];
  /** Without the durations that were in `before`, an earlier state of the same histogram. */
  since(before: Histogram): Histogram;
  /** Two for every power of two, from the first that counted something to the last; ascending. */
  bars(): HistogramBar[];
  /** Sum, max, then the bucket counts. */
  readonly words: BigUint64Array;
}

interface HistogramBar {
  /** The largest duration that is counted here. */
  readonly upTo: bigint;
  readonly count: bigint;
}

/** Smallest value that bucket `bucket` counts. */
export function histogramFloor(bucket: number, precisionBits: number): bigint {
  const linear = 1 << precisionBits;
  if (bucket < linear) return BigInt(bucket);
  const shift = (bucket >> precisionBits) - 1;
  return BigInt(linear + (bucket % linear)) << BigInt(shift);
}

/** Number of the first bucket that counts nothing below `edge`. */
function firstBucketFrom(edge: bigint, precisionBits: number): number {
  const linear = 1n << BigInt(precisionBits);
  if (edge <= linear) return Number(edge);
  let shift = 0;
  while (edge >> BigInt(shift) >= 2n * linear) shift++;
  const bucket = (shift << precisionBits) + Number(edge >> BigInt(shift));
  return histogramFloor(bucket, precisionBits) < edge ? bucket + 1 : bucket;
}

/** Decodes `words`: sum, max, then the bucket counts. Keeps a reference: hand over a copy. */
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
      const rank = BigInt(
        Math.max(1, Math.ceil((Math.min(Math.max(p, 0), 100) / 100) * Number(count))),
      );
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
      // As numbers, which are exact up to 2^53: a scrape asks for tens of thousands of them.
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

/** What came after `before`; the largest duration is known to the edge of its bucket. */
function wordsSince(
  now: BigUint64Array,
  before: BigUint64Array,
  precisionBits: number,
): BigUint64Array {
  const words = now.slice();
  // A row of counters that another source has by now: all of it is new.
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
