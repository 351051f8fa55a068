// Landing questions: asks the node about pending registrations, in as few calls as possible.
//
// One getSignatureStatuses call covers up to 256 signatures and returns which of them landed. Only those
// are read with getTransaction, whose answer at "confirmed" alone can count a tip or drop it as failed or
// refunded. Used by landing-confirmation.ts, which decides. Calls are bounded, and accounts take turns.

import { FairQueue } from "./fair-queue.ts";
import type { LandedTransaction, LandedTransactions, LandingStates } from "./registration-types.ts";

/** One pending registration. */
interface Question {
  readonly signature: string;
  readonly accountId: string;
  /** Nothing needs to be known about it any more. */
  readonly isForgotten: boolean;
}

/**
 * absent: the node does not have it. `slot`: the newest slot of that node; null: only its recent blocks were
 * searched. unclear: it landed, but is not confirmed or not readable yet. failed: no answer.
 */
export type LandingAnswer =
  | { readonly kind: "absent"; readonly slot: bigint | null }
  | { readonly kind: "unclear" | "failed" }
  | { readonly kind: "landed"; readonly transaction: LandedTransaction };

interface LandingQuestionsOptions<T extends Question> {
  readonly landed: LandedTransactions;
  /** Calls under way at once. */
  readonly callsMax: number;
  nowMs(): number;
  addresses(): ReadonlySet<string>;
  /** Once for each question. `askedMs`: when the call began that was answered. */
  answered(question: T, answer: LandingAnswer, askedMs: number): Promise<void>;
  failed(error: unknown): void;
}

/** Signatures in one getSignatureStatuses call. */
const signaturesMax = 256;
/**
 * A node may search its history for so long that a large call fails. The call is then repeated with half of the
 * signatures, down to this number; each success adds as many again.
 */
const signaturesMin = 16;

export class LandingQuestions<T extends Question> {
  readonly #options: LandingQuestionsOptions<T>;
  /** All signatures of one call are searched alike. */
  readonly #recent = new FairQueue<T>();
  readonly #historic = new FairQueue<T>();
  readonly #landed = new FairQueue<T>();
  #signaturesMax = signaturesMax;
  #isHistoryNext = true;
  #statusCalls = 0;
  #calls = 0;
  #callCount = 0n;
  #isOpen = false;
  #isAskPlanned = false;

  constructor(options: LandingQuestionsOptions<T>) {
    this.#options = options;
  }

  /** Calls so far. */
  get callCount(): bigint {
    return this.#callCount;
  }

  /** Nothing is asked before. */
  open(): void {
    this.#isOpen = true;
    this.#planAsk();
  }

  /** Nothing is answered afterwards. */
  close(): void {
    this.#isOpen = false;
  }

  /** Asks at once, together with everything else that is added now. */
  add(question: T, searchHistory: boolean): void {
    (searchHistory ? this.#historic : this.#recent).add(question);
    this.#planAsk();
  }

  /** A call that is under way may still answer it. */
  delete(question: T): void {
    for (const queue of [this.#recent, this.#historic, this.#landed]) queue.delete(question);
  }

  #planAsk(): void {
    if (this.#isAskPlanned || !this.#isOpen) return;
    this.#isAskPlanned = true;
    queueMicrotask(() => {
      this.#isAskPlanned = false;
      this.#ask();
    });
  }

  /** Questions about states use half of the calls, so that neither kind waits for the other. */
  #ask(): void {
    const { callsMax } = this.#options;
    while (this.#isOpen && this.#calls < callsMax) {
      if (this.#statusCalls < Math.ceil(callsMax / 2) && this.#askNextStates()) continue;
      const question = this.#landed.take();
      if (!question) return;
      void this.#read(question);
    }
  }

  /** The two queues take turns. False: both are empty. */
  #askNextStates(): boolean {
    const isHistory = this.#isHistoryNext ? this.#historic.size > 0 : this.#recent.size === 0;
    const queue = isHistory ? this.#historic : this.#recent;
    const questions: T[] = [];
    while (questions.length < this.#signaturesMax) {
      const question = queue.take();
      if (!question) break;
      questions.push(question);
    }
    if (questions.length === 0) return false;
    this.#isHistoryNext = !isHistory;
    void this.#askStates(questions, isHistory);
    return true;
  }

  async #askStates(questions: readonly T[], searchHistory: boolean): Promise<void> {
    const askedMs = this.#begin();
    this.#statusCalls++;
    let answer: LandingStates | null = null;
    try {
      const signatures = questions.map(({ signature }) => signature);
      answer = await this.#options.landed.landingStates(signatures, searchHistory);
      this.#signaturesMax = Math.min(this.#signaturesMax + signaturesMin, signaturesMax);
    } catch (error) {
      this.#options.failed(error);
      this.#signaturesMax = Math.max(signaturesMin, Math.floor(questions.length / 2));
    }
    this.#calls--;
    this.#statusCalls--;
    if (!this.#isOpen) return;
    const slot = answer && searchHistory ? answer.slot : null;
    const isRepeated = !answer && questions.length > signaturesMin;
    for (const [i, question] of questions.entries()) {
      const state = answer?.states[i];
      if (question.isForgotten) continue;
      if (isRepeated) this.add(question, searchHistory);
      else if (state === "landed") this.#landed.add(question);
      else if (state === "absent") this.#answer(question, { kind: "absent", slot }, askedMs);
      else this.#answer(question, { kind: answer ? "unclear" : "failed" }, askedMs);
    }
    this.#ask();
  }

  async #read(question: T): Promise<void> {
    const askedMs = this.#begin();
    let answer: LandingAnswer = { kind: "failed" };
    try {
      const { landed } = this.#options;
      const addresses = this.#options.addresses();
      const transaction = await landed.landedTransaction(question.signature, addresses);
      // Another node may have answered, which lags.
      answer = transaction ? { kind: "landed", transaction } : { kind: "unclear" };
    } catch (error) {
      this.#options.failed(error);
    }
    if (this.#isOpen) await this.#options.answered(question, answer, askedMs);
    this.#calls--;
    this.#ask();
  }

  #answer(question: T, answer: LandingAnswer, askedMs: number): void {
    void this.#options.answered(question, answer, askedMs);
  }

  #begin(): number {
    this.#calls++;
    this.#callCount++;
    return this.#options.nowMs();
  }
}
