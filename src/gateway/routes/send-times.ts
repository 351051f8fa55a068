// Percentiles of the time from offer to sending, over the last minutes.
//
// RouteCounter has one. Memory is bounded: three slices of a minute, each a log-linear histogram of
// microseconds with steps of about 6 %, 1.7 kB each.

const sliceNs = 60_000_000_000n;
const sliceCount = 3;
const precisionBits = 4;
const linear = 1 << precisionBits;
/** Longer times (above 71 minutes) count as this value. */
const microsecondsMax = 2 ** 32 - 1;
const bucketCount = (32 - precisionBits + 1) * linear;

function bucketOf(microseconds: number): number {
  if (microseconds < linear) return microseconds;
  const shift = 31 - Math.clz32(microseconds) - precisionBits;
  return (shift << precisionBits) + (microseconds >>> shift);
}

/** Largest value of `bucket`. */
function ceilingOf(bucket: number): number {
  if (bucket < linear) return bucket;
  const shift = (bucket >> precisionBits) - 1;
  return (linear + (bucket % linear) + 1) * 2 ** shift - 1;
}

interface Slice {
  number: bigint;
  readonly counts: Uint32Array;
}

export class SendTimes {
  readonly #slices: readonly Slice[] = Array.from({ length: sliceCount }, () => ({
    number: -1n,
    counts: new Uint32Array(bucketCount),
  }));

  /** `nowNs`: monotonic. */
  add(durationNs: bigint, nowNs: bigint): void {
    const number = nowNs / sliceNs;
    const slice = this.#slices[Number(number % BigInt(sliceCount))];
    if (!slice) return;
    if (slice.number !== number) {
      slice.number = number;
      slice.counts.fill(0);
    }
    const microseconds = Math.max(
      0,
      Math.min(microsecondsMax, Math.round(Number(durationNs) / 1000)),
    );
    const bucket = bucketOf(microseconds);
    slice.counts[bucket] = (slice.counts[bucket] ?? 0) + 1;
  }

  /** Nearest rank, 0 < p <= 100, rounded up to the end of its bucket; null: nothing was sent. */
  percentile(p: number, nowNs: bigint): number | null {
    const oldest = nowNs / sliceNs - BigInt(sliceCount - 1);
    const recent = this.#slices.filter(({ number }) => number >= 0n && number >= oldest);
    const total = recent.reduce(
      (sum, { counts }) => counts.reduce((all, count) => all + count, sum),
      0,
    );
    if (total === 0) return null;
    const rank = Math.max(1, Math.ceil((p / 100) * total));
    let cumulative = 0;
    for (let bucket = 0; bucket < bucketCount; bucket++) {
      for (const { counts } of recent) cumulative += counts[bucket] ?? 0;
      if (cumulative >= rank) return ceilingOf(bucket);
    }
    return null;
  }
}
