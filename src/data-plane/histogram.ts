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
