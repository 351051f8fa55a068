// Status reader: the node's statuses of signatures, shared by many calls.
//
// bundle-commitments.ts asks it. The node gets at most one round of questions at a time and ten rounds per
// second, of 256 signatures each; calls that ask for the same signature share the answer, which is valid
// for a while. "finalized" never changes and is cached as long as there is room. If the node fails or is
// slow, the signature is missing in the answer. Nodes have a cache of recent statuses; for older
// signatures their history is searched, if they have one.

import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { RareWarning } from "../../core/rare-warning.ts";
import { nsPerMs } from "./tracked-transaction.ts";
import type { Outcomes, SignatureOutcome } from "./types.ts";

interface StatusReaderDependencies {
  readonly clock: Clock;
  readonly node: Pick<Outcomes, "signatureStatuses">;
  readonly log: { warn(text: string): void };
}

interface StatusQuestion {
  readonly signature: string;
  /** It landed so long ago that it may no longer be in the node's cache. */
  readonly isOld: boolean;
}

interface KnownStatus {
  /** null: the node does not know the signature. */
  readonly outcome: SignatureOutcome | null;
  readonly untilMs: number;
}

const signaturesPerRound = 256;
const roundEveryMs = 100;
/** Questions of half a second; the node is not asked about signatures beyond them. */
const waitingMax = 1_024;
/** How long a call waits for the node. */
const answerWaitMs = 2_000;
/** Validity of an answer that may change: the interval at which open transactions are asked about. */
const changingMs = 400;
/** Validity of the answer that the node does not know an old signature. */
const unknownMs = 10_000;
/** After a failure the node is not asked for this time. */
const pauseMs = 1_000;
/** About 4 MB. */
const knownMax = 16_384;
const warnEveryMs = 10_000;

class WaitingQuestion {
  readonly question: StatusQuestion;
  readonly done: Promise<void>;
  settle: () => void = () => {};

  constructor(question: StatusQuestion) {
    this.question = question;
    this.done = new Promise((resolve) => {
      this.settle = resolve;
    });
  }
}

export class StatusReader {
  readonly #clock: Clock;
  readonly #node: StatusReaderDependencies["node"];
  readonly #warning: RareWarning;
  /** Oldest answer first. */
  readonly #known = new Map<string, KnownStatus>();
  /** Questions that wait for a round, or are part of the current one. */
  readonly #queried = new Map<string, WaitingQuestion>();
  /** Questions that wait for a round. */
  #queue: WaitingQuestion[] = [];
  #isRoundDue = false;
  #isRoundUnderWay = false;
  #nextRoundMs = Number.NEGATIVE_INFINITY;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;

  constructor({ clock, node, log }: StatusReaderDependencies) {
    this.#clock = clock;
    this.#node = node;
    this.#warning = new RareWarning({ clock, log }, warnEveryMs);
  }

  /**
   * Statuses by signature; null: the node does not know it. A signature is missing if the node did not
   * answer in time. Never rejects.
   */
  async read(
    questions: readonly StatusQuestion[],
  ): Promise<ReadonlyMap<string, SignatureOutcome | null>> {
    const nowMs = this.#nowMs;
    const waits = questions
      .filter(({ signature }) => !this.#isCurrent(signature, nowMs))
      .map((question) => this.#ask(question, nowMs));
    if (waits.length > 0) await this.#waitFor(Promise.all(waits));
    const answers = new Map<string, SignatureOutcome | null>();
    for (const { signature } of questions) {
      const known = this.#known.get(signature);
      // Answers that came during the wait are valid; older ones may have expired.
      if (known && known.untilMs > nowMs) answers.set(signature, known.outcome);
    }
    return answers;
  }

  get #nowMs(): number {
    return Number(this.#clock.monotonicNs() / nsPerMs);
  }

  #isCurrent(signature: string, nowMs: number): boolean {
    const known = this.#known.get(signature);
    return known !== undefined && known.untilMs > nowMs;
  }

  /** Settles after the round that asks for it; at once if there will be none. */
  #ask(question: StatusQuestion, nowMs: number): Promise<void> {
    const queried = this.#queried.get(question.signature);
    if (queried) return queried.done;
    if (nowMs < this.#pausedUntilMs || this.#queue.length >= waitingMax) return Promise.resolve();
    const waiting = new WaitingQuestion(question);
    this.#queried.set(question.signature, waiting);
    this.#queue.push(waiting);
    this.#plan();
    return waiting.done;
  }

  async #waitFor(done: Promise<unknown>): Promise<void> {
    const answered = new AbortController();
    await Promise.race([done, this.#clock.sleep(answerWaitMs, answered.signal)]);
    answered.abort();
  }

  /** Starts the next round by a timer, so that it includes all questions of the same moment. */
  #plan(): void {
    if (this.#isRoundDue || this.#isRoundUnderWay || this.#queue.length === 0) return;
    this.#isRoundDue = true;
    this.#clock.after(Math.max(0, this.#nextRoundMs - this.#nowMs), () => {
      this.#isRoundDue = false;
      void this.#round();
    });
  }

  async #round(): Promise<void> {
    this.#isRoundUnderWay = true;
    this.#nextRoundMs = this.#nowMs + roundEveryMs;
    const round = this.#queue.splice(0, signaturesPerRound);
    const old = round.filter(({ question }) => question.isOld);
    const recent = round.filter(({ question }) => !question.isOld);
    await Promise.all([this.#askNode(recent, false), this.#askNode(old, true)]);
    this.#settle(round);
    this.#isRoundUnderWay = false;
    this.#plan();
  }

  async #askNode(waiting: readonly WaitingQuestion[], searchHistory: boolean): Promise<void> {
    if (waiting.length === 0) return;
    const signatures = waiting.map(({ question }) => question.signature);
    try {
      const outcomes = await this.#node.signatureStatuses(signatures, { searchHistory });
      for (const [i, { question }] of waiting.entries()) {
        this.#learn(question, outcomes[i] ?? null);
      }
    } catch (error) {
      this.#pausedUntilMs = this.#nowMs + pauseMs;
      this.#settle(this.#queue.splice(0)); // they would wait for a failing node
      this.#warning.give(() => `bundle statuses: the node did not answer: ${messageOf(error)}`);
    }
  }

  #learn({ signature, isOld }: StatusQuestion, outcome: SignatureOutcome | null): void {
    const heldMs = outcome === null && isOld ? unknownMs : changingMs;
    const isFinal = outcome?.commitment === "finalized";
    const untilMs = isFinal ? Number.POSITIVE_INFINITY : this.#nowMs + heldMs;
    this.#known.delete(signature);
    this.#known.set(signature, { outcome, untilMs });
    const [oldest] = this.#known.keys();
    if (this.#known.size > knownMax && oldest !== undefined) this.#known.delete(oldest);
  }

  #settle(waiting: readonly WaitingQuestion[]): void {
    for (const { question, settle } of waiting) {
      this.#queried.delete(question.signature);
      settle();
    }
  }
}
