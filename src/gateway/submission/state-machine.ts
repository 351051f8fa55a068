// State machine: events of submissions in, effects out, as transitions.ts has them.
//
// Owned by pipeline.ts. Events come from there and from the two parts that it drives: dispatch.ts (what
// routes say) and outcome-observer.ts (what shreds, the node and timers say). Each is handled to its
// end before the next one; effects go downwards only: timelines, store, listeners, dispatch, observer.

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
import { type EndEvent, isEnd, Lifecycle } from "./lifecycle.ts";
import type { DispatchLimits, WatchLimits } from "./limits.ts";
import type { Listeners } from "./listeners.ts";
import { OutcomeObserver, type WatchDependencies } from "./outcome-observer.ts";
import { StatusRecorder } from "./status-recorder.ts";
import type { SubmissionIndex } from "./submission-index.ts";
import type { SubmissionWriter } from "./submission-writer.ts";
import {
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

export interface StateMachineDependencies extends DispatchDependencies, WatchDependencies {
  /** Told of each landed transaction's tip, whoever submitted it. */
  readonly tips?: LandedTips;
  /** Told of each nonce that a transaction advanced, whoever submitted it. */
  readonly nonces?: NonceListener;
}

/** What the machine's effects change. */
interface SubmissionState {
  readonly memory: SubmissionIndex;
  readonly writer: SubmissionWriter;
  readonly listeners: Listeners;
  readonly failures: FailureLog;
}

type TransactionEvent = ChainEvent | SendingEvent | EntryEvent;

/** One event of one transaction, on its way through the effects. */
interface Step {
  readonly tracked: TrackedTransaction;
  /** As they were before the event: an end drops them. */
  readonly facts: TransactionFacts | null;
  /** What the timelines get; null: the event leaves no line there. */
  readonly line: TimelineEvent | null;
  /** The accounts that it concerns; after "record" those whose timelines took it. */
  views: readonly AccountTransaction[];
}

export class SubmissionStateMachine implements SubmissionEvents {
  readonly dispatch: Dispatch;
  readonly observer: OutcomeObserver;
  readonly recorder: StatusRecorder;
  readonly #parts: StateMachineDependencies;
  readonly #state: SubmissionState;
  readonly #queue: SubmissionEvent[] = [];
  #isHandling = false;
  /** Not observed yet: to begin with that is slower than sending. */
  readonly #fresh: TrackedTransaction[] = [];

  constructor(
    parts: StateMachineDependencies,
    state: SubmissionState,
    limits: DispatchLimits & WatchLimits,
  ) {
    this.#parts = parts;
    this.#state = state;
    this.recorder = new StatusRecorder(state.writer, state.listeners);
    this.dispatch = new Dispatch(parts, state.memory, this, limits);
    this.observer = new OutcomeObserver(parts, this, limits);
  }

  handle(event: SubmissionEvent): void {
    this.#queue.push(event);
    if (this.#isHandling) return; // it follows from the event that is under way
    this.#isHandling = true;
    try {
      for (let next = this.#queue.shift(); next; next = this.#queue.shift()) this.#handle(next);
    } finally {
      this.#isHandling = false;
    }
  }

  /** One transaction of a new submission; the view that the account has of it moves there. */
  enter(
    submission: Submission,
    facts: TransactionFacts,
    record?: SubmissionRecord,
  ): AccountTransaction {
    const { memory } = this.#state;
    const tracked = memory.open(facts.signature) ?? this.#track(facts, submission);
    let view = tracked.views.get(submission.accountId);
    if (view) {
      const { submission: before } = view;
      view.submission = submission;
      if (before.views.every((one) => one.submission !== before)) this.dispatch.stop(before);
    } else {
      view = new AccountTransaction(tracked, submission, new Lifecycle(record?.events));
      tracked.views.set(view.accountId, view);
      memory.countOpenView(view.accountId, 1);
    }
    // It was in a block before the restart: should it fail, its tip is taken back.
    if (record && record.slot !== null && facts.tipLamports > 0n) tracked.isTipSeen = true;
    submission.views.push(view);
    if (isOfPair(view)) memory.joinPair(tracked);
    view.bundleId = record?.bundleId ?? null;
    view.bundleIndex = record?.bundleIndex ?? submission.views.length - 1;
    view.isKept ||= record !== undefined;
    this.handle({ kind: record ? "resumed" : "accepted", view });
    return view;
  }

  /** The account's view of what has ended already; what it, or the store, knows stays as it is. */
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
      tracked.views.set(view.accountId, view);
      submission.views.push(view);
      if (record) {
        view.bundleId = record.bundleId;
        view.bundleIndex = record.bundleIndex;
        view.isKept = true;
      }
      this.handle({ kind: record ? "resumed" : "accepted", view });
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
    this.#state.memory.addBundle(views);
  }

  /** Begins to observe what was entered. */
  observeFresh(): void {
    for (const tracked of this.#fresh.splice(0)) this.observer.add(tracked);
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
    this.#state.writer.forget(view);
    this.dispatch.stop(view.submission);
    tracked.views.set(kept.accountId, kept);
    const { end } = lifecycle;
    if (tracked.end || end === null) return;
    if (tracked.views.size === 1) this.handle({ kind: eventOfFoundEnd[end.kind], tracked, end });
    // Others may land what the routes refused to this account.
    else if (end.kind === "rejected") this.#leave(tracked, kept.accountId);
    else this.handle({ ...end, kind: eventOfEnd[end.kind], tracked });
  }

  /** The account's call was refused after all; what only it asked for is forgotten. */
  forget(view: AccountTransaction): void {
    const { tracked } = view;
    const { writer, memory } = this.#state;
    writer.forget(view);
    this.dispatch.stop(view.submission);
    memory.forgetBundle(view.accountId, view.bundleId);
    if (tracked.views.get(view.accountId) !== view) return;
    if (tracked.end) {
      tracked.views.delete(view.accountId); // it was not counted as open any more
      return;
    }
    this.#leave(tracked, view.accountId);
    if (tracked.views.size === 0) this.handle({ kind: "call_refused", tracked });
  }

  #handle(event: SubmissionEvent): void {
    if (event.kind === "observer_failed") {
      this.#state.failures.warn("the watch of outcomes", event.error);
    } else if (event.kind === "submission_refused") {
      this.#refused(event.submission);
    } else if ("view" in event) {
      this.#step(event.view.tracked, event, [event.view]);
    } else if ("tracked" in event) {
      this.#step(event.tracked, event, [...event.tracked.views.values()]);
    } else {
      const { kind, submission } = event;
      for (const view of submission.views) {
        const isCurrent = view.submission === submission && !view.isForgotten;
        if (isCurrent || kind === "attempts_exhausted") this.#step(view.tracked, event, [view]);
      }
    }
  }

  /** Another account's submission of the same transaction may be open. */
  #refused(submission: Submission): void {
    this.dispatch.stop(submission);
    for (const { tracked } of submission.views) {
      const views = [...tracked.views.values()];
      if (views.some((view) => view.submission.sending.state !== "refused")) continue;
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
        this.#fresh.push(tracked);
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
        for (const view of step.views) this.#state.writer.ended(view);
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
        this.#tellTips(effect, step);
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
        this.#state.memory.forget(tracked);
        tracked.facts = null;
    }
  }

  /** The line of the timelines; null: the event leaves none there. */
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
    if (!("view" in event)) return null;
    const { receivedNs, method } = event.view.submission;
    return { kind: "received", atNs: receivedNs, method };
  }

  #endOf(
    tracked: TrackedTransaction,
    { reason, slot, err, ...known }: Ended,
    kind: EndState,
  ): EndEvent {
    const atNs = this.#parts.clock.nowNs();
    const landed = kind === "superseded" ? this.#state.memory.landedSibling(tracked) : undefined;
    const sibling = landed ?? known.sibling;
    if (sibling === undefined) return { kind, atNs, reason, slot, err };
    return { kind, atNs, reason: "sibling_landed", slot, err, sibling };
  }

  #repeatEnd({ tracked, views }: Step): void {
    const { end } = tracked;
    const open = views.filter(({ lifecycle }) => !lifecycle.end);
    if (end === null || open.length === 0) return;
    const taken = this.recorder.record(open, end);
    this.recorder.persist(taken, end);
    this.recorder.notify(taken, end);
  }

  #tellTips(
    effect: "report_tip" | "confirm_tip" | "retract_tip",
    { tracked, facts, line }: Step,
  ): void {
    const { tips } = this.#parts;
    const { signature } = tracked;
    if (effect === "retract_tip") {
      if (tracked.isTipSeen) tips?.gone(signature);
      tracked.isTipSeen = false;
      return;
    }
    const lamports = facts?.tipLamports ?? 0n;
    if (lamports === 0n || line === null) return;
    if (effect === "confirm_tip") {
      tips?.landed(signature, lamports, line.atNs);
    } else {
      tracked.isTipSeen = true;
      tips?.seen(signature, lamports, line.atNs);
    }
  }

  #reportNonce({ facts }: Step): void {
    if (facts?.nonce) this.#parts.nonces?.advanced(facts.nonce.account, facts.lifetime);
  }

  /** Something landed with this nonce value. Without a node nothing more will be known of the rest. */
  #endSiblings({ facts }: Step): void {
    if (!facts?.nonce) return;
    this.observer.spent(facts);
    if (this.#parts.outcomes) return;
    for (const tracked of this.#state.memory.pairOf(facts)) {
      const kind = "nonce_advanced";
      this.handle({ kind, tracked, reason: kind, slot: null, err: null });
    }
  }

  /** The block that held it is gone: what waited because of it need not wait any more. */
  #offerAgain({ tracked }: Step): void {
    for (const one of [tracked, ...this.#state.memory.pairOf(tracked.facts)]) {
      for (const { submission } of one.views.values()) this.dispatch.hasten(submission);
    }
  }

  /** A bundle lands whole or not at all: nothing of it is sent once one of it has ended. */
  #stopOffering({ tracked }: Step): void {
    for (const { submission } of tracked.views.values()) {
      this.dispatch.stop(submission);
      if (submission.views.every((one) => one.tracked.end)) submission.transactions = [];
    }
  }

  #close({ tracked, line }: Step): void {
    const { memory } = this.#state;
    if (line && isEnd(line)) tracked.end = line;
    for (const accountId of tracked.views.keys()) memory.countOpenView(accountId, -1);
    memory.moveToEnded(tracked);
    tracked.facts = null;
  }

  #leave(tracked: TrackedTransaction, accountId: string): void {
    if (tracked.views.delete(accountId)) this.#state.memory.countOpenView(accountId, -1);
  }

  #track(facts: TransactionFacts, { receivedNs }: Submission): TrackedTransaction {
    const { clock } = this.#parts;
    const ageNs = clock.nowNs() - receivedNs;
    const ageMs = ageNs > 0n ? Number(ageNs / nsPerMs) : 0;
    const tracked = new TrackedTransaction(facts, Number(clock.monotonicNs() / nsPerMs) - ageMs);
    this.#state.memory.addOpen(tracked);
    return tracked;
  }
}
