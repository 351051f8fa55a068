// Order of submissions while more arrive than the event loop can process.
//
// gateway.ts passes every submitting request through it, before the request is parsed. A limited number of
// them begins in a turn of the event loop, so that the responses of partners, status queries and health
// checks do not wait behind all others. Under overload fewer begin in a turn, the newest submission is
// processed first, and old ones are refused while that is still cheap: accepted ones then hardly wait. In the
// order of arrival, each would wait for as long as the limit allows.

import type { Clock } from "../../core/clock.ts";

/** Submissions that begin in a turn of the event loop. More of them share journal writes and requests to partners. */
export const submissionsPerTurn = 32;
/** Fewer leave sooner: what a turn begins is written at its end, and a newer request is read. */
export const submissionsPerTurnUnderOverload = 4;
/** Overload begins when the queue takes a slot. It ends when none is waiting that is to be refused. */
const overloadNs = 400_000_000;
/** A submission that has waited longer is refused: about a slot, and less under overload. */
const waitNsMax = 400_000_000n;
const overloadWaitNsMax = 25_000_000n;
/** Time for a submission before the first measurement, and the weight of each measurement. */
const initialNs = 300_000;
const weight = 1 / 16;
/** Refusals beside each submission that begins. Each takes about a quarter of its time. */
const refusalsPerStep = 2;
const refusalShare = 0.25;
/** Removed entries at the start of the list, before the list is shortened. */
const removedMax = 1024;

interface Waiting {
  readonly arrivedNs: bigint;
  begin(): void;
  refuse(): void;
}

interface SubmissionQueueOptions {
  readonly clock: Pick<Clock, "monotonicNs">;
  /** Calls `action` in the next turn of the event loop, after its events. Default: setImmediate. */
  readonly inNextTurn?: (action: () => void) => void;
  /** Calls `action` when all promises have settled that can. Default: process.nextTick. */
  readonly afterPromises?: (action: () => void) => void;
}

interface SubmissionQueueCounts {
  readonly waiting: number;
  /** Refused since the start, because they had waited too long. */
  readonly timedOut: number;
}

export interface QueuedSubmission<Answer> {
  /**
   * Called before it would have to wait: whether it was sent already, so that it must neither wait nor be
   * refused. If not, it is not sent before it begins.
   */
  claim(): boolean;
  begin(): Answer | Promise<Answer>;
  refuse(): Answer;
}

/** A class: many submissions wait, and garbage collections copy whatever each of them has. */
class WaitingSubmission<Answer> implements Waiting {
  readonly arrivedNs: bigint;
  readonly #submission: QueuedSubmission<Answer>;
  readonly #resolve: (answer: Answer | Promise<Answer>) => void;
  readonly #reject: (thrown: unknown) => void;

  constructor(
    arrivedNs: bigint,
    submission: QueuedSubmission<Answer>,
    resolve: (answer: Answer | Promise<Answer>) => void,
    reject: (thrown: unknown) => void,
  ) {
    this.arrivedNs = arrivedNs;
    this.#submission = submission;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  begin(): void {
    try {
      this.#resolve(this.#submission.begin());
    } catch (thrown) {
      this.#reject(thrown);
    }
  }

  refuse(): void {
    try {
      this.#resolve(this.#submission.refuse());
    } catch (thrown) {
      this.#reject(thrown);
    }
  }
}

export class SubmissionQueue {
  readonly #clock: Pick<Clock, "monotonicNs">;
  readonly #inNextTurn: (action: () => void) => void;
  readonly #afterPromises: (action: () => void) => void;
  /** Sorted by arrival, from `#first` on. */
  #entries: Waiting[] = [];
  #first = 0;
  /** Steps of this turn of the event loop, each with at most one submission; null: no turn is open. */
  #steps: number | null = null;
  /** Submissions that began in this turn, and refusals by their share. */
  #done = 0;
  /** Beginning of the turn, if some waited then; otherwise null. */
  #busySinceNs: bigint | null = null;
  /** Time between two submissions while some wait. */
  #periodNs = initialNs;
  #isOverloaded = false;
  #timedOut = 0;

  constructor({ clock, inNextTurn, afterPromises }: SubmissionQueueOptions) {
    this.#clock = clock;
    this.#inNextTurn = inNextTurn ?? ((action) => void setImmediate(action));
    // A microtask runs before the promises that it has not seen yet; a tick runs after all of them.
    this.#afterPromises =
      afterPromises ?? ((action) => queueMicrotask(() => process.nextTick(action)));
  }

  get isEmpty(): boolean {
    return this.#waiting === 0;
  }

  get counts(): SubmissionQueueCounts {
    return { waiting: this.#waiting, timedOut: this.#timedOut };
  }

  /**
   * Begins the submission now, or when its turn has come. Calls exactly one of `begin` and `refuse`, and
   * settles like it.
   */
  run<Answer>(submission: QueuedSubmission<Answer>): Answer | Promise<Answer> {
    if (this.#steps === null) this.#openTurn();
    if (this.#waiting === 0 && this.#hasRoom()) {
      this.#countBegun();
      return submission.begin();
    }
    if (submission.claim()) return submission.begin();
    const arrivedNs = this.#clock.monotonicNs();
    return new Promise((resolve, reject) => {
      this.#entries.push(new WaitingSubmission(arrivedNs, submission, resolve, reject));
    });
  }

  get #waiting(): number {
    return this.#entries.length - this.#first;
  }

  #openTurn(): void {
    this.#steps = 0;
    this.#done = 0;
    this.#inNextTurn(this.#turned);
  }

  #hasRoom(): boolean {
    const stepsMax = this.#isOverloaded ? submissionsPerTurnUnderOverload : submissionsPerTurn;
    return (this.#steps ?? 0) < stepsMax;
  }

  #countBegun(): void {
    this.#steps = (this.#steps ?? 0) + 1;
    this.#done++;
  }

  readonly #turned = (): void => {
    this.#measure(this.#clock.monotonicNs());
    this.#steps = null;
    if (this.#waiting === 0) return;
    this.#openTurn();
    this.#step();
  };

  #measure(nowNs: bigint): void {
    if (this.#busySinceNs !== null && this.#done > 0) {
      const periodNs = Number(nowNs - this.#busySinceNs) / this.#done;
      this.#periodNs += (periodNs - this.#periodNs) * weight;
    }
    this.#busySinceNs = this.#waiting > 0 ? nowNs : null;
    const oldest = this.#entries[this.#first];
    this.#isOverloaded = this.#isOverloaded
      ? oldest !== undefined && nowNs - oldest.arrivedNs >= overloadWaitNsMax
      : this.#waiting * this.#periodNs >= overloadNs;
  }

  /** Begins one submission, and the next one when everything was done for it that can be done at once. */
  readonly #step = (): void => {
    if (this.#waiting === 0 || !this.#hasRoom()) return;
    const limitNs = this.#isOverloaded ? overloadWaitNsMax : waitNsMax;
    const earliestNs = this.#clock.monotonicNs() - limitNs;
    this.#refuseBefore(earliestNs);
    const next = this.#takeNext();
    if (!next) return;
    if (next.arrivedNs >= earliestNs) {
      this.#countBegun();
      next.begin();
    } else {
      this.#steps = (this.#steps ?? 0) + 1;
      this.#refuse(next);
    }
    this.#afterPromises(this.#step);
  };

  #refuseBefore(earliestNs: bigint): void {
    for (let i = 0; i < refusalsPerStep; i++) {
      const oldest = this.#entries[this.#first];
      if (!oldest || oldest.arrivedNs >= earliestNs) return;
      this.#removeOldest();
      this.#refuse(oldest);
    }
  }

  #refuse(waiting: Waiting): void {
    this.#timedOut++;
    this.#done += refusalShare;
    waiting.refuse();
  }

  #takeNext(): Waiting | undefined {
    if (!this.#isOverloaded) return this.#removeOldest();
    const newest = this.#entries.pop();
    this.#shorten();
    return newest;
  }

  #removeOldest(): Waiting | undefined {
    if (this.#waiting === 0) return undefined;
    const oldest = this.#entries[this.#first++];
    this.#shorten();
    return oldest;
  }

  #shorten(): void {
    if (this.#waiting > 0 && this.#first < removedMax) return;
    this.#entries = this.#entries.slice(this.#first);
    this.#first = 0;
  }
}
