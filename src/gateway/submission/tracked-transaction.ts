// What the pipeline holds in memory: transactions, who submitted them, and how they are sent.
//
// Three things that are not the same: a Tracked is one signature on the chain and has one end; a
// Submission is what one account asked for with one call, the unit that is planned, sent and sent
// again by that account's options; a View is one transaction of one account, the unit that is kept
// and shown. Two accounts with the same bytes share the Tracked and nothing else. When an account
// submits a transaction again in another way, its View moves to the new Submission: the last word
// counts. Only data and what follows from it; the pipeline and its parts change it.

import { createHash } from "node:crypto";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import { type EndEvent, Lifecycle } from "./lifecycle.ts";
import { Sending } from "./sending.ts";
import type { TransactionState } from "./transitions.ts";
import type {
  SubmissionRecord,
  SubmitMethod,
  SubmitOptions,
  SubmitRequest,
  TransactionStatus,
} from "./types.ts";

/** Monotonic milliseconds are `number` in this folder: exact for 285,000 years. */
export const nsPerMs = 1_000_000n;

/** One signature. */
export class TrackedTransaction {
  readonly signature: string;
  /** Null after the end: bytes are kept for open ones only. */
  facts: TransactionFacts | null;
  /** By account. */
  readonly views = new Map<string, AccountTransaction>();
  /** Changed by state-machine.ts alone, as transitions.ts has it. */
  state: TransactionState = "new";
  end: EndEvent | null = null;

  // State of outcome-observer.ts.
  readonly bornMs: number;
  /** Last proof that it is in a block; null: none, or the block is gone. */
  seenMs: number | null = null;
  /** Blocks that were told. */
  readonly seenSlots = new Set<bigint>();
  /** When the first question was asked that found it absent after its lifetime was gone. */
  absentMs: number | null = null;
  unwatch: (() => void) | null = null;
  isAsked = false;

  // State of state-machine.ts.
  /** Its tip was told as seen, in this life of the process or an earlier one. */
  isTipSeen = false;

  constructor(facts: TransactionFacts, bornMs: number) {
    this.signature = facts.signature;
    this.facts = facts;
    this.bornMs = bornMs;
  }
}

/** One call of one account. */
export class Submission {
  readonly accountId: string;
  readonly method: SubmitMethod;
  readonly isBundle: boolean;
  readonly options: SubmitOptions;
  readonly receivedNs: bigint;
  /** In order; emptied when nothing is sent any more. */
  transactions: readonly TransactionFacts[];
  readonly views: AccountTransaction[] = [];

  /** Changed by dispatch.ts alone. */
  readonly sending = new Sending();
  /** Calls that wait for the store. */
  waiters = 0;

  constructor(request: SubmitRequest) {
    this.accountId = request.accountId;
    this.method = request.method;
    this.isBundle = request.isBundle;
    this.options = request.options;
    this.receivedNs = request.receivedNs;
    this.transactions = request.transactions;
  }

  get attempts(): number {
    return this.sending.attempts;
  }

  /** Whether the request asks for the same, for transactions that all belong here. */
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

/**
 * Observed in a block so lately, after `sinceMs`, that it need not be sent again; a node that fails
 * cannot say otherwise.
 */
export function isInBlock({ seenMs }: TrackedTransaction, sinceMs: number): boolean {
  return seenMs !== null && seenMs > sinceMs;
}

/** Whether the account submitted it, by its last word, as one of a pair. */
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
  /** Of the first call. */
  receivedNs: bigint;

  // Of keeper.ts.
  isDirty = false;
  /** At least once. */
  isKept = false;
  writing: Promise<void> | null = null;
  /** Another record stands for it, or none shall. */
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

/** SHA-256 in hex of the signatures joined by ",". */
export function bundleIdOf(signatures: readonly string[]): string {
  return createHash("sha256").update(signatures.join(",")).digest("hex");
}
