// Transactions in memory: who submitted them, and how they are sent.
//
// - TrackedTransaction: one signature on the chain. It ends once.
// - Submission: one call of one account; the unit that is planned, sent and resent with its options.
// - AccountTransaction: one transaction of one account; the unit that is persisted and shown.
//
// Two accounts that submit the same bytes share the TrackedTransaction and nothing else. If an account
// submits a transaction again with other options, its AccountTransaction moves to the new Submission.
// These classes hold data only; the other files of this folder change it.

import { createHash } from "node:crypto";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import { appended, type EndEvent, Lifecycle, noSlots } from "./lifecycle.ts";
import { Sending } from "./sending.ts";
import type { TransactionState } from "./transitions.ts";
import type {
  BundleRecord,
  Ingress,
  ObservedTip,
  SubmissionRecord,
  SubmitMethod,
  SubmitOptions,
  SubmitRequest,
  TimelineEvent,
  TransactionStatus,
} from "./types.ts";

/** Monotonic milliseconds are of type `number` in this folder; it is exact for 285,000 years. */
export const nsPerMs = 1_000_000n;

/**
 * The transactions of the accounts that submitted one signature: nearly always one account. A Map
 * would be a tenth of what an open submission has in memory.
 */
class AccountViews implements Iterable<AccountTransaction> {
  #views: readonly AccountTransaction[] = noViews;

  get size(): number {
    return this.#views.length;
  }

  get(accountId: string): AccountTransaction | undefined {
    return this.#views.find((view) => view.accountId === accountId);
  }

  has(accountId: string): boolean {
    return this.get(accountId) !== undefined;
  }

  /** Replaces the account's present one. */
  set(view: AccountTransaction): void {
    const place = this.#views.findIndex(({ accountId }) => accountId === view.accountId);
    this.#views = place < 0 ? appended(this.#views, view) : this.#views.with(place, view);
  }

  /** Returns whether there was one. */
  delete(accountId: string): boolean {
    const { size } = this;
    this.#views = this.#views.filter((view) => view.accountId !== accountId);
    return this.#views.length < size;
  }

  /** A list that later changes leave as it is. */
  get all(): readonly AccountTransaction[] {
    return this.#views;
  }

  [Symbol.iterator](): Iterator<AccountTransaction> {
    return this.#views[Symbol.iterator]();
  }
}

const noViews: readonly AccountTransaction[] = [];

/** One signature. */
export class TrackedTransaction {
  readonly signature: string;
  /** Null after the end, and after a refusal of the only call: only open transactions need their bytes. */
  facts: TransactionFacts | null;
  readonly views = new AccountViews();
  /** Changed only by state-machine.ts, according to transitions.ts. */
  state: TransactionState = "new";
  end: EndEvent | null = null;

  // State of outcome-observer.ts.
  readonly acceptedMs: number;
  /** When it was last known to be in a block; null: never, or the block was abandoned. */
  observedMs: number | null = null;
  /** Slots of the blocks that were reported. */
  observedSlots: readonly bigint[] = noSlots;
  /** When the node was first asked and did not know it after its lifetime was over. */
  absentMs: number | null = null;
  /** Until then, the node's answers and the time of the call show that it had not ended. */
  answeredMs: number;
  /** It may have landed long before the call: the node's history was not searched for it. */
  mayPrecedeCall = true;
  unwatch: (() => void) | null = null;
  isAsked = false;

  // State of state-machine.ts.
  /** The tip that was reported as observed, by this process or an earlier one; null: none. */
  tip: ObservedTip | null = null;

  constructor(facts: TransactionFacts, bornMs: number) {
    this.signature = facts.signature;
    this.facts = facts;
    this.acceptedMs = bornMs;
    this.answeredMs = bornMs;
  }
}

/** A bundle of one account. */
export class AccountBundle {
  readonly record: BundleRecord;
  /** State of submission-writer.ts. */
  isPersisted = false;

  constructor(record: BundleRecord) {
    this.record = record;
  }
}

const noneMoved: ReadonlyMap<AccountTransaction, number> = new Map();

/** One call of one account. */
export class Submission {
  readonly accountId: string;
  readonly method: SubmitMethod;
  readonly isBundle: boolean;
  readonly options: SubmitOptions;
  readonly receivedNs: bigint;
  readonly ingress: Ingress | undefined;
  /** In order; emptied when nothing more is sent. */
  transactions: readonly TransactionFacts[];
  views: readonly AccountTransaction[] = noViews;
  /** Set once by state-machine.ts; null: not a bundle, or only a part of one. */
  bundle: AccountBundle | null = null;

  /** Changed only by dispatch.ts. */
  readonly sending = new Sending();
  /** Calls that wait for the store. */
  waiters = 0;
  /** Transactions that moved to newer submissions, with the attempts until then. */
  #moved: ReadonlyMap<AccountTransaction, number> = noneMoved;

  constructor(request: SubmitRequest) {
    this.accountId = request.accountId;
    this.method = request.method;
    this.isBundle = request.isBundle;
    this.options = request.options;
    this.receivedNs = request.receivedNs;
    this.ingress = request.ingress;
    this.transactions = request.transactions;
  }

  get attempts(): number {
    return this.sending.attempts;
  }

  get takenBy(): readonly string[] {
    return this.sending.takenBy;
  }

  /** The transaction moves to a newer submission of its account; this one may go on with the others. */
  leave(view: AccountTransaction): void {
    this.#moved = new Map(this.#moved).set(view, this.attempts);
  }

  /** Whether the timeline of the transaction contains this report: the attempt was made before it moved. */
  shows(report: TimelineEvent, view: AccountTransaction): boolean {
    if (view.submission === this) return true;
    return "attempt" in report && report.attempt <= (this.#moved.get(view) ?? 0);
  }

  /** Whether the request repeats this submission: the same transactions, method and options. */
  isSameAs(request: SubmitRequest): boolean {
    const { transactions, method, isBundle, options } = request;
    return (
      transactions.length === this.views.length &&
      method === this.method &&
      isBundle === this.isBundle &&
      isSameOptions(options, this.options) &&
      this.views.every((view, i) => {
        return view.submission === this && view.tracked.signature === transactions[i]?.signature;
      })
    );
  }
}

/** Whether it was observed in a block after `sinceMs`: then it need not be sent again. */
export function isInBlock({ observedMs }: TrackedTransaction, sinceMs: number): boolean {
  return observedMs !== null && observedMs > sinceMs;
}

/** Whether the account's latest call submitted it as one of a pair. */
export function isOfPair({ submission }: AccountTransaction): boolean {
  return submission.method === "sendIdeal";
}

function isSameOptions(a: SubmitOptions, b: SubmitOptions): boolean {
  return (
    a.swqosOnly === b.swqosOnly &&
    a.mevProtect === b.mevProtect &&
    a.revertProtection === b.revertProtection &&
    a.resendsMax === b.resendsMax &&
    (a.enableFallback ?? false) === (b.enableFallback ?? false)
  );
}

/** One transaction of one account. */
export class AccountTransaction {
  readonly tracked: TrackedTransaction;
  readonly accountId: string;
  readonly lifecycle: Lifecycle;
  submission: Submission;
  bundleId: string | null;
  bundleIndex: number;
  /** When the first call arrived. */
  receivedNs: bigint;

  // State of submission-writer.ts.
  isDirty = false;
  /** It was written at least once. */
  isPersisted = false;
  /** Rejects if the store fails; then it is still to be written. */
  writing: Promise<unknown> | null = null;
  /** It must not be written: another record stands for it, or none may exist. */
  isForgotten = false;

  constructor(tracked: TrackedTransaction, submission: Submission, lifecycle = new Lifecycle()) {
    this.tracked = tracked;
    this.accountId = submission.accountId;
    this.submission = submission;
    this.lifecycle = lifecycle;
    this.bundleId = null;
    this.bundleIndex = 0;
    this.receivedNs = submission.receivedNs;
  }

  get record(): SubmissionRecord {
    const { tracked, submission, lifecycle } = this;
    const { end } = lifecycle;
    const landedTip = end?.kind === "landed" ? tracked.tip : null;
    return {
      signature: tracked.signature,
      accountId: this.accountId,
      method: submission.method,
      bundleId: this.bundleId,
      bundleIndex: this.bundleIndex,
      options: submission.options,
      receivedNs: this.receivedNs,
      state: lifecycle.state,
      endedNs: end?.atNs ?? null,
      slot: lifecycle.slot,
      reason: end?.reason ?? null,
      err: end?.err ?? null,
      events: lifecycle.events,
      wire: end ? null : (tracked.facts?.wire ?? null),
      ...(landedTip && { landedTip }),
    };
  }

  get status(): TransactionStatus {
    return statusOf(this.record);
  }
}

export function statusOf(record: SubmissionRecord): TransactionStatus {
  const { signature, state, method, bundleId, receivedNs, slot, reason, err, events } = record;
  return { signature, state, method, bundleId, receivedNs, slot, reason, err, events };
}

/** SHA-256 (hex) of the signatures joined by ",". */
export function bundleIdOf(signatures: readonly string[]): string {
  return createHash("sha256").update(signatures.join(",")).digest("hex");
}
