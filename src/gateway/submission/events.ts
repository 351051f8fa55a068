// Events: what the parts of this folder say to the state machine.
//
// Dispatch and the observer of outcomes say here what routes, shreds, the node and timers did, and the
// pipeline what accounts asked for. It is the only way upwards: nobody is called back.

import type { EndEvent } from "./lifecycle.ts";
import type { AccountTransaction, Submission, TrackedTransaction } from "./tracked-transaction.ts";
import type { TimelineEvent } from "./types.ts";

/** It ended; what kind of event it is says how. */
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
  /** Superseded by this transaction, where an earlier process knew it. */
  readonly sibling?: string;
}

/** What concerns every account that submitted the transaction. */
export type ChainEvent =
  | Ended
  | {
      readonly kind: "landing_observed";
      readonly tracked: TrackedTransaction;
      readonly slot: bigint;
      readonly atNs: bigint;
    }
  | {
      readonly kind: "landing_repeated" | "block_abandoned" | "call_refused";
      readonly tracked: TrackedTransaction;
    }
  | {
      readonly kind: "landing_found" | "failure_found" | "end_found";
      readonly tracked: TrackedTransaction;
      readonly end: EndEvent;
    };

/** What concerns one account's submission, and each transaction of it. */
export type SendingEvent =
  | {
      readonly kind: "route_reported";
      readonly submission: Submission;
      readonly report: TimelineEvent;
    }
  | { readonly kind: "attempts_exhausted"; readonly submission: Submission };

/** One account's record of a transaction begins. */
export interface EntryEvent {
  readonly kind: "accepted" | "resumed";
  readonly view: AccountTransaction;
}

export type SubmissionEvent =
  | ChainEvent
  | SendingEvent
  | EntryEvent
  /** Every route of the account's submission will always refuse it; another account's may not. */
  | { readonly kind: "submission_refused"; readonly submission: Submission }
  /** The node, or the relay's list of watched signatures, failed; no transaction changes. */
  | { readonly kind: "observer_failed"; readonly error: unknown };

export interface SubmissionEvents {
  /** Everything that follows is done when it returns, or after the event that is under way. */
  handle(event: SubmissionEvent): void;
}
