// The knowledge of the checks about one transaction of one account.

import { OpenAttempts } from "./open-attempts.ts";
import { ShownTimeline } from "./shown-timeline.ts";
import type { SentTransaction } from "./transactions.ts";

export const endKinds = ["landed", "landed_failed", "expired", "superseded", "rejected"] as const;
export type EndKind = (typeof endKinds)[number];

/**
 * A submission is certainly sent again for this time: two minutes. A restart takes its age from the wall clock,
 * which may have been set forward several times.
 */
export const sentForMs = 120_000 - 40_000;

/** One transaction of one account. */
export interface AccountRecord {
  readonly customer: number;
  readonly transaction: SentTransaction;
  isAcknowledged: boolean;
  /** When it was first submitted. */
  readonly beganMs: number;
  /** Calls that submitted it. */
  calls: number;
  /** All of them were of sendTransaction, without a limit on resends. */
  isResent: boolean;
  /** All of them were for alternative partners only. */
  isForPartnersOnly: boolean;
  /** The end that the service reported; null: none, or a crash may have lost it. */
  reported: EndKind | null;
  reportedMs: number;
  /** The same, whatever crashed since; null: it has never reported one. */
  firstEnd: EndKind | null;
  /** When an end was last reported. */
  endedMs: number;
  /** The service reported an end in this life, and the customer did not submit it again. */
  isEnded: boolean;
  /** The time from which on nothing can change its end; null: something can. */
  overSinceMs: number | null;
  readonly live: ShownTimeline;
  readonly attempts: OpenAttempts;
}

/** A transaction that the account submits for the first time. */
export function newAccountRecord(
  customer: number,
  transaction: SentTransaction,
  nowMs: number,
): AccountRecord {
  return {
    customer,
    transaction,
    isAcknowledged: false,
    beganMs: nowMs,
    calls: 0,
    isResent: true,
    isForPartnersOnly: true,
    reported: null,
    reportedMs: 0,
    firstEnd: null,
    endedMs: 0,
    isEnded: false,
    overSinceMs: null,
    live: new ShownTimeline(),
    attempts: new OpenAttempts(),
  };
}
