// Limits of the pipeline: numbers, durations and intervals, each with its reason.

import type { LifetimeLimits } from "../../core/transactions/lifetimes.ts";

export interface DispatchLimits {
  readonly resendMs: number;
  /** Submissions older than this are observed to their end, but not sent again. */
  readonly resendForMs: number;
  /** Most submissions that may wait for protection. */
  readonly heldMax: number;
  /** As in ObserverLimits. */
  readonly observationMs: number;
}

export interface ObserverLimits extends LifetimeLimits {
  /** Interval of questions to the node about transactions that are new or in a block. */
  readonly questionMs: number;
  /** Most concurrent `getSignatureStatuses` calls, of 256 signatures each. */
  readonly questionsMax: number;
  /** How long an observation in shreds proves that a transaction is in a block. */
  readonly observationMs: number;
  /** Without a node: time after an observation in which its block may begin again. */
  readonly restartMs: number;
  /** Without a node: how long to wait for an observation in shreds if the slot length is not known. */
  readonly unobservedMs: number;
  /** With a node: longest time that a transaction is observed. */
  readonly ageMaxMs: number;
}

export interface PipelineLimits extends DispatchLimits, ObserverLimits {
  /** Most open transactions. */
  readonly openMax: number;
  /** Most open transactions of one account, so that no account can use up `openMax`. */
  readonly openPerAccountMax: number;
  /** Most ended transactions in memory; older ones are read from the store. */
  readonly endedMax: number;
  /** How long the store holds ended transactions. */
  readonly historyMs: number;
}

export const defaultLimits: PipelineLimits = {
  openMax: 50_000,
  openPerAccountMax: 10_000,
  // At 100 per second, the minutes during which a client may send the same transaction again.
  endedMax: 50_000,
  historyMs: 24 * 3_600_000,
  resendMs: 2_000,
  // Twice 150 slots of 400 ms. Only nonces live longer, and their owner may submit again.
  resendForMs: 120_000,
  heldMax: 10_000,
  questionMs: 400,
  questionsMax: 8,
  // Three times the usual delay of a node behind the first shreds.
  observationMs: 3_000,
  // 150 blocks take 22 s at 150 ms and 60 s at 400 ms.
  firstAskMs: 20_000,
  askMs: 5_000,
  // More than twelve slots; nodes behind one address differ by less.
  settleMs: 5_000,
  asksMax: 16,
  // The leader begins again within its slot of at most 400 ms; shreds may be late.
  restartMs: 2_000,
  unobservedMs: 120_000,
  ageMaxMs: 24 * 3_600_000,
};
