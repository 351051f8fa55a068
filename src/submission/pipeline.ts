// Pipeline: from an accepted request to its one end, over restarts.
//
// Made by main; called by the gateway through `Submissions`. The order in `submit` is the product's:
// first the routes' queues, then memory, then the store, and the caller hears when the store has it.
// What sends, watches and keeps are parts of this folder; here is what one of them tells the others.

import type { Clock, Timer } from "../core/clock.ts";
import { messageOf, ShredwayError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { TransactionFacts } from "../transactions/facts.ts";
import { attemptsBefore, checkRoom, landedBefore, repeated } from "./admission.ts";
import { Dispatch, type DispatchCounts } from "./dispatch.ts";
import { historyOfBundles, historyOfTransactions } from "./history.ts";
import { Keeper, type KeeperCounts } from "./keeper.ts";
import { type EndEvent, isEnd, Lifecycle } from "./lifecycle.ts";
import { defaultLimits, type PipelineLimits } from "./limits.ts";
import { Listeners } from "./listeners.ts";
import { Memory } from "./memory.ts";
import { type Ending, OutcomeWatch, type WatchCounts } from "./outcome-watch.ts";
import type { PlanPolicy } from "./plan.ts";
import { type Inspect, restoreFrom } from "./restore.ts";
import { bundleIdOf, nsPerMs, Submission, Tracked, View } from "./tracked.ts";
import type {
  BundleStatus,
  EndState,
  LeaderContext,
  Outcomes,
  Route,
  Sights,
  SubmissionRecord,
  SubmissionStore,
  Submissions,
  SubmitRequest,
  TimelineEvent,
  TransactionStatus,
} from "./types.ts";

export interface PipelineParts {
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  /** Asked before every attempt: a reload may have changed them. */
  routes(): readonly Route[];
  policy(): PlanPolicy;
  readonly store: SubmissionStore;
  /** Null: the relay does not deshred. */
  readonly sights: Sights | null;
  /** Null: no node is configured. */
  readonly outcomes: Outcomes | null;
  leaders(): LeaderContext;
  /** Measured length of a slot; null: not yet. */
  slotNs(): bigint | null;
  /** Reads kept bytes again after a restart. */
  readonly inspect: Inspect;
}

export interface PipelineSnapshot extends DispatchCounts {
  readonly open: number;
  /** In memory; the store may hold more. */
  readonly ended: number;
  readonly accepted: bigint;
  readonly ends: Readonly<Record<EndState, bigint>>;
  /** Events that came after an end. */
  readonly lateEvents: bigint;
  readonly store: KeeperCounts;
  readonly watch: WatchCounts;
}

const turnMs = 25;
const flushMs = 250;
const forgetMs = 3_600_000;
const warnMs = 10_000;

export class Pipeline implements Submissions {
  readonly #parts: PipelineParts;
  readonly #limits: PipelineLimits;
  readonly #memory: Memory;
  readonly #keeper: Keeper;
  readonly #dispatch: Dispatch;
  readonly #watch: OutcomeWatch;
  readonly #listeners: Listeners;
  readonly #forgetTimer: Timer;
  /** Not watched yet. */
  readonly #fresh: Tracked[] = [];
  #turnTimer: Timer | null = null;
  #nextFlushMs = 0;
  #warnedMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;
  #accepted = 0n;
  #lateEvents = 0n;
  readonly #ends: Record<EndState, bigint> = {
    landed: 0n,
    landed_failed: 0n,
    expired: 0n,
    superseded: 0n,
    rejected: 0n,
  };

  constructor(parts: PipelineParts, limits: Partial<PipelineLimits> = {}) {
    const { clock, store } = parts;
    this.#parts = parts;
    this.#limits = { ...defaultLimits, ...limits };
    this.#memory = new Memory(this.#limits.endedMax);
    this.#listeners = new Listeners((error) => this.#warn("a listener of statuses", error));
    this.#keeper = new Keeper(store, (error) => this.#warn("the database", error));
    this.#dispatch = new Dispatch(
      {
        clock,
        routes: () => parts.routes(),
        policy: () => parts.policy(),
        leaders: () => parts.leaders(),
        slotNs: () => parts.slotNs(),
        record: (submission, event) => this.#recordAll(submission, event),
        isInBlock: ({ views }) => views.some(({ tracked }) => this.#watch.isInBlock(tracked)),
        rejected: (submission) => this.#rejected(submission),
      },
      this.#limits,
    );
    this.#watch = new OutcomeWatch(
      {
        sights: parts.sights,
        outcomes: parts.outcomes,
        nowMs: () => this.#nowMs,
        nowNs: () => clock.nowNs(),
        slotNs: () => parts.slotNs(),
        seen: (tracked, slot, atNs) => this.#seen(tracked, slot, atNs),
        lost: ({ views }) => {
          for (const { submission } of views.values()) this.#dispatch.hurry(submission);
        },
        end: (tracked, ending) => this.#end(tracked, ending),
        failed: (error) => this.#warn("the watch of outcomes", error),
      },
      this.#limits,
    );
    this.#forgetTimer = clock.every(forgetMs, () => this.#forget());
  }

  async submit(request: SubmitRequest): Promise<void> {
    const landed = landedBefore(this.#memory, request);
    if (landed) return this.#acceptLanded(request, landed);
    const known = repeated(this.#memory, request);
    if (known) {
      this.#dispatch.repeat(known);
      return this.#kept(known, () => this.#keeper.keepOnce(known.views));
    }
    this.#checkRoom(request);
    const submission = new Submission(request);
    submission.attempts = attemptsBefore(this.#memory, request);
    const opened = this.#dispatch.first(submission);
    const views = request.transactions.map((facts) => this.#enter(submission, facts));
    this.#joinBundle(views, request);
    this.#accepted++;
    opened();
    this.#wake();
    return this.#kept(submission, () => this.#keeper.keep(views));
  }

  statuses(
    accountId: string,
    signatures: readonly string[],
  ): Promise<(TransactionStatus | null)[]> {
    return historyOfTransactions(this.#memory, this.#parts.store, accountId, signatures);
  }

  bundles(accountId: string, bundleIds: readonly string[]): Promise<(BundleStatus | null)[]> {
    return historyOfBundles(this.#memory, this.#parts.store, accountId, bundleIds);
  }

  subscribe(
    accountId: string,
    listener: (signature: string, event: TimelineEvent) => void,
  ): () => void {
    return this.#listeners.add(accountId, listener);
  }

  /** Takes up what was open. Before the first `submit`; rejects as the store. Returns how many. */
  async restore(): Promise<number> {
    const open = await this.#parts.store.open();
    const { restored, unreadable } = await restoreFrom(open, this.#parts.inspect);
    for (const { submission, records, facts, isPart } of restored) {
      const views = facts.map((known, i) => this.#enter(submission, known, records[i]));
      if (submission.isBundle) this.#memory.addBundle(views);
      if (isPart) this.#dispatch.stop(submission);
      else this.#dispatch.resume(submission);
    }
    const atNs = this.#parts.clock.nowNs();
    if (unreadable.length > 0) {
      await this.#parts.store.put(unreadable.map((record) => endedUnread(record, atNs)));
    }
    this.#wake();
    return open.length - unreadable.length;
  }

  snapshot(): PipelineSnapshot {
    return {
      ...this.#dispatch.counts,
      open: this.#memory.openCount,
      ended: this.#memory.endedCount,
      accepted: this.#accepted,
      ends: { ...this.#ends },
      lateEvents: this.#lateEvents,
      store: this.#keeper.counts,
      watch: this.#watch.counts,
    };
  }

  /** Sends and asks nothing any more; writes what changed. What is open stays open in the store. */
  close(): void {
    this.#isClosed = true;
    this.#turnTimer?.cancel();
    this.#turnTimer = null;
    this.#forgetTimer.cancel();
    this.#keeper.flush();
  }

  get #nowMs(): number {
    return Number(this.#parts.clock.monotonicNs() / nsPerMs);
  }

  #checkRoom(request: SubmitRequest): void {
    const { openMax } = this.#limits;
    checkRoom(this.#memory, request, openMax);
    const { dirty } = this.#keeper.counts;
    if (dirty <= 2 * openMax) return;
    throw new ShredwayError(
      "store_failed",
      `database: expected at most ${2 * openMax} changes that wait to be kept, got ${dirty}; it was not sent`,
    );
  }

  /** It has landed already: the account's own view of that, if it has none yet. */
  async #acceptLanded(request: SubmitRequest, landed: readonly Tracked[]): Promise<void> {
    const submission = new Submission(request);
    submission.isStopped = true;
    const fresh: View[] = [];
    const views = landed.map((tracked) => {
      const known = tracked.views.get(request.accountId);
      if (known) return known;
      const view = new View(tracked, submission);
      tracked.views.set(view.accountId, view);
      submission.views.push(view);
      this.#record(view, receivedEvent(request));
      if (tracked.end) this.#record(view, tracked.end);
      fresh.push(view);
      return view;
    });
    if (fresh.length > 0 && request.isBundle) this.#joinBundle(views, request);
    await this.#kept(submission, () => this.#keeper.keepOnce(views));
  }

  /** The view of one transaction of a new submission; one that the account has moves there. */
  #enter(submission: Submission, facts: TransactionFacts, record?: SubmissionRecord): View {
    const tracked = this.#memory.open(facts.signature) ?? this.#track(facts, submission);
    let view = tracked.views.get(submission.accountId);
    if (view) {
      const { submission: before } = view;
      view.submission = submission;
      if (before.views.every((one) => one.submission !== before)) this.#dispatch.stop(before);
    } else {
      view = new View(tracked, submission, new Lifecycle(record?.events));
      tracked.views.set(view.accountId, view);
    }
    submission.views.push(view);
    view.bundleId = record?.bundleId ?? null;
    view.bundleIndex = record?.bundleIndex ?? submission.views.length - 1;
    view.isKept ||= record !== undefined;
    if (!record) this.#record(view, receivedEvent(submission));
    return view;
  }

  #track(facts: TransactionFacts, { receivedNs }: Submission): Tracked {
    const ageNs = this.#parts.clock.nowNs() - receivedNs;
    const ageMs = ageNs > 0n ? Number(ageNs / nsPerMs) : 0;
    const tracked = new Tracked(facts, this.#nowMs - ageMs);
    this.#memory.addOpen(tracked);
    this.#fresh.push(tracked);
    return tracked;
  }

  #joinBundle(views: readonly View[], { isBundle }: SubmitRequest): void {
    if (!isBundle) return;
    const bundleId = bundleIdOf(views.map(({ tracked }) => tracked.signature));
    for (const view of views) view.bundleId = bundleId;
    this.#memory.addBundle(views);
  }

  /** Watches what is new, and lets time pass while anything is open. */
  #wake(): void {
    for (const tracked of this.#fresh.splice(0)) this.#watch.add(tracked);
    if (this.#turnTimer || this.#isClosed) return;
    this.#turnTimer = this.#parts.clock.every(turnMs, () => this.#turn());
  }

  #turn(): void {
    const nowMs = this.#nowMs;
    this.#dispatch.turn(nowMs);
    this.#watch.turn(nowMs);
    if (nowMs >= this.#nextFlushMs) {
      this.#nextFlushMs = nowMs + flushMs;
      this.#keeper.flush();
    }
    if (this.#memory.openCount > 0 || this.#keeper.counts.dirty > 0) return;
    this.#turnTimer?.cancel();
    this.#turnTimer = null;
  }

  #recordAll(submission: Submission, event: TimelineEvent): void {
    for (const view of submission.views) {
      if (view.submission === submission) this.#record(view, event);
    }
  }

  #record(view: View, event: TimelineEvent): void {
    if (!view.lifecycle.add(event)) {
      this.#lateEvents++;
      return;
    }
    if (isEnd(event)) this.#keeper.ended(view);
    else this.#keeper.changed(view);
    this.#listeners.tell(view.accountId, view.tracked.signature, event);
  }

  #seen(tracked: Tracked, slot: bigint, atNs: bigint): void {
    for (const view of tracked.views.values()) this.#record(view, { kind: "seen", atNs, slot });
  }

  #rejected(submission: Submission): void {
    this.#dispatch.stop(submission);
    for (const { tracked } of submission.views) {
      const views = [...tracked.views.values()];
      if (tracked.end || views.some((view) => !view.submission.isRejected)) continue;
      const reason = "routes_refused";
      this.#end(tracked, { state: "rejected", reason, slot: null, err: null });
    }
  }

  #end(tracked: Tracked, ending: Ending): void {
    if (tracked.end) return;
    const end = this.#endEvent(tracked, ending);
    tracked.end = end;
    this.#ends[end.kind]++;
    this.#watch.remove(tracked);
    const hasLanded = end.kind === "landed" || end.kind === "landed_failed";
    if (hasLanded && tracked.facts?.nonce) this.#watch.hurry(tracked);
    this.#memory.moveToEnded(tracked);
    tracked.facts = null;
    for (const view of tracked.views.values()) {
      const { submission } = view;
      // A bundle lands whole or not at all: nothing of it is sent once one of it has ended.
      this.#dispatch.stop(submission);
      if (submission.views.every((one) => one.tracked.end)) submission.transactions = [];
      this.#record(view, end);
    }
  }

  #endEvent(tracked: Tracked, { state, reason, slot, err }: Ending): EndEvent {
    const atNs = this.#parts.clock.nowNs();
    const sibling = state === "superseded" ? this.#memory.landedSibling(tracked) : undefined;
    if (sibling === undefined) return { kind: state, atNs, reason, slot, err };
    return { kind: state, atNs, reason: "sibling_landed", slot, err, sibling };
  }

  /** Waits for the store. What could not be kept is not sent again: its caller was told so. */
  async #kept(submission: Submission, keep: () => Promise<void>): Promise<void> {
    try {
      await keep();
    } catch (cause) {
      this.#dispatch.stop(submission);
      const isOut = submission.attempts > 0;
      throw new ShredwayError(
        "store_failed",
        `database: expected to keep the submission, got ${messageOf(cause)}; ${isOut ? "it may have been sent" : "it was not sent"}`,
        { cause },
      );
    }
  }

  #forget(): void {
    const beforeNs = this.#parts.clock.nowNs() - BigInt(this.#limits.historyMs) * nsPerMs;
    this.#memory.forgetEndedBefore(beforeNs);
    this.#parts.store
      .forgetEndedBefore(beforeNs)
      .catch((error: unknown) => this.#warn("the database", error));
  }

  /** At most one line in ten seconds: what fails, fails often. */
  #warn(what: string, error: unknown): void {
    const nowMs = this.#nowMs;
    if (nowMs - this.#warnedMs < warnMs) return;
    this.#warnedMs = nowMs;
    this.#parts.log.warn(`submissions: ${what} failed: ${messageOf(error)}`);
  }
}

function receivedEvent({ receivedNs, method }: SubmitRequest | Submission): TimelineEvent {
  return { kind: "received", atNs: receivedNs, method };
}

function endedUnread(record: SubmissionRecord, atNs: bigint): SubmissionRecord {
  const reason = "bytes_unreadable";
  const end: EndEvent = { kind: "expired", atNs, reason, slot: null, err: null };
  const lifecycle = new Lifecycle([...record.events, end]);
  const { state, events } = lifecycle;
  return { ...record, state, endedNs: atNs, reason, events, wire: null };
}
