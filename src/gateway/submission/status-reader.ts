// Status reader: what the node says of signatures, asked for by many calls at once.
//
// Made by main-gateway.ts, asked by bundle-commitments.ts. However many calls come, the node gets at
// most one round of questions at a time and ten rounds in a second, of 256 signatures each: calls that
// ask for the same share the answer, and an answer counts for a while. "finalized" never changes, so it
// is remembered as long as there is room. A node that fails or is slow makes no call wait long: then
// the signature is missing in the answer. Nodes keep recent statuses in a cache; of older signatures
// the node's history is asked, where the node has one.

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
  /** It landed so long ago that the node's cache may have forgotten it. */
  readonly isOld: boolean;
}

interface KnownStatus {
  /** null: the node does not know the signature. */
  readonly outcome: SignatureOutcome | null;
  readonly untilMs: number;
}

const signaturesPerRound = 256;
const roundEveryMs = 100;
/** Half a second's questions; a signature beyond them is not asked for. */
const waitingMax = 1_024;
/** So long a call waits for the node. */
const answerWaitMs = 2_000;
/** So long an answer counts that may change: the pace at which open transactions are looked at. */
const changingMs = 400;
/** An old signature that the node does not know is asked for again after this time. */
const unknownMs = 10_000;
/** After a failure nothing is asked for this time. */
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
  /** Waiting for a round, or part of the one under way. */
  readonly #asked = new Map<string, WaitingQuestion>();
  /** Waiting for a round. */
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
   * By signature, null for one that the node does not know. A signature is missing when the node did
   * not answer in time. Never rejects.
   */
  async read(
    questions: readonly StatusQuestion[],
  ): Promise<ReadonlyMap<string, SignatureOutcome | null>> {
    const nowMs = this.#nowMs;
    const waits = questions
      .filter(({ signature }) => !this.#counts(signature, nowMs))
      .map((question) => this.#ask(question, nowMs));
    if (waits.length > 0) await this.#waitFor(Promise.all(waits));
    const answers = new Map<string, SignatureOutcome | null>();
    for (const { signature } of questions) {
      const known = this.#known.get(signature);
      // Whatever came during the wait counts; an older answer that has run out does not.
      if (known && known.untilMs > nowMs) answers.set(signature, known.outcome);
    }
    return answers;
  }

  get #nowMs(): number {
    return Number(this.#clock.monotonicNs() / nsPerMs);
  }

  #counts(signature: string, nowMs: number): boolean {
    const known = this.#known.get(signature);
    return known !== undefined && known.untilMs > nowMs;
  }

  /** Settles after the round that asks for it; at once when none will. */
  #ask(question: StatusQuestion, nowMs: number): Promise<void> {
    const asked = this.#asked.get(question.signature);
    if (asked) return asked.done;
    if (nowMs < this.#pausedUntilMs || this.#queue.length >= waitingMax) return Promise.resolve();
    const waiting = new WaitingQuestion(question);
    this.#asked.set(question.signature, waiting);
    this.#queue.push(waiting);
    this.#plan();
    return waiting.done;
  }

  async #waitFor(done: Promise<unknown>): Promise<void> {
    const answered = new AbortController();
    await Promise.race([done, this.#clock.sleep(answerWaitMs, answered.signal)]);
    answered.abort();
  }

  /** The next round begins by a timer, so that it takes whatever comes in the same moment. */
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
      this.#settle(this.#queue.splice(0)); // they would wait for a node that fails
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
      this.#asked.delete(question.signature);
      settle();
    }
  }
}
