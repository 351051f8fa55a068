// State machine: takes the events of submissions and carries out the effects of transitions.ts.
//
// Owned by pipeline.ts. Events come from there, from dispatch.ts (reports of routes) and from
// outcome-observer.ts (shreds, the node, timers). Each event is handled completely before the next one.
// Effects go downwards only: timelines, store, listeners, dispatch, observer.

import type { TransactionFacts } from "../../core/transactions/facts.ts";
import { Dispatch, type DispatchDependencies } from "./dispatch.ts";
import type {
  ChainEvent,
  Ended,
  EntryEvent,
  SendingEvent,
  SubmissionEvent,
  SubmissionEvents,
} from "./events.ts";
import type { FailureLog } from "./failure-log.ts";
import { appended, type EndEvent, isEnd, Lifecycle } from "./lifecycle.ts";
import type { DispatchLimits, ObserverLimits } from "./limits.ts";
import type { Listeners } from "./listeners.ts";
import { type ObserverDependencies, OutcomeObserver } from "./outcome-observer.ts";
import { StatusRecorder } from "./status-recorder.ts";
import type { SubmissionIndex } from "./submission-index.ts";
import type { SubmissionWriter } from "./submission-writer.ts";
import {
  AccountBundle,
  AccountTransaction,
  bundleIdOf,
  isOfPair,
  nsPerMs,
  type Submission,
  TrackedTransaction,
} from "./tracked-transaction.ts";
import {
  type Effect,
  eventOfEnd,
  eventOfFoundEnd,
  isEndState,
  type TransactionState,
  transition,
} from "./transitions.ts";
import type {
  EndState,
  LandedTips,
  NonceListener,
  SubmissionRecord,
  TimelineEvent,
} from "./types.ts";

export interface StateMachineDependencies extends DispatchDependencies, ObserverDependencies {
  /** Receives the tip of every landed transaction. */
  readonly landedTips?: LandedTips;
  /** Receives every nonce that a transaction advanced. */
  readonly nonces?: NonceListener;
}

/** State that the effects change. */
interface EffectTargets {
  readonly index: SubmissionIndex;
  readonly writer: SubmissionWriter;
  readonly listeners: Listeners;
  readonly failures: FailureLog;
}

type TransactionEvent = ChainEvent | SendingEvent | EntryEvent;

/** One event of one transaction while its effects are carried out. */
interface Step {
  readonly tracked: TrackedTransaction;
  /** The facts before the event: an end drops them. */
  readonly facts: TransactionFacts | null;
  /** Appended to the timelines; null: the event adds nothing. */
  readonly line: TimelineEvent | null;
  /** The accounts concerned; after "record" only those whose timelines accepted the line. */
  views: readonly AccountTransaction[];
}

export class SubmissionStateMachine implements SubmissionEvents {
  readonly dispatch: Dispatch;
  readonly observer: OutcomeObserver;
  readonly recorder: StatusRecorder;
  readonly #dependencies: StateMachineDependencies;
  readonly #targets: EffectTargets;
  readonly #queue: SubmissionEvent[] = [];
  #isHandling = false;
  /** Accepted but not observed yet: they are sent first, because starting to observe takes time. */
  readonly #unobserved: TrackedTransaction[] = [];

  constructor(
    dependencies: StateMachineDependencies,
    state: EffectTargets,
    limits: DispatchLimits & ObserverLimits,
  ) {
    this.#dependencies = dependencies;
    this.#targets = state;
    this.recorder = new StatusRecorder(state.writer, state.listeners);
    this.dispatch = new Dispatch(dependencies, state.index, this, limits);
    this.observer = new OutcomeObserver(dependencies, this, limits);
  }

  handle(event: SubmissionEvent): void {
    this.#queue.push(event);
    if (this.#isHandling) return; // the loop below, which is running, takes it
    this.#isHandling = true;
    try {
      for (let next = this.#queue.shift(); next; next = this.#queue.shift()) this.#handle(next);
    } finally {
      this.#isHandling = false;
    }
  }

  /** Adds one transaction of a new submission, or moves the account's transaction to it. */
  enter(
    submission: Submission,
    facts: TransactionFacts,
    record?: SubmissionRecord,
  ): AccountTransaction {
    const { index } = this.#targets;
    const tracked = index.open(facts.signature) ?? this.#track(facts, submission);
    let view = tracked.views.get(submission.accountId);
    // After a call on its own, the status of an earlier bundle can still be asked for.
    const staysInBundle = view !== undefined && !record && !submission.isBundle;
    if (view) {
      const { submission: before } = view;
      before.leave(view);
      view.submission = submission;
      if (before.views.every((one) => one.submission !== before)) this.dispatch.stop(before);
    } else {
      view = new AccountTransaction(tracked, submission, new Lifecycle(record?.events));
      tracked.views.set(view);
      index.countOpenView(view.accountId, 1);
    }
    // It was in a block before the restart: if it fails, its tip must be retracted.
    if (record && record.slot !== null && facts.tipLamports > 0n) {
      const seen = record.events.find(({ kind }) => kind === "seen");
      const observedNs = seen?.atNs ?? record.receivedNs;
      tracked.tip ??= { lamports: facts.tipLamports, observedNs };
    }
    const seenSlot = record?.slot ?? null;
    if (seenSlot !== null) this.observer.observedBefore(tracked, seenSlot);
    submission.views = appended(submission.views, view);
    if (isOfPair(view)) index.joinPair(tracked);
    if (!staysInBundle) {
      view.bundleId = record?.bundleId ?? null;
      view.bundleIndex = record?.bundleIndex ?? submission.views.length - 1;
    }
    view.isPersisted ||= record !== undefined;
    this.handle({ kind: record ? "resumed" : "accepted", view });
    return view;
  }

  /** Adds transactions that have ended. What memory or the store (`found`) knows of them stays. */
  enterEnded(
    submission: Submission,
    ended: readonly TrackedTransaction[],
    found: readonly SubmissionRecord[],
  ): AccountTransaction[] {
    this.dispatch.stop(submission);
    return ended.map((tracked) => {
      const known = tracked.views.get(submission.accountId);
      if (known) return known;
      const record = found.find(({ signature }) => signature === tracked.signature);
      const view = new AccountTransaction(tracked, submission, new Lifecycle(record?.events));
      tracked.views.set(view);
      submission.views = appended(submission.views, view);
      if (record) {
        view.bundleId = record.bundleId;
        view.bundleIndex = record.bundleIndex;
        view.isPersisted = true;
      }
      this.handle({ kind: record ? "resumed" : "accepted", view });
      return view;
    });
  }

  /** `views`: all transactions of the bundle, in order. */
  joinBundle(views: readonly AccountTransaction[], submission: Submission): void {
    if (!submission.isBundle) return;
    const { accountId, receivedNs: acceptedNs } = submission;
    const signatures = views.map(({ tracked }) => tracked.signature);
    const bundleId = bundleIdOf(signatures);
    for (const [i, view] of views.entries()) {
      if (view.tracked.end && view.isPersisted) continue; // it stays as it is in the store
      view.bundleId = bundleId;
      view.bundleIndex = i;
    }
    const bundle = new AccountBundle({ accountId, bundleId, acceptedNs, signatures });
    submission.bundle = bundle;
    this.#targets.index.addBundle(bundle.record);
  }

  /** Starts to observe the transactions that were added. */
  observeNew(): void {
    for (const tracked of this.#unobserved.splice(0)) this.observer.add(tracked);
  }

  /**
   * Takes over a record of the store: the account's transaction ended before this process started. The
   * end is final and not written again. Listeners hear of it, because they have heard of the call.
   */
  adopt(view: AccountTransaction, record: SubmissionRecord): void {
    const { tracked } = view;
    const lifecycle = new Lifecycle(record.events);
    const resumed = new AccountTransaction(tracked, view.submission, lifecycle);
    resumed.bundleId = record.bundleId;
    resumed.bundleIndex = record.bundleIndex;
    resumed.receivedNs = record.receivedNs;
    resumed.isPersisted = true;
    this.#targets.writer.forget(view);
    this.dispatch.stop(view.submission);
    tracked.views.set(resumed);
    const { end } = lifecycle;
    if (end !== null && view.lifecycle.end === null) this.recorder.notify([resumed], end);
    if (tracked.end || end === null) return;
    if (tracked.views.size === 1) this.handle({ kind: eventOfFoundEnd[end.kind], tracked, end });
    // Another account may still land what the routes refused to this account.
    else if (end.kind === "rejected") this.#leave(tracked, resumed.accountId);
    else this.handle({ ...end, kind: eventOfEnd[end.kind], tracked });
  }

  /** The account's call is refused after all: drops the transaction, unless another account has it. */
  forget(view: AccountTransaction): void {
    const { tracked } = view;
    const { writer, index } = this.#targets;
    writer.forget(view);
    this.dispatch.stop(view.submission);
    index.forgetBundle(view.accountId, view.bundleId);
    if (tracked.views.get(view.accountId) !== view) return;
    if (tracked.end) {
      tracked.views.delete(view.accountId); // it is no longer counted as open
      return;
    }
    this.#leave(tracked, view.accountId);
    if (tracked.views.size === 0) this.handle({ kind: "call_refused", tracked });
  }

  #handle(event: SubmissionEvent): void {
    if (event.kind === "observer_failed") {
      this.#targets.failures.warn("the watch of outcomes", event.error);
    } else if (event.kind === "submission_refused") {
      this.#refused(event.submission);
    } else if ("view" in event) {
      this.#step(event.view.tracked, event, [event.view]);
    } else if ("tracked" in event) {
      this.#step(event.tracked, event, event.tracked.views.all);
    } else {
      const { kind, submission } = event;
      for (const view of submission.views) {
        const isShown =
          kind === "attempts_exhausted" ||
          // A newer call may have replaced this one while a route still has it in its queue.
          (submission.shows(event.report, view) && !view.isForgotten);
        if (isShown) this.#step(view.tracked, event, [view]);
      }
    }
  }

  /** Ends the transactions of a refused submission, unless another account's submission is open. */
  #refused(submission: Submission): void {
    this.dispatch.stop(submission);
    for (const { tracked } of submission.views) {
      if (tracked.views.all.some((view) => view.submission.sending.state !== "refused")) continue;
      this.handle({
        kind: "routes_refused",
        tracked,
        reason: "routes_refused",
        slot: null,
        err: null,
      });
    }
  }

  #step(
    tracked: TrackedTransaction,
    event: TransactionEvent,
    views: readonly AccountTransaction[],
  ): void {
    const found = "end" in event ? event.end.kind : undefined;
    const { to, effects } = transition(tracked.state, event.kind, found);
    if (effects.length === 0) {
      tracked.state = to;
      return;
    }
    const line = this.#lineOf(tracked, event, to);
    const step: Step = { tracked, facts: tracked.facts, line, views };
    tracked.state = to;
    for (const effect of effects) this.#carryOut(effect, step);
  }

  #carryOut(effect: Effect, step: Step): void {
    const { tracked, line } = step;
    const { recorder } = this;
    switch (effect) {
      case "observe":
        this.#unobserved.push(tracked);
        break;
      case "stop_observing":
        this.observer.remove(tracked);
        break;
      case "record":
        if (line) step.views = recorder.record(step.views, line);
        break;
      case "persist":
        if (line) recorder.persist(step.views, line);
        break;
      case "persist_now":
        for (const view of step.views) this.#targets.writer.ended(view);
        break;
      case "notify":
        if (line) recorder.notify(step.views, line);
        break;
      case "repeat_end":
        this.#repeatEnd(step);
        break;
      case "count_late":
        recorder.countLate();
        break;
      case "count_end":
        if (line && isEnd(line)) recorder.countEnd(line.kind);
        break;
      case "report_tip":
      case "confirm_tip":
      case "retract_tip":
        this.#reportTip(effect, step);
        break;
      case "report_nonce":
        this.#reportNonce(step);
        break;
      case "end_siblings":
        this.#endSiblings(step);
        break;
      case "offer_again":
        this.#offerAgain(step);
        break;
      case "stop_offering":
        this.#stopOffering(step);
        break;
      case "close":
        this.#close(step);
        break;
      case "drop":
        this.#targets.index.forget(tracked);
        tracked.facts = null;
    }
  }

  /** The timeline event that this event adds; null: none. */
  #lineOf(
    tracked: TrackedTransaction,
    event: TransactionEvent,
    to: TransactionState,
  ): TimelineEvent | null {
    if ("end" in event) return event.end;
    if ("reason" in event) return isEndState(to) ? this.#endOf(tracked, event, to) : null;
    if (event.kind === "route_reported") return event.report;
    if (event.kind === "landing_observed") {
      return { kind: "seen", atNs: event.atNs, slot: event.slot };
    }
    if (event.kind === "landing_withdrawn" || event.kind === "block_abandoned") {
      const { atNs, slot, cause } = event;
      return { kind: "withdrawn", atNs, slot, reason: cause };
    }
    if (!("view" in event)) return null;
    const { receivedNs, method, ingress, transactions } = event.view.submission;
    // After the end the facts are those of the call that submits it again.
    const facts =
      tracked.facts ?? transactions.find(({ signature }) => signature === tracked.signature);
    const atNs = receivedNs;
    if (!facts) return { kind: "received", atNs, method, ...(ingress && { ingress }) };
    const { tipLamports, priorityFeeLamports } = facts;
    return ingress
      ? { kind: "received", atNs, method, ingress, tipLamports, priorityFeeLamports }
      : { kind: "received", atNs, method, tipLamports, priorityFeeLamports };
  }

  #endOf(
    tracked: TrackedTransaction,
    { reason, slot, err, ...known }: Ended,
    kind: EndState,
  ): EndEvent {
    const atNs = this.#dependencies.clock.nowNs();
    const landed = kind === "superseded" ? this.#targets.index.landedSibling(tracked) : undefined;
    const sibling = landed ?? known.sibling;
    if (sibling === undefined) return { kind, atNs, reason, slot, err };
    return { kind, atNs, reason: "sibling_landed", slot, err, sibling };
  }

  #repeatEnd({ tracked, views }: Step): void {
    const { end } = tracked;
    const open = views.filter(({ lifecycle }) => !lifecycle.end);
    if (end === null || open.length === 0) return;
    const recorded = this.recorder.record(open, end);
    this.recorder.persist(recorded, end);
    this.recorder.notify(recorded, end);
  }

  #reportTip(
    effect: "report_tip" | "confirm_tip" | "retract_tip",
    { tracked, facts, line }: Step,
  ): void {
    const { landedTips: tips } = this.#dependencies;
    const { signature } = tracked;
    if (effect === "retract_tip") {
      if (tracked.tip) tips?.retracted(signature);
      tracked.tip = null;
      return;
    }
    const lamports = facts?.tipLamports ?? 0n;
    if (lamports === 0n || line === null) return;
    tracked.tip ??= { lamports, observedNs: line.atNs };
    if (effect === "confirm_tip") tips?.landed(signature, lamports, line.atNs);
    else tips?.observed(signature, lamports, line.atNs);
  }

  #reportNonce({ facts }: Step): void {
    if (facts?.nonce) this.#dependencies.nonces?.advanced(facts.nonce.account, facts.lifetime);
  }

  /** A transaction landed with this nonce value. Without a node the others end now: nothing can confirm it. */
  #endSiblings({ tracked, facts }: Step): void {
    if (!facts?.nonce) return;
    if (typeof tracked.end?.slot === "bigint") this.observer.nonceSpent(facts, tracked.end.slot);
    if (this.#dependencies.outcomes) return;
    for (const sibling of this.#targets.index.pairOf(facts)) {
      const kind = "nonce_advanced";
      this.handle({ kind, tracked: sibling, reason: kind, slot: null, err: null });
    }
  }

  /** Its block was abandoned: submissions that waited for it are offered again. */
  #offerAgain({ tracked }: Step): void {
    for (const one of [tracked, ...this.#targets.index.pairOf(tracked.facts)]) {
      for (const { submission } of one.views) this.dispatch.expedite(submission);
    }
  }

  /** A bundle lands as a whole: nothing of it is sent after one of its transactions has ended. */
  #stopOffering({ tracked }: Step): void {
    for (const { submission } of tracked.views) {
      this.dispatch.stop(submission);
      if (submission.views.every((one) => one.tracked.end)) submission.transactions = [];
    }
  }

  #close({ tracked, line }: Step): void {
    const { index } = this.#targets;
    if (line && isEnd(line)) tracked.end = line;
    for (const { accountId } of tracked.views) index.countOpenView(accountId, -1);
    index.moveToEnded(tracked);
    tracked.facts = null;
  }

  #leave(tracked: TrackedTransaction, accountId: string): void {
    if (tracked.views.delete(accountId)) this.#targets.index.countOpenView(accountId, -1);
  }

  #track(facts: TransactionFacts, { receivedNs, method }: Submission): TrackedTransaction {
    const { clock } = this.#dependencies;
    const ageNs = clock.nowNs() - receivedNs;
    const ageMs = ageNs > 0n ? Number(ageNs / nsPerMs) : 0;
    const tracked = new TrackedTransaction(facts, Number(clock.monotonicNs() / nsPerMs) - ageMs);
    tracked.mayPrecedeCall = method !== "sendIdeal"; // which checks that the nonce is not spent
    this.#targets.index.addOpen(tracked);
    return tracked;
  }
}
