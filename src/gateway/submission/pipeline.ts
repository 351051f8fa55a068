// Pipeline: takes submissions from the call to their end, across restarts.
//
// The gateway calls it through `Submissions`. `submit` first puts the transaction into the routes' queues,
// then into memory, then into the store, and answers when the store has it. Every change of a
// transaction's state goes through state-machine.ts; this file handles calls, the timer and the store.

import type { Timer } from "../../core/clock.ts";
import { ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import {
  attemptsBefore,
  checkLimits,
  endedError,
  landedBefore,
  repeated,
  unknownOf,
} from "./admission.ts";
import type { DispatchCounts } from "./dispatch.ts";
import { FailureLog } from "./failure-log.ts";
import { historyOfBundles, historyOfTransactions } from "./history.ts";
import { appended, type EndEvent, hasLanded, Lifecycle } from "./lifecycle.ts";
import { defaultLimits, type PipelineLimits } from "./limits.ts";
import { Listeners } from "./listeners.ts";
import type { ObserverCounts } from "./outcome-observer.ts";
import {
  checkNonceFree,
  checkPair,
  fulfilledBefore,
  isFulfilled,
  noteLandedSiblings,
  pairedWith,
} from "./pairs.ts";
import { type Inspect, restoreFrom } from "./restore.ts";
import { type StateMachineDependencies, SubmissionStateMachine } from "./state-machine.ts";
import type { StatusCounts } from "./status-recorder.ts";
import { SubmissionIndex } from "./submission-index.ts";
import { SubmissionWriter, type WriterCounts } from "./submission-writer.ts";
import {
  type AccountBundle,
  type AccountTransaction,
  isOfPair,
  nsPerMs,
  Submission,
  type TrackedTransaction,
} from "./tracked-transaction.ts";
import type {
  BundleStatus,
  SubmissionRecord,
  SubmissionStore,
  Submissions,
  SubmitRequest,
  TimelineEvent,
  TransactionStatus,
} from "./types.ts";

interface PipelineDependencies extends StateMachineDependencies {
  readonly log: Pick<Logger, "warn">;
  readonly store: SubmissionStore;
  /** Parses the bytes of stored transactions after a restart. */
  readonly inspect: Inspect;
  /** Called with each signature that was submitted and not taken by the fast path. */
  readonly submitted?: (signature: string) => void;
  /** Called when the store begins to fail: nothing may be sent before it is recorded. */
  readonly storeFailing?: () => void;
}

export interface PipelineSnapshot extends DispatchCounts, StatusCounts {
  readonly open: number;
  /** Ended transactions in memory; the store may hold more. */
  readonly ended: number;
  readonly accepted: bigint;
  readonly writer: WriterCounts;
  readonly observer: ObserverCounts;
}

const turnMs = 25;
/**
 * Ends are written at once; a kill loses the other events of this time. Each turn writes its share, because
 * encoding all of them at once would delay new submissions by milliseconds.
 */
const flushMs = 1000;
const flushTurns = flushMs / turnMs;
/** Few changes need no second. */
const recordsPerTurnMin = 8;
const forgetMs = 3_600_000;
const probeIntervalMs = 1000;
/** More transactions than the fast path sends before their requests are read (fast_path.h). */
const takenMax = 128;

export class Pipeline implements Submissions {
  readonly #dependencies: PipelineDependencies;
  readonly #limits: PipelineLimits;
  readonly #index: SubmissionIndex;
  readonly #writer: SubmissionWriter;
  readonly #failures: FailureLog;
  readonly #machine: SubmissionStateMachine;
  readonly #listeners: Listeners;
  readonly #forgetTimer: Timer;
  #turnTimer: Timer | null = null;
  #nextFlushMs = 0;
  /** Changed timelines that each turn writes until none is left. */
  #flushShare = 0;
  #lastTrialMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;
  #accepted = 0n;

  constructor(dependencies: PipelineDependencies, limits: Partial<PipelineLimits> = {}) {
    const { clock, store, log } = dependencies;
    this.#dependencies = dependencies;
    this.#limits = { ...defaultLimits, ...limits };
    const index = new SubmissionIndex(this.#limits.endedMax);
    const failures = new FailureLog(clock, log);
    const listeners = new Listeners((error) => failures.warn("a status listener", error));
    const writer = new SubmissionWriter(
      store,
      (error) => failures.warn("the database", error),
      () => dependencies.storeFailing?.(),
    );
    this.#index = index;
    this.#failures = failures;
    this.#listeners = listeners;
    this.#writer = writer;
    this.#machine = new SubmissionStateMachine(
      dependencies,
      { index, writer, listeners, failures },
      this.#limits,
    );
    this.#forgetTimer = clock.every(forgetMs, () => this.#forget());
  }

  async submit(request: SubmitRequest): Promise<void> {
    const landed = landedBefore(this.#index, request);
    return landed ? this.#acceptEnded([request], landed) : this.#accept([request]);
  }

  async submitPair(first: SubmitRequest, second: SubmitRequest): Promise<void> {
    const pair = [first, second] as const;
    checkPair(pair);
    const ended = fulfilledBefore(this.#index, pair);
    if (ended) return this.#acceptEnded(pair, ended);
    checkNonceFree(this.#index, pair, this.#nowMs);
    return this.#accept([pairedWith(first, second), pairedWith(second, first)]);
  }

  statuses(
    accountId: string,
    signatures: readonly string[],
  ): Promise<(TransactionStatus | null)[]> {
    return this.#answered(
      historyOfTransactions(this.#index, this.#dependencies.store, accountId, signatures),
    );
  }

  bundles(accountId: string, bundleIds: readonly string[]): Promise<(BundleStatus | null)[]> {
    return this.#answered(
      historyOfBundles(this.#index, this.#dependencies.store, accountId, bundleIds),
    );
  }

  subscribe(
    accountId: string,
    listener: (signature: string, event: TimelineEvent) => void,
  ): () => void {
    return this.#listeners.add(accountId, listener);
  }

  /** Continues the open submissions of this node; call it before `submit`. Returns their number. */
  async restore(): Promise<number> {
    return this.resume(await this.#dependencies.store.open());
  }

  /**
   * Continues the open submissions of an earlier process or of a dead node. Those that are in memory
   * already stay as they are. Rejects if the store fails. Returns how many are new to this process.
   */
  async resume(open: readonly SubmissionRecord[]): Promise<number> {
    if (this.#isClosed) return 0; // the next process continues them
    const missing = open.filter((record) => !this.#isInMemory(record));
    const { restored, unreadable } = await restoreFrom(missing, this.#dependencies.inspect);
    const submissions = restored.map(({ submission }) => submission);
    await noteLandedSiblings(this.#index, this.#dependencies.store, submissions);
    if (this.#isClosed) return 0;
    for (const { submission, records, facts, isPart } of restored) {
      if (records.every((record) => this.#isInMemory(record))) continue; // submitted in the meantime
      const views = facts.map((known, i) => this.#machine.enter(submission, known, records[i]));
      if (!isPart) this.#machine.joinBundle(views, submission);
      this.#noteSubmitted(views);
      if (isPart) this.#machine.dispatch.stop(submission);
      else this.#machine.dispatch.resume(submission);
    }
    const atNs = this.#dependencies.clock.nowNs();
    if (unreadable.length > 0) {
      await this.#dependencies.store.put(unreadable.map((record) => endedUnread(record, atNs)));
    }
    this.#wake();
    return missing.length - unreadable.length;
  }

  /** Whether the account may submit further transactions that are sent before they are recorded. */
  mayTake(accountId: string): boolean {
    const { openMax, openPerAccountMax } = this.#limits;
    return (
      !this.#isClosed &&
      !this.#writer.isFailing &&
      this.#writer.counts.dirty <= openMax &&
      this.#index.openCount + takenMax <= openMax &&
      this.#index.openCountOf(accountId) + takenMax <= openPerAccountMax
    );
  }

  /** Whether it was submitted before, as far as memory knows: then the stored state decides. */
  isKnown(signature: string): boolean {
    return (this.#index.open(signature) ?? this.#index.ended(signature)) !== undefined;
  }

  snapshot(): PipelineSnapshot {
    return {
      ...this.#machine.dispatch.counts,
      open: this.#index.openCount,
      ended: this.#index.endedCount,
      accepted: this.#accepted,
      ...this.#machine.recorder.counts,
      writer: this.#writer.counts,
      observer: this.#machine.observer.counts,
    };
  }

  /**
   * Stops sending and observing. Open submissions stay open in the store; `close` writes what routes
   * report until then.
   */
  stop(): void {
    this.#isClosed = true;
    this.#machine.dispatch.close();
    this.#turnTimer?.cancel();
    this.#turnTimer = null;
    this.#forgetTimer.cancel();
  }

  /** Stops, and writes everything that changed. */
  close(): void {
    this.stop();
    this.#writer.flush(Number.POSITIVE_INFINITY);
  }

  get #nowMs(): number {
    return Number(this.#dependencies.clock.monotonicNs() / nsPerMs);
  }

  /** Accepts one request, or the two of a pair: each becomes a submission, or none does. */
  #accept(requests: readonly SubmitRequest[]): Promise<void> {
    const known = requests.flatMap((request) => repeated(this.#index, request) ?? []);
    if (known.length === requests.length) {
      for (const submission of known) this.#machine.dispatch.repeat(submission);
      const views = known.flatMap((submission) => submission.views);
      return this.#persisted(known, () => this.#writer.persistOnce(views, bundlesOf(known)));
    }
    const [{ taken } = {}] = requests;
    // `mayTake` left room for those that were sent already.
    if (!taken) this.#checkLimits(requests);
    const unknown = requests.flatMap((request) => unknownOf(this.#index, request));
    const submissions = requests.map((request) => {
      const submission = new Submission(request);
      const attempts = attemptsBefore(this.#index, request);
      if (attempts > 0) submission.sending.continueFrom(attempts);
      return submission;
    });
    const attempts = this.#machine.dispatch.first(submissions, taken);
    const views = submissions.flatMap((submission) => this.#enter(submission));
    this.#accepted += BigInt(requests.length);
    if (!taken) this.#noteSubmitted(views);
    for (const attempt of attempts) this.#machine.dispatch.begin(attempt);
    this.#wake();
    return this.#persisted(submissions, () => this.#persistFirst(submissions, views, unknown));
  }

  /** If so, its state is written, since the record may come from another node. */
  #isInMemory({ accountId, signature }: SubmissionRecord): boolean {
    const view = this.#index.view(accountId, signature);
    if (!view || view.lifecycle.state === "rejected") return false;
    if (view.lifecycle.end) this.#writer.ended(view);
    else this.#writer.changed(view);
    return true;
  }

  #noteSubmitted(views: readonly AccountTransaction[]): void {
    for (const { tracked } of views) this.#dependencies.submitted?.(tracked.signature);
  }

  #enter(submission: Submission): AccountTransaction[] {
    const views = submission.transactions.map((facts) => this.#machine.enter(submission, facts));
    this.#machine.joinBundle(views, submission);
    return views;
  }

  #checkLimits(requests: readonly SubmitRequest[]): void {
    const { openMax } = this.#limits;
    const accountId = requests[0]?.accountId ?? "";
    const transactions = requests.flatMap((request) => request.transactions);
    checkLimits(this.#index, { accountId, transactions }, this.#limits);
    const { dirty } = this.#writer.counts;
    const nowMs = this.#nowMs;
    // While the store fails, one submission per second is tried; the others must not be sent.
    const isTrial = this.#writer.isFailing && nowMs - this.#lastTrialMs >= probeIntervalMs;
    if (isTrial) this.#lastTrialMs = nowMs;
    if (dirty <= 2 * openMax && (isTrial || !this.#writer.isFailing)) return;
    throw new ShredwayError(
      "store_failed",
      "database not available: the submission was not persisted and not sent; submit it again later",
    );
  }

  /** Accepts transactions that have ended: nothing is sent; an earlier process's record is looked up. */
  async #acceptEnded(
    requests: readonly SubmitRequest[],
    ended: readonly TrackedTransaction[],
  ): Promise<void> {
    const submissions = requests.map((request) => new Submission(request));
    await this.#persisted(submissions, async () => {
      const accountId = requests[0]?.accountId ?? "";
      const missing = ended.filter(({ views }) => !views.has(accountId));
      const signatures = missing.map(({ signature }) => signature);
      const found =
        missing.length > 0 ? await this.#dependencies.store.find(accountId, signatures) : [];
      const persisted = submissions.flatMap((submission) => {
        const own = ended.filter(({ signature }) =>
          submission.transactions.some((facts) => facts.signature === signature),
        );
        const views = this.#machine.enterEnded(submission, own, found);
        this.#machine.joinBundle(views, submission);
        return views;
      });
      // The other one of a pair may still be open.
      const open = requests.flatMap(({ transactions }) =>
        transactions.flatMap((facts) => {
          return this.#index.open(facts.signature)?.views.get(accountId) ?? [];
        }),
      );
      await this.#writer.persistOnce([...persisted, ...open], bundlesOf(submissions));
    });
  }

  /** Starts to observe new transactions, and runs the timer while any is open. */
  #wake(): void {
    this.#machine.observeNew();
    if (this.#turnTimer || this.#isClosed) return;
    this.#turnTimer = this.#dependencies.clock.every(turnMs, () => this.#tick());
  }

  #tick(): void {
    const nowMs = this.#nowMs;
    this.#machine.dispatch.turn(nowMs);
    this.#machine.observer.turn(nowMs);
    this.#flush(nowMs);
    if (this.#index.openCount > 0 || this.#writer.hasUnwritten) return;
    this.#turnTimer?.cancel();
    this.#turnTimer = null;
  }

  /** While the store fails, it is tried once a second. */
  #flush(nowMs: number): void {
    if (nowMs < this.#nextFlushMs) return;
    const { isFailing, counts } = this.#writer;
    this.#nextFlushMs = isFailing ? nowMs + flushMs : nowMs;
    if (isFailing) {
      this.#writer.flush();
      return;
    }
    // The share does not shrink with a backlog, which would then never drain in time.
    const share = Math.max(recordsPerTurnMin, Math.ceil(counts.dirty / flushTurns));
    this.#flushShare = Math.max(this.#flushShare, share);
    this.#writer.flush(this.#flushShare);
    if (counts.dirty <= this.#flushShare) this.#flushShare = 0;
  }

  /** The first write. Usually all of them are new: then it also answers whether they are. */
  #persistFirst(
    submissions: readonly Submission[],
    views: readonly AccountTransaction[],
    unknown: readonly string[],
  ): Promise<void> {
    const persistKnown = () => this.#persistKnown(submissions, views, unknown);
    if (unknown.length < views.length) return persistKnown();
    return this.#writer
      .add(views, bundlesOf(submissions))
      .then((isAllNew) => (isAllNew ? undefined : persistKnown()));
  }

  /**
   * Only the store knows transactions that ended before this process started, or long ago; their ends must
   * not be overwritten.
   */
  async #persistKnown(
    submissions: readonly Submission[],
    views: readonly AccountTransaction[],
    unknown: readonly string[],
  ): Promise<void> {
    const accountId = views[0]?.accountId ?? "";
    const found =
      unknown.length > 0
        ? await this.#writer.persistAfter(views, this.#dependencies.store.find(accountId, unknown))
        : [];
    const ended = found.filter(({ state }) => state !== "open" && state !== "rejected");
    const bundles = bundlesOf(submissions);
    if (ended.length === 0) return this.#writer.persist(views, bundles);
    for (const record of ended) {
      const view = views.find(({ tracked }) => tracked.signature === record.signature);
      if (view) this.#machine.adopt(view, record);
    }
    const dead = ended.find(({ state }) => !hasLanded({ kind: state }));
    if (!dead && ended.length === views.length) return this.#writer.persistOnce([], bundles);
    const isKnown = found.length === unknown.length;
    if (views.every(isOfPair) && isFulfilled(ended, isKnown))
      return this.#writer.persistOnce(views);
    for (const submission of submissions) this.#forgetUnpersisted(submission);
    const { signature, state, reason } = dead ?? ended[0] ?? {};
    throw endedError(signature, state, reason);
  }

  /** Hides the store's own message, which may contain paths, from callers. */
  async #answered<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (cause) {
      this.#failures.warn("the database", cause);
      throw new ShredwayError("store_failed", "database not available: retry later", { cause });
    }
  }

  /** Waits for the store. A submission that could not be persisted is not sent again; its caller gets an error. */
  #persisted(submissions: readonly Submission[], keep: () => Promise<void>): Promise<void> {
    for (const submission of submissions) submission.waiters++;
    return keep().then(
      () => endWait(submissions),
      (cause: unknown) => {
        endWait(submissions);
        this.#unpersisted(submissions, cause);
      },
    );
  }

  /** Throws the error for the caller. */
  #unpersisted(submissions: readonly Submission[], cause: unknown): never {
    // Another call for the same submission may still wait, or may have been answered.
    const unwanted = submissions.filter(
      ({ waiters, views }) => waiters === 0 && !views.some(({ isPersisted }) => isPersisted),
    );
    for (const submission of unwanted) this.#machine.dispatch.stop(submission);
    if (cause instanceof ShredwayError && cause.reason === "no_route") throw cause;
    this.#failures.warn("the database", cause);
    this.#lastTrialMs = this.#nowMs;
    // The next process must not send what was not sent now.
    for (const submission of unwanted) {
      if (submission.attempts === 0) this.#forgetUnpersisted(submission);
    }
    const isOut = submissions.some(({ attempts }) => attempts > 0);
    throw new ShredwayError(
      "store_failed",
      `database failed: the submission was not persisted and ${isOut ? "may have been" : "was not"} sent`,
      { cause },
    );
  }

  /** Except transactions that a later call has submitted meanwhile: that call waits for their write. */
  #forgetUnpersisted(submission: Submission): void {
    for (const view of submission.views) {
      if (view.submission === submission && !view.isPersisted) this.#machine.forget(view);
    }
  }

  #forget(): void {
    const beforeNs = this.#dependencies.clock.nowNs() - BigInt(this.#limits.historyMs) * nsPerMs;
    this.#index.forgetEndedBefore(beforeNs);
    this.#dependencies.store
      .forgetEndedBefore(beforeNs)
      .catch((error: unknown) => this.#failures.warn("the database", error));
  }
}

const noBundles: readonly AccountBundle[] = [];

function bundlesOf(submissions: readonly Submission[]): readonly AccountBundle[] {
  let bundles = noBundles;
  for (const { bundle } of submissions) if (bundle) bundles = appended(bundles, bundle);
  return bundles;
}

function endWait(submissions: readonly Submission[]): void {
  for (const submission of submissions) submission.waiters--;
}

function endedUnread(record: SubmissionRecord, atNs: bigint): SubmissionRecord {
  const reason = "bytes_unreadable";
  const end: EndEvent = { kind: "expired", atNs, reason, slot: null, err: null };
  const lifecycle = new Lifecycle([...record.events, end]);
  const { state, events } = lifecycle;
  return { ...record, state, endedNs: atNs, reason, events, wire: null };
}
