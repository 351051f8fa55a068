// Pipeline: from an accepted request to its one end, over restarts.
//
// Made by main; called by the gateway through `Submissions`. The order in `submit` is the product's:
// first the routes' queues, then memory, then the store, and the caller hears when the store has it.
// Every change of a transaction's state goes through state-machine.ts; here are the calls of accounts,
// the turns of the timer, and the store's answers.

import type { Timer } from "../../core/clock.ts";
import { ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import {
  attemptsBefore,
  checkRoom,
  deadError,
  landedBefore,
  repeated,
  unknownOf,
} from "./admission.ts";
import type { DispatchCounts } from "./dispatch.ts";
import { FailureLog } from "./failure-log.ts";
import { historyOfBundles, historyOfTransactions } from "./history.ts";
import { type EndEvent, hasLanded, Lifecycle } from "./lifecycle.ts";
import { defaultLimits, type PipelineLimits } from "./limits.ts";
import { Listeners } from "./listeners.ts";
import type { WatchCounts } from "./outcome-observer.ts";
import { checkNonceFree, checkPair, fulfilledBefore, isFulfilled } from "./pairs.ts";
import { type Inspect, restoreFrom } from "./restore.ts";
import { type StateMachineDependencies, SubmissionStateMachine } from "./state-machine.ts";
import type { TrackingCounts } from "./status-recorder.ts";
import { SubmissionIndex } from "./submission-index.ts";
import { type KeeperCounts, SubmissionWriter } from "./submission-writer.ts";
import {
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
  /** Reads kept bytes again after a restart. */
  readonly inspect: Inspect;
}

export interface PipelineSnapshot extends DispatchCounts, TrackingCounts {
  readonly open: number;
  /** In memory; the store may hold more. */
  readonly ended: number;
  readonly accepted: bigint;
  readonly store: KeeperCounts;
  readonly watch: WatchCounts;
}

const turnMs = 25;
/** Ends are written at once; what a kill takes of a timeline is as much. */
const flushMs = 1000;
const forgetMs = 3_600_000;
const tryMs = 1000;

export class Pipeline implements Submissions {
  readonly #parts: PipelineDependencies;
  readonly #limits: PipelineLimits;
  readonly #memory: SubmissionIndex;
  readonly #keeper: SubmissionWriter;
  readonly #failures: FailureLog;
  readonly #machine: SubmissionStateMachine;
  readonly #listeners: Listeners;
  readonly #forgetTimer: Timer;
  #turnTimer: Timer | null = null;
  #nextFlushMs = 0;
  #triedMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;
  #accepted = 0n;

  constructor(parts: PipelineDependencies, limits: Partial<PipelineLimits> = {}) {
    const { clock, store, log } = parts;
    this.#parts = parts;
    this.#limits = { ...defaultLimits, ...limits };
    const memory = new SubmissionIndex(this.#limits.endedMax);
    const failures = new FailureLog(clock, log);
    const listeners = new Listeners((error) => failures.warn("a listener of statuses", error));
    const writer = new SubmissionWriter(store, (error) => failures.warn("the database", error));
    this.#memory = memory;
    this.#failures = failures;
    this.#listeners = listeners;
    this.#keeper = writer;
    this.#machine = new SubmissionStateMachine(
      parts,
      { memory, writer, listeners, failures },
      this.#limits,
    );
    this.#forgetTimer = clock.every(forgetMs, () => this.#forget());
  }

  async submit(request: SubmitRequest): Promise<void> {
    const landed = landedBefore(this.#memory, request);
    return landed ? this.#acceptEnded([request], landed) : this.#take([request]);
  }

  async submitPair(first: SubmitRequest, second: SubmitRequest): Promise<void> {
    const pair = [first, second] as const;
    checkPair(pair);
    const ended = fulfilledBefore(this.#memory, pair);
    if (ended) return this.#acceptEnded(pair, ended);
    const sentForNs = BigInt(this.#limits.resendForMs) * nsPerMs;
    checkNonceFree(this.#memory, pair, this.#parts.clock.nowNs() - sentForNs);
    return this.#take(pair);
  }

  statuses(
    accountId: string,
    signatures: readonly string[],
  ): Promise<(TransactionStatus | null)[]> {
    return this.#asked(
      historyOfTransactions(this.#memory, this.#parts.store, accountId, signatures),
    );
  }

  bundles(accountId: string, bundleIds: readonly string[]): Promise<(BundleStatus | null)[]> {
    return this.#asked(historyOfBundles(this.#memory, this.#parts.store, accountId, bundleIds));
  }

  subscribe(
    accountId: string,
    listener: (signature: string, event: TimelineEvent) => void,
  ): () => void {
    return this.#listeners.add(accountId, listener);
  }

  /** Takes up what was open. Before the first `submit`; rejects as the store. Returns how many. */
  async restore(): Promise<number> {
    return this.takeUp(await this.#parts.store.open());
  }

  /**
   * Goes on with what is this node's in the store: an earlier process's, or that of a node that is gone.
   * What memory has already goes on as it is. Rejects as the store. Returns how many are new here.
   */
  async takeUp(open: readonly SubmissionRecord[]): Promise<number> {
    if (this.#isClosed) return 0; // the next process does it
    const missing = open.filter((record) => !this.#isInMemory(record));
    const { restored, unreadable } = await restoreFrom(missing, this.#parts.inspect);
    if (this.#isClosed) return 0;
    for (const { submission, records, facts, isPart } of restored) {
      if (records.every((record) => this.#isInMemory(record))) continue; // came in this moment
      const views = facts.map((known, i) => this.#machine.enter(submission, known, records[i]));
      if (submission.isBundle) this.#memory.addBundle(views);
      if (isPart) this.#machine.dispatch.stop(submission);
      else this.#machine.dispatch.resume(submission);
    }
    const atNs = this.#parts.clock.nowNs();
    if (unreadable.length > 0) {
      await this.#parts.store.put(unreadable.map((record) => endedUnread(record, atNs)));
    }
    this.#wake();
    return missing.length - unreadable.length;
  }

  snapshot(): PipelineSnapshot {
    return {
      ...this.#machine.dispatch.counts,
      open: this.#memory.openCount,
      ended: this.#memory.endedCount,
      accepted: this.#accepted,
      ...this.#machine.recorder.counts,
      store: this.#keeper.counts,
      watch: this.#machine.observer.counts,
    };
  }

  /**
   * Sends and asks nothing any more. What is open stays open in the store; what the routes still say
   * is kept by `close`.
   */
  stop(): void {
    this.#isClosed = true;
    this.#machine.dispatch.close();
    this.#turnTimer?.cancel();
    this.#turnTimer = null;
    this.#forgetTimer.cancel();
  }

  /** `stop`, and writes everything that changed. */
  close(): void {
    this.stop();
    this.#keeper.flush(Number.POSITIVE_INFINITY);
  }

  get #nowMs(): number {
    return Number(this.#parts.clock.monotonicNs() / nsPerMs);
  }

  /** One request, or a pair: each becomes a submission of its own, all of them or none. */
  #take(requests: readonly SubmitRequest[]): Promise<void> {
    const known = requests.flatMap((request) => repeated(this.#memory, request) ?? []);
    if (known.length === requests.length) {
      for (const submission of known) this.#machine.dispatch.repeat(submission);
      const views = known.flatMap((submission) => submission.views);
      return this.#kept(known, () => this.#keeper.keepOnce(views));
    }
    this.#checkRoom(requests);
    const unknown = requests.flatMap((request) => unknownOf(this.#memory, request));
    const submissions = requests.map((request) => {
      const submission = new Submission(request);
      const attempts = attemptsBefore(this.#memory, request);
      if (attempts > 0) submission.sending.continueFrom(attempts);
      return submission;
    });
    const attempts = this.#machine.dispatch.first(submissions);
    const views = submissions.flatMap((submission) => this.#enter(submission));
    this.#accepted += BigInt(requests.length);
    for (const attempt of attempts) this.#machine.dispatch.begin(attempt);
    this.#wake();
    return this.#kept(submissions, () => this.#keepFirst(views, unknown));
  }

  /** Then what memory knows of it is written: the record was another node's, perhaps. */
  #isInMemory({ accountId, signature }: SubmissionRecord): boolean {
    const view = this.#memory.view(accountId, signature);
    if (!view || view.lifecycle.state === "rejected") return false;
    if (view.lifecycle.end) this.#keeper.ended(view);
    else this.#keeper.changed(view);
    return true;
  }

  #enter(submission: Submission): AccountTransaction[] {
    const views = submission.transactions.map((facts) => this.#machine.enter(submission, facts));
    this.#machine.joinBundle(views, submission);
    return views;
  }

  #checkRoom(requests: readonly SubmitRequest[]): void {
    const { openMax } = this.#limits;
    const accountId = requests[0]?.accountId ?? "";
    const transactions = requests.flatMap((request) => request.transactions);
    checkRoom(this.#memory, { accountId, transactions }, this.#limits);
    const { dirty } = this.#keeper.counts;
    const nowMs = this.#nowMs;
    // One is tried each second: what cannot be kept must not be sent.
    const isTrial = this.#keeper.isFailing && nowMs - this.#triedMs >= tryMs;
    if (isTrial) this.#triedMs = nowMs;
    if (dirty <= 2 * openMax && (isTrial || !this.#keeper.isFailing)) return;
    throw new ShredwayError(
      "store_failed",
      "database: expected to keep the submission, it keeps none at present; it was not sent",
    );
  }

  /** Nothing is sent: what an earlier process knew of it is asked for first. */
  async #acceptEnded(
    requests: readonly SubmitRequest[],
    ended: readonly TrackedTransaction[],
  ): Promise<void> {
    const submissions = requests.map((request) => new Submission(request));
    await this.#kept(submissions, async () => {
      const accountId = requests[0]?.accountId ?? "";
      const missing = ended.filter(({ views }) => !views.has(accountId));
      const signatures = missing.map(({ signature }) => signature);
      const found = missing.length > 0 ? await this.#parts.store.find(accountId, signatures) : [];
      const kept = submissions.flatMap((submission) => {
        const own = ended.filter(({ signature }) =>
          submission.transactions.some((facts) => facts.signature === signature),
        );
        const views = this.#machine.enterEnded(submission, own, found);
        if (submission.views.length > 0) this.#machine.joinBundle(views, submission);
        return views;
      });
      // Of a pair the other one may not have ended yet.
      const open = requests.flatMap(({ transactions }) =>
        transactions.flatMap((facts) => {
          return this.#memory.open(facts.signature)?.views.get(accountId) ?? [];
        }),
      );
      await this.#keeper.keepOnce([...kept, ...open]);
    });
  }

  /** Watches what is new, and lets time pass while anything is open. */
  #wake(): void {
    this.#machine.observeFresh();
    if (this.#turnTimer || this.#isClosed) return;
    this.#turnTimer = this.#parts.clock.every(turnMs, () => this.#turn());
  }

  #turn(): void {
    const nowMs = this.#nowMs;
    this.#machine.dispatch.turn(nowMs);
    this.#machine.observer.turn(nowMs);
    if (nowMs >= this.#nextFlushMs) {
      this.#nextFlushMs = nowMs + flushMs;
      this.#keeper.flush();
    }
    if (this.#memory.openCount > 0 || this.#keeper.counts.dirty > 0) return;
    this.#turnTimer?.cancel();
    this.#turnTimer = null;
  }

  /**
   * The first write. Memory does not know what ended before the process began, or long ago; the
   * store does, and an end that is kept there must not be replaced by a new beginning.
   */
  async #keepFirst(
    views: readonly AccountTransaction[],
    unknown: readonly string[],
  ): Promise<void> {
    // Almost always all of them are new: then the first write is the question, too.
    const isAllNew = unknown.length === views.length && (await this.#keeper.add(views));
    if (isAllNew) return;
    const accountId = views[0]?.accountId ?? "";
    const found =
      unknown.length > 0
        ? await this.#keeper.after(views, this.#parts.store.find(accountId, unknown))
        : [];
    const ended = found.filter(({ state }) => state !== "open" && state !== "rejected");
    if (ended.length === 0) return this.#keeper.keep(views);
    for (const record of ended) {
      const view = views.find(({ tracked }) => tracked.signature === record.signature);
      if (view) this.#machine.adopt(view, record);
    }
    const dead = ended.find(({ state }) => !hasLanded({ kind: state }));
    if (!dead && ended.length === views.length) return;
    const isKnown = found.length === unknown.length;
    if (views.every(isOfPair) && isFulfilled(ended, isKnown)) return this.#keeper.keepOnce(views);
    for (const view of views) if (!view.isKept) this.#machine.forget(view);
    const { signature, state, reason } = dead ?? ended[0] ?? {};
    throw deadError(signature, state, reason);
  }

  /** Callers are not told what the store's files are called. */
  async #asked<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (cause) {
      this.#failures.warn("the database", cause);
      throw new ShredwayError("store_failed", "database: expected an answer, got none", { cause });
    }
  }

  /** Waits for the store. What could not be kept is not sent again: its caller was told so. */
  async #kept(submissions: readonly Submission[], keep: () => Promise<void>): Promise<void> {
    for (const submission of submissions) submission.waiters++;
    try {
      await keep();
      for (const submission of submissions) submission.waiters--;
    } catch (cause) {
      for (const submission of submissions) submission.waiters--;
      // Somebody who asked for the same may still be told that it is kept, or was.
      const unwanted = submissions.filter(
        ({ waiters, views }) => waiters === 0 && !views.some(({ isKept }) => isKept),
      );
      for (const submission of unwanted) this.#machine.dispatch.stop(submission);
      if (cause instanceof ShredwayError && cause.reason === "no_route") throw cause;
      this.#failures.warn("the database", cause);
      this.#triedMs = this.#nowMs;
      // What was not sent now must not be sent by the next process either.
      for (const { attempts, views } of unwanted) {
        if (attempts === 0) for (const view of views) this.#machine.forget(view);
      }
      const isOut = submissions.some(({ attempts }) => attempts > 0);
      throw new ShredwayError(
        "store_failed",
        `database: expected to keep the submission, it could not; it ${isOut ? "may have been" : "was not"} sent`,
        { cause },
      );
    }
  }

  #forget(): void {
    const beforeNs = this.#parts.clock.nowNs() - BigInt(this.#limits.historyMs) * nsPerMs;
    this.#memory.forgetEndedBefore(beforeNs);
    this.#parts.store
      .forgetEndedBefore(beforeNs)
      .catch((error: unknown) => this.#failures.warn("the database", error));
  }
}

function endedUnread(record: SubmissionRecord, atNs: bigint): SubmissionRecord {
  const reason = "bytes_unreadable";
  const end: EndEvent = { kind: "expired", atNs, reason, slot: null, err: null };
  const lifecycle = new Lifecycle([...record.events, end]);
  const { state, events } = lifecycle;
  return { ...record, state, endedNs: atNs, reason, events, wire: null };
}
