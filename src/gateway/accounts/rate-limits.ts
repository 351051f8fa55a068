// Rate limits: how many calls one caller may make, and when he may make the next.
//
// Asked by the gateway for keys and for addresses. Token buckets on a monotonic time that is handed
// in, exact in whole nanoseconds. The table is bounded: of too many callers the one that was silent
// longest is forgotten, and starts with a full bucket when he comes back.

import { familyOf } from "../../core/addresses/addresses.ts";
import { ShredwayError } from "../../core/errors.ts";

const secondNs = 1_000_000_000;
/** In units of a call and a nanosecond a full bucket must stay an exact number. */
const rateBurstMax = 4_000_000;

interface RateLimit {
  /** Whole calls per second, from 1. */
  readonly requestsPerSecond: number;
  /** Calls that a rested caller may make at once, from 1. */
  readonly burst: number;
}

interface RateAnswer {
  readonly allowed: boolean;
  /** Calls of a full bucket. */
  readonly limit: number;
  /** Whole calls left at this moment. */
  readonly remaining: number;
  /** Whole seconds until the next call is taken; 0 when one is taken now. */
  readonly retryAfterSeconds: number;
  /** Whole seconds until the bucket is full. */
  readonly resetSeconds: number;
}

interface Bucket {
  /** Calls times 10^9. */
  level: number;
  atNs: bigint;
}

/** The caller behind an address of 16 bytes: of IPv6 a whole /64 is one, for each has as many as he likes. */
export function callerOf(address: Uint8Array): string {
  const length = familyOf(address) === "ipv4" ? 16 : 8;
  return Buffer.from(address.buffer, address.byteOffset, length).toString("latin1");
}

function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= rateBurstMax;
}

export class RateLimits {
  readonly #callersMax: number;
  /** Least recently asked first. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(callersMax: number) {
    this.#callersMax = callersMax;
  }

  get size(): number {
    return this.#buckets.size;
  }

  /**
   * One call of `caller` at `nowNs` (monotonic). A refused call costs nothing. Throws ShredwayError
   * "value_invalid" for limits that are none.
   */
  take(caller: string, { requestsPerSecond, burst }: RateLimit, nowNs: bigint): RateAnswer {
    if (!isCount(requestsPerSecond) || !isCount(burst)) {
      throw new ShredwayError(
        "value_invalid",
        `limit: expected a rate and a burst from 1 to ${rateBurstMax}, got ${requestsPerSecond} and ${burst}`,
      );
    }
    const full = burst * secondNs;
    const bucket = this.#bucketOf(caller, full, nowNs);
    const elapsedNs = Number(nowNs - bucket.atNs);
    if (elapsedNs > 0) {
      // Compared first: the product of a long time and a high rate would not be exact.
      const isFull = elapsedNs >= Math.ceil((full - bucket.level) / requestsPerSecond);
      bucket.level = isFull ? full : bucket.level + elapsedNs * requestsPerSecond;
      bucket.atNs = nowNs;
    }
    bucket.level = Math.min(bucket.level, full); // the limit may have been lowered meanwhile
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
    const known = this.#buckets.get(caller);
    if (known) {
      this.#buckets.delete(caller);
    } else if (this.#buckets.size >= this.#callersMax) {
      const [longestSilent] = this.#buckets.keys();
      if (longestSilent !== undefined) this.#buckets.delete(longestSilent);
    }
    const bucket = known ?? { level: full, atNs: nowNs };
    this.#buckets.set(caller, bucket);
    return bucket;
  }
}
