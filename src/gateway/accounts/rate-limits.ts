// Rate limits: one token bucket per caller.
//
// The gateway queries it for keys and for addresses. Callers pass a monotonic time; levels are
// exact in whole nanoseconds. The table is bounded: it drops the least recently active caller, who
// starts again with a full bucket.

import { ShredwayError } from "../../core/errors.ts";

const secondNs = 1_000_000_000;
/** A full bucket, in calls times 10^9, must be an exact number. */
const rateBurstMax = 4_000_000;

interface RateLimit {
  /** Whole calls per second, from 1. */
  readonly requestsPerSecond: number;
  /** Burst size: calls of a full bucket, from 1. */
  readonly burst: number;
}

export interface RateAnswer {
  readonly allowed: boolean;
  /** Burst size. */
  readonly limit: number;
  /** Whole calls that are left now. */
  readonly remaining: number;
  /** Whole seconds until the next call is allowed; 0: this call was allowed. */
  readonly retryAfterSeconds: number;
  /** Whole seconds until the bucket is full. */
  readonly resetSeconds: number;
}

interface Bucket {
  /** In calls times 10^9. */
  level: number;
  atNs: bigint;
}

function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= rateBurstMax;
}

export class RateLimits {
  readonly #callersMax: number;
  /** Least recently active first. */
  readonly #buckets = new Map<string, Bucket>();
  /** The most recently active caller, and its bucket. */
  #newest: { readonly caller: string; readonly bucket: Bucket } | null = null;

  constructor(callersMax: number) {
    this.#callersMax = callersMax;
  }

  get size(): number {
    return this.#buckets.size;
  }

  /**
   * Counts one call of `caller` at `nowNs` (monotonic). A refused call consumes no token. Throws
   * ShredwayError "value_invalid" for an invalid rate or burst.
   */
  take(caller: string, { requestsPerSecond, burst }: RateLimit, nowNs: bigint): RateAnswer {
    if (!isCount(requestsPerSecond) || !isCount(burst)) {
      throw new ShredwayError(
        "value_invalid",
        `rate limit: expected a rate and a burst from 1 to ${rateBurstMax}, got ${requestsPerSecond} and ${burst}`,
      );
    }
    const full = burst * secondNs;
    const bucket = this.#bucketOf(caller, full, nowNs);
    const elapsedNs = Number(nowNs - bucket.atNs);
    if (elapsedNs > 0) {
      // Compare first: the product of a long time and a high rate would not be exact.
      const isFull = elapsedNs >= Math.ceil((full - bucket.level) / requestsPerSecond);
      bucket.level = isFull ? full : bucket.level + elapsedNs * requestsPerSecond;
      bucket.atNs = nowNs;
    }
    bucket.level = Math.min(bucket.level, full); // the limit may have been lowered since
    const allowed = bucket.level >= secondNs;
    if (allowed) bucket.level -= secondNs;
    const secondsUntil = (level: number): number =>
      Math.ceil(Math.max(0, level - bucket.level) / (requestsPerSecond * secondNs));
    return {
      allowed,
      limit: burst,
      remaining: Math.floor(bucket.level / secondNs),
      retryAfterSeconds: allowed ? 0 : secondsUntil(secondNs),
      resetSeconds: secondsUntil(full),
    };
  }

  #bucketOf(caller: string, full: number, nowNs: bigint): Bucket {
    if (this.#newest?.caller === caller) return this.#newest.bucket;
    const known = this.#buckets.get(caller);
    if (known) {
      this.#buckets.delete(caller);
    } else if (this.#buckets.size >= this.#callersMax) {
      const [longestSilent] = this.#buckets.keys();
      if (longestSilent !== undefined) this.#buckets.delete(longestSilent);
    }
    const bucket = known ?? { level: full, atNs: nowNs };
    this.#buckets.set(caller, bucket);
    this.#newest = { caller, bucket };
    return bucket;
  }
}
