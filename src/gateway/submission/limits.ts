// Limits of the pipeline: how many, how long, how often; each with its reason.

import type { LifetimeLimits } from "../../core/transactions/lifetimes.ts";

export interface DispatchLimits {
  readonly resendMs: number;
  /** Older ones are watched to their end, but not sent again. */
  readonly resendForMs: number;
  /** Submissions that wait for protection. */
  readonly heldMax: number;
  /** As in WatchLimits. */
  readonly sightMs: number;
}

export interface WatchLimits extends LifetimeLimits {
  /** Between two looks at what was seen or has just come. */
  readonly lookMs: number;
  /** `getSignatureStatuses` calls under way at once, of 256 signatures each. */
  readonly looksMax: number;
  /** So long a landing observation counts as proof that it is in a block. */
  readonly sightMs: number;
  /** Without a node: so long it is waited for a landing observation, when the slot length is not known. */
  readonly unobservedMs: number;
  /** With a node: nothing is watched longer. */
  readonly ageMaxMs: number;
}

export interface PipelineLimits extends DispatchLimits, WatchLimits {
  /** Transactions whose end is awaited. */
  readonly openMax: number;
  /** Of one account: nobody shall take the room of all the others. */
  readonly openPerAccountMax: number;
  /** Ended transactions in memory; older ones are asked from the store. */
  readonly endedMax: number;
  /** So long the store keeps what ended. */
  readonly historyMs: number;
}

export const defaultLimits: PipelineLimits = {
  openMax: 50_000,
  openPerAccountMax: 10_000,
  // At 100 a second, so long as a client may send the same transaction again: some minutes.
  endedMax: 50_000,
  historyMs: 24 * 3_600_000,
  resendMs: 2_000,
  // Twice 150 slots of 400 ms: only nonces live longer, and whoever has one may send it again.
  resendForMs: 120_000,
  heldMax: 10_000,
  lookMs: 400,
  looksMax: 8,
  // Three times what a node is usually behind the first shreds.
  sightMs: 3_000,
  // 150 blocks take 22 s at 150 ms and 60 s at 400 ms.
  firstAskMs: 20_000,
  askMs: 5_000,
  // Twelve slots and more: nodes behind one address differ by less.
  settleMs: 5_000,
  asksMax: 16,
  unobservedMs: 120_000,
  ageMaxMs: 24 * 3_600_000,
};
