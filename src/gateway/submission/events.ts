// Events: the inputs of the state machine.
//
// dispatch.ts and outcome-observer.ts report what routes, shreds, the node and timers did; pipeline.ts
// reports calls of accounts. Events are the only way upwards: there are no callbacks.

import type { EndEvent } from "./lifecycle.ts";
import type { AccountTransaction, Submission, TrackedTransaction } from "./tracked-transaction.ts";
import type { TimelineEvent, WithdrawalReason } from "./types.ts";

/** The transaction ended; the kind says how. */
export interface Ended {
  readonly kind:
    | "landing_confirmed"
    | "failure_confirmed"
    | "lifetime_over"
    | "nonce_advanced"
    | "routes_refused";
  readonly tracked: TrackedTransaction;
  readonly reason: string;
  readonly slot: bigint | null;
  readonly err: unknown;
  /** Signature of the transaction that superseded it, if an earlier process knew it. */
  readonly sibling?: string;
}

/** Concerns every account that submitted the transaction. */
export type ChainEvent =
  | Ended
  | {
      readonly kind: "landing_observed";
      readonly tracked: TrackedTransaction;
      readonly slot: bigint;
      readonly atNs: bigint;
    }
  | {
      readonly kind: "landing_withdrawn" | "block_abandoned";
      readonly tracked: TrackedTransaction;
      readonly slot: bigint;
      readonly atNs: bigint;
      readonly cause: WithdrawalReason;
    }
  | {
      readonly kind: "landing_repeated" | "call_refused";
      readonly tracked: TrackedTransaction;
    }
  | {
      readonly kind: "landing_found" | "failure_found" | "end_found";
      readonly tracked: TrackedTransaction;
      readonly end: EndEvent;
    };

/** Concerns one account's submission and all its transactions. */
export type SendingEvent =
  | {
      readonly kind: "route_reported";
      readonly submission: Submission;
      readonly report: TimelineEvent;
    }
  | { readonly kind: "attempts_exhausted"; readonly submission: Submission };

/** An account gets a new AccountTransaction. */
export interface EntryEvent {
  readonly kind: "accepted" | "resumed";
  readonly view: AccountTransaction;
}

export type SubmissionEvent =
  | ChainEvent
  | SendingEvent
  | EntryEvent
  /** Every route refused the account's submission for good; another account's may still be open. */
  | { readonly kind: "submission_refused"; readonly submission: Submission }
  /** The node failed, or the relay could not watch a signature; no transaction changes. */
  | { readonly kind: "observer_failed"; readonly error: unknown };

export interface SubmissionEvents {
  /** Carries out all effects before it returns, or queues the event while another one is handled. */
  handle(event: SubmissionEvent): void;
}
