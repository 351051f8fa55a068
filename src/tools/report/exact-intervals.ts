// Exact intervals for independent samples: shares (Clopper and Pearson) and percentiles (order statistics).
// Pure.
//
// Used by `land` beside the block bootstrap, which says nothing about what never happened: a sender that
// landed all of 40 transactions would get the interval 100 % to 100 %. Both intervals hold their level for
// any distribution of independent samples.

import type { Interval } from "./bootstrap.ts";

/** ln(n!) for n up to the largest one asked for. */
const logFactorials = [0];

function logFactorial(n: number): number {
  for (let i = logFactorials.length; i <= n; i++) {
    logFactorials.push((logFactorials[i - 1] ?? 0) + Math.log(i));
  }
  return logFactorials[n] ?? 0;
}

function binomial(hits: number, of: number, share: number): number {
  if (share <= 0) return hits === 0 ? 1 : 0;
  if (share >= 1) return hits === of ? 1 : 0;
  const choices = logFactorial(of) - logFactorial(hits) - logFactorial(of - hits);
  return Math.exp(choices + hits * Math.log(share) + (of - hits) * Math.log1p(-share));
}

/** Probability of at most `hits` hits in `of` attempts. */
function atMost(hits: number, of: number, share: number): number {
  let total = 0;
  for (let i = 0; i <= hits; i++) total += binomial(i, of, share);
  return Math.min(1, total);
}

/** The root of a function that is positive below it. */
function rootOf(isBelow: (share: number) => boolean): number {
  let [low, high] = [0, 1];
  for (let i = 0; i < 30; i++) {
    const middle = (low + high) / 2;
    if (isBelow(middle)) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** Interval of a share after `hits` hits in `of` attempts; `level` such as 0.95. */
export function shareInterval(hits: number, of: number, level: number): Interval {
  const outside = (1 - level) / 2;
  return {
    low: hits === 0 ? 0 : rootOf((share) => 1 - atMost(hits - 1, of, share) < outside),
    high: hits === of ? 1 : rootOf((share) => atMost(hits, of, share) > outside),
  };
}

/**
 * Ranks (from 1) of the sorted samples between which the percentile `share` (0 to 1) lies; null: `count`
 * samples are too few for this level.
 */
export function percentileRanks(
  share: number,
  count: number,
  level: number,
): { readonly low: number; readonly high: number } | null {
  const outside = (1 - level) / 2;
  // The percentile is below the sample of rank r if fewer than r samples are below it.
  let low = 0;
  let high = count + 1;
  let below = 0;
  for (let rank = 1; rank <= count; rank++) {
    below += binomial(rank - 1, count, share);
    if (below <= outside) low = rank;
    if (1 - below <= outside) {
      high = rank;
      break;
    }
  }
  return low >= 1 && high <= count ? { low, high } : null;
}

/** The smallest interval that contains both. */
export function hull(a: Interval, b: Interval): Interval {
  return { low: Math.min(a.low, b.low), high: Math.max(a.high, b.high) };
}
