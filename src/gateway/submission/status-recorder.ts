// Tracking: from the moment a transaction is known until its one end, for everybody who submitted it.
//
// Between the pipeline and its parts: what is sent, seen and found out becomes events in the views'
// timelines, goes to the store and to listeners. Only here transactions begin and end.

import type { Clock } from "../../core/clock.ts";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import { type EndEvent, isEnd, Lifecycle } from "./lifecycle.ts";
import type { Listeners } from "./listeners.ts";
import type { Ending } from "./outcome-observer.ts";
import type { SubmissionIndex } from "./submission-index.ts";
import type { SubmissionWriter } from "./submission-writer.ts";
import {
  AccountTransaction,
  bundleIdOf,
  nsPerMs,
  type Submission,
  TrackedTransaction,
} from "./tracked-transaction.ts";
import type {
  EndState,
  LandedTips,
  NonceListener,
  SubmissionRecord,
  SubmitMethod,
  TimelineEvent,
} from "./types.ts";

interface StatusRecorderDependencies {
  readonly clock: Clock;
  readonly memory: SubmissionIndex;
  readonly keeper: SubmissionWriter;
  readonly listeners: Listeners;
  readonly tips: LandedTips | null;
  readonly nonces: NonceListener | null;
  /** Nothing of it is sent any more. */
  stop(submission: Submission): void;
  watch(tracked: TrackedTransaction): void;
  unwatch(tracked: TrackedTransaction): void;
  /** It has landed, and with it nothing else that has this nonce value can. */
  spent(facts: TransactionFacts): void;
}

export interface TrackingCounts {
  readonly ends: Readonly<Record<EndState, bigint>>;
  /** Events that came after an end. */
  readonly lateEvents: bigint;
}

/** Whether it is part of the chain, with or without success. */
export function hasLanded(end: { readonly kind: string } | null | undefined): boolean {
  return end?.kind === "landed" || end?.kind === "landed_failed";
}

export class StatusRecorder {
  readonly #parts: StatusRecorderDependencies;
  /** Not watched yet: watching is slower than sending. */
  readonly #fresh: TrackedTransaction[] = [];
  #lateEvents = 0n;
  readonly #ends: Record<EndState, bigint> = {
    landed: 0n,
    landed_failed: 0n,
    expired: 0n,
    superseded: 0n,
    rejected: 0n,
  };

  constructor(parts: StatusRecorderDependencies) {
    this.#parts = parts;
  }

  get counts(): TrackingCounts {
    return { ends: { ...this.#ends }, lateEvents: this.#lateEvents };
  }

  /** One transaction of a new submission; the view that the account has of it moves there. */
  enter(
    submission: Submission,
    facts: TransactionFacts,
    record?: SubmissionRecord,
  ): AccountTransaction {
    const tracked = this.#parts.memory.open(facts.signature) ?? this.#track(facts, submission);
    let view = tracked.views.get(submission.accountId);
    if (view) {
      const { submission: before } = view;
      view.submission = submission;
      if (before.views.every((one) => one.submission !== before)) this.#parts.stop(before);
    } else {
      view = new AccountTransaction(tracked, submission, new Lifecycle(record?.events));
      tracked.views.set(view.accountId, view);
      this.#parts.memory.countOpenView(view.accountId, 1);
    }
    // It was in a block before the restart: should it fail, its tip is taken back.
    if (record && record.slot !== null && facts.tipLamports > 0n) tracked.isTipSeen = true;
    submission.views.push(view);
    if (isOfPair(view)) this.#parts.memory.joinPair(tracked);
    view.bundleId = record?.bundleId ?? null;
    view.bundleIndex = record?.bundleIndex ?? submission.views.length - 1;
    view.isKept ||= record !== undefined;
    if (!record) this.record(view, receivedEvent(submission));
    return view;
  }

  /** The account's view of what has ended already; what it, or the store, knows stays as it is. */
  enterEnded(
    submission: Submission,
    ended: readonly TrackedTransaction[],
    found: readonly SubmissionRecord[],
  ): AccountTransaction[] {
    submission.isStopped = true;
    return ended.map((tracked) => {
      const known = tracked.views.get(submission.accountId);
      if (known) return known;
      const record = found.find(({ signature }) => signature === tracked.signature);
      const view = new AccountTransaction(tracked, submission, new Lifecycle(record?.events));
      tracked.views.set(view.accountId, view);
      submission.views.push(view);
      if (record) {
        view.bundleId = record.bundleId;
        view.bundleIndex = record.bundleIndex;
        view.isKept = true;
      } else {
        this.record(view, receivedEvent(submission));
      }
      if (tracked.end && !view.lifecycle.end) this.record(view, tracked.end);
      return view;
    });
  }

  joinBundle(
    views: readonly AccountTransaction[],
    { isBundle }: { readonly isBundle: boolean },
  ): void {
    if (!isBundle) return;
    const bundleId = bundleIdOf(views.map(({ tracked }) => tracked.signature));
    for (const [i, view] of views.entries()) {
      view.bundleId = bundleId;
      view.bundleIndex = i;
    }
    this.#parts.memory.addBundle(views);
  }

  /** Begins to watch what was entered. */
  watchFresh(): void {
    for (const tracked of this.#fresh.splice(0)) this.#parts.watch(tracked);
  }

  /** For every transaction of the submission. */
  recordAll(submission: Submission, event: TimelineEvent): void {
    for (const view of submission.views) {
      if (view.submission === submission && !view.isForgotten) this.record(view, event);
    }
  }

  record(view: AccountTransaction, event: TimelineEvent): void {
    const { keeper, listeners } = this.#parts;
    if (!view.lifecycle.add(event)) {
      this.#lateEvents++;
      return;
    }
    if (isEnd(event)) keeper.ended(view);
    else keeper.changed(view);
    listeners.tell(view.accountId, view.tracked.signature, event);
  }

  seen(tracked: TrackedTransaction, slot: bigint, atNs: bigint): void {
    for (const view of tracked.views.values()) this.record(view, { kind: "seen", atNs, slot });
    this.#tellNonce(tracked.facts);
    const lamports = tracked.facts?.tipLamports ?? 0n;
    if (lamports === 0n) return;
    tracked.isTipSeen = true;
    this.#parts.tips?.seen(tracked.signature, lamports, atNs);
  }

  /** The block that held it is gone. */
  lost(tracked: TrackedTransaction): void {
    if (!tracked.isTipSeen) return;
    tracked.isTipSeen = false;
    this.#parts.tips?.gone(tracked.signature);
  }

  /** Every way of the submission is closed. Another account's may be open. */
  rejected(submission: Submission): void {
    this.#parts.stop(submission);
    for (const { tracked } of submission.views) {
      const views = [...tracked.views.values()];
      if (tracked.end || views.some((view) => !view.submission.isRejected)) continue;
      this.end(tracked, { state: "rejected", reason: "routes_refused", slot: null, err: null });
    }
  }

  end(tracked: TrackedTransaction, ending: Ending): void {
    if (tracked.end) return;
    const { facts } = tracked;
    const end = this.#endEvent(tracked, ending);
    this.#ends[end.kind]++;
    const lamports = facts?.tipLamports ?? 0n;
    if (end.kind === "landed" && lamports > 0n) {
      this.#parts.tips?.landed(tracked.signature, lamports, end.atNs);
    }
    this.#close(tracked, end);
    for (const view of tracked.views.values()) {
      const { submission } = view;
      // A bundle lands whole or not at all: nothing of it is sent once one of it has ended.
      this.#parts.stop(submission);
      if (submission.views.every((one) => one.tracked.end)) submission.transactions = [];
      this.record(view, end);
    }
    if (!hasLanded(end)) return;
    this.#tellNonce(facts);
    if (facts?.nonce) this.#parts.spent(facts);
  }

  /**
   * The store says that the account's transaction ended in an earlier life of the process. Its end
   * stands: nobody is told again, and nothing is written.
   */
  adopt(view: AccountTransaction, record: SubmissionRecord): void {
    const { tracked } = view;
    const lifecycle = new Lifecycle(record.events);
    const kept = new AccountTransaction(tracked, view.submission, lifecycle);
    kept.bundleId = record.bundleId;
    kept.bundleIndex = record.bundleIndex;
    kept.receivedNs = record.receivedNs;
    kept.isKept = true;
    this.#parts.keeper.forget(view);
    this.#parts.stop(view.submission);
    tracked.views.set(kept.accountId, kept);
    const { end } = lifecycle;
    if (tracked.end || end === null) return;
    const isAlone = tracked.views.size === 1;
    const { facts } = tracked;
    if (isAlone) {
      this.#close(tracked, end);
      if (hasLanded(end) && facts?.nonce) this.#parts.spent(facts);
    } else if (end.kind === "rejected") {
      this.#leave(tracked, kept.accountId); // others may land it
    } else this.end(tracked, { ...end, state: end.kind });
  }

  /** The account's call was refused after all; what only it asked for is forgotten. */
  forget(view: AccountTransaction): void {
    const { tracked } = view;
    this.#parts.keeper.forget(view);
    this.#parts.stop(view.submission);
    this.#parts.memory.forgetBundle(view.accountId, view.bundleId);
    if (tracked.views.get(view.accountId) !== view) return;
    if (tracked.end) {
      tracked.views.delete(view.accountId); // it was not counted as open any more
      return;
    }
    this.#leave(tracked, view.accountId);
    if (tracked.views.size > 0) return;
    this.lost(tracked); // nobody will know how it ends
    this.#parts.unwatch(tracked);
    this.#parts.memory.forget(tracked);
    tracked.facts = null;
  }

  #leave(tracked: TrackedTransaction, accountId: string): void {
    if (tracked.views.delete(accountId)) this.#parts.memory.countOpenView(accountId, -1);
  }

  #track(facts: TransactionFacts, { receivedNs }: Submission): TrackedTransaction {
    const { clock, memory } = this.#parts;
    const ageNs = clock.nowNs() - receivedNs;
    const ageMs = ageNs > 0n ? Number(ageNs / nsPerMs) : 0;
    const tracked = new TrackedTransaction(facts, Number(clock.monotonicNs() / nsPerMs) - ageMs);
    memory.addOpen(tracked);
    this.#fresh.push(tracked);
    return tracked;
  }

  #close(tracked: TrackedTransaction, end: EndEvent): void {
    tracked.end = end;
    for (const accountId of tracked.views.keys()) {
      this.#parts.memory.countOpenView(accountId, -1);
    }
    if (end.kind !== "landed") this.lost(tracked);
    this.#parts.unwatch(tracked);
    this.#parts.memory.moveToEnded(tracked);
    tracked.facts = null;
  }

  #tellNonce(facts: TransactionFacts | null): void {
    if (facts?.nonce) this.#parts.nonces?.advanced(facts.nonce.account, facts.lifetime);
  }

  #endEvent(tracked: TrackedTransaction, { state, reason, slot, err, ...known }: Ending): EndEvent {
    const atNs = this.#parts.clock.nowNs();
    const landed = state === "superseded" ? this.#parts.memory.landedSibling(tracked) : undefined;
    const sibling = landed ?? known.sibling;
    if (sibling === undefined) return { kind: state, atNs, reason, slot, err };
    return { kind: state, atNs, reason: "sibling_landed", slot, err, sibling };
  }
}

/** Whether the account submitted it, by its last word, as one of a pair. */
export function isOfPair({ submission }: AccountTransaction): boolean {
  return submission.method === "sendIdeal";
}

interface Received {
  readonly receivedNs: bigint;
  readonly method: SubmitMethod;
}

function receivedEvent({ receivedNs, method }: Received): TimelineEvent {
  return { kind: "received", atNs: receivedNs, method };
}
