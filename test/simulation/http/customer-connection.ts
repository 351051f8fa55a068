// One connection of a customer to the gateway: it sends requests in pieces, and checks that each complete
// request gets exactly one response, in order, or that there is a reason why the connection was cut.

import type { SeededRandom } from "../../../src/core/seeded-random.ts";
import { pick } from "../random-at.ts";
import { Violation } from "../relay-checks.ts";
import type { SimulatedTime } from "../simulated-time.ts";
import type { CallerLine, CallerPeer, LineOptions } from "./memory-callers.ts";
import type { RequestForm } from "./request-forms.ts";
import { type ReadResponse, ResponseReader } from "./response-reader.ts";

/** A response begins within this time, if the customer reads. */
const answerMs = 10_000;
/** The gateway ends a connection that carries nothing more within this time. */
const goneMs = 4_000;
/** The same of a connection whose request has stopped. */
const stalledMs = 12_000;
/** Times between two pieces of a request. */
const gapsMs = [0, 0, 1, 8, 30];
/** The fast path takes requests that arrive at once, or whose head does. */
const wholeShare = 0.7;
const keepAlive = /^timeout=([0-9]+)$/;

interface Pending {
  readonly form: RequestForm;
  /** When its last byte left; null: it has not. */
  completeMs: number | null;
  readonly done: (answer: unknown) => void;
}

interface ConnectionOptions {
  readonly number: number;
  readonly time: SimulatedTime;
  /** Runs an action that may throw Violation. */
  readonly guard: (action: () => void) => void;
  readonly connect: (options: LineOptions) => CallerLine;
  readonly line: Omit<LineOptions, "peer">;
}

export class CustomerConnection implements CallerPeer {
  readonly #options: ConnectionOptions;
  readonly #line: CallerLine;
  readonly #reader = new ResponseReader();
  readonly #pending: Pending[] = [];
  /** Received while the customer does not read; null: it reads. */
  #held: Buffer[] | null = null;
  /** The end of the connection, which the customer sees when it has read everything. */
  #atResume: (() => void) | null = null;
  #isOver = false;
  /** No further request is sent. */
  #isSpoiled = false;
  /** The customer has ended its side. */
  #hasEnded = false;
  /** From this time on, the gateway may cut it. */
  #mayBeCutMs = Number.POSITIVE_INFINITY;
  /** Until this time, the gateway has to end it. */
  #mustEndMs = Number.POSITIVE_INFINITY;
  /** Status of the response to malformed bytes; null: the customer has sent none, 0: a cut is the response. */
  #refusalStatus: number | null = null;
  #sendingUntilNs: number;
  /** When the customer last read something. */
  #heardMs: number;
  #endsWithinMs = goneMs;
  /** When something last arrived. The gateway counts the time of an idle connection from there. */
  #arrivedMs: number;
  /** Until the first response announces it. */
  #keepAliveMs = 5_000;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#sendingUntilNs = options.time.nowNs;
    this.#heardMs = options.time.nowMs;
    this.#arrivedMs = options.time.nowMs;
    this.#line = options.connect({ ...options.line, peer: this });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get waiting(): number {
    return this.#pending.length;
  }

  /** Whether a further request may be sent. */
  get isUsable(): boolean {
    if (this.#isOver || this.#isSpoiled) return false;
    return this.#pending.length > 0 || this.#nowMs - this.#arrivedMs < this.#keepAliveMs;
  }

  get #nowMs(): number {
    return this.#options.time.nowMs;
  }

  /** Sends requests in pieces that may contain parts of several; `done` gets the answer, or null. */
  send(
    random: SeededRandom,
    requests: readonly { readonly form: RequestForm; readonly done: (answer: unknown) => void }[],
  ): void {
    const bytes = Buffer.concat(requests.map(({ form }) => form.bytes));
    const pending = requests.map(({ form, done }): Pending => ({ form, done, completeMs: null }));
    this.#pending.push(...pending);
    if (pending.some(({ form }) => form.isLast)) this.#isSpoiled = true;
    let atByte = 0;
    const ends = pending.map(({ form }) => (atByte += form.bytes.length));
    this.#write(random, bytes, (sentBytes) => {
      for (const [i, each] of pending.entries())
        if ((ends[i] ?? 0) <= sentBytes) each.completeMs ??= this.#nowMs;
    });
  }

  /** After everything that was sent before. */
  #afterwards(delayMs: number, action: () => void): void {
    const { time } = this.#options;
    const atNs = Math.max(time.nowNs, this.#sendingUntilNs) + delayMs * 1e6;
    this.#sendingUntilNs = atNs;
    time.at(atNs, () => {
      if (!this.#isOver) action();
    });
  }

  /** Sends a part of a request, which never gets complete, and then does nothing more with it. */
  sendPart(random: SeededRandom, bytes: Buffer, ending: "reset" | "end" | "stall"): void {
    this.#isSpoiled = true;
    this.#write(random, bytes.subarray(0, 1 + random.below(bytes.length - 1)), () => {});
    this.#afterwards(pick(random, gapsMs), () => {
      this.#mayBeCutMs = this.#nowMs;
      if (ending === "stall") this.#endsWithinMs = stalledMs;
      this.#mustEndMs = this.#nowMs + this.#endsWithinMs;
      if (ending === "reset") this.#reset();
      else if (ending === "end") this.#line.end();
    });
  }

  /** Sends malformed bytes. */
  sendMalformed(random: SeededRandom, text: string, status: number): void {
    this.#isSpoiled = true;
    this.#write(random, Buffer.from(text, "latin1"), () => {});
    this.#refusalStatus = status;
    this.#mayBeCutMs = this.#nowMs;
    this.#afterwards(0, () => {
      this.#mustEndMs = this.#nowMs + goneMs;
    });
  }

  /** Ends the customer's side behind what was sent. */
  endAfter(delayMs: number): void {
    this.#isSpoiled = true;
    this.#afterwards(delayMs, () => this.#end());
  }

  resetAfter(delayMs: number): void {
    this.#isSpoiled = true;
    this.#afterwards(delayMs, () => this.#reset());
  }

  #end(): void {
    this.#hasEnded = true;
    this.#mayBeCutMs = Math.min(this.#mayBeCutMs, this.#nowMs + answerMs);
    this.#mustEndMs = this.#nowMs + goneMs;
    this.#line.end();
  }

  #reset(): void {
    this.#line.reset();
    this.#finish();
  }

  /** Reads nothing for this time. */
  pauseFor(pauseMs: number): void {
    const { time } = this.#options;
    if (this.#held) return;
    this.#held = [];
    time.at(time.nowNs + pauseMs * 1e6, () => {
      const held = this.#held ?? [];
      this.#held = null;
      this.#heardMs = this.#nowMs;
      for (const bytes of held) this.#read(bytes);
      this.#atResume?.();
    });
  }

  /** The service was killed. */
  kill(): void {
    this.#finish();
  }

  /** Called once in each slot. Throws Violation. */
  check(): void {
    if (this.#isOver) return;
    const [first] = this.#pending;
    const sinceMs = Math.max(first?.completeMs ?? this.#nowMs, this.#heardMs);
    if (first && !this.#held && this.#nowMs - sinceMs > answerMs)
      throw new Violation("every call is answered", `${first.form.name} after ${answerMs} ms`);
    // A complete request is answered before malformed bytes behind it are refused.
    const carries = this.#pending.some(({ completeMs }) => completeMs !== null);
    // A customer that paused hears earlier responses late, and the gateway reads on only then.
    const mustEndMs = Math.max(this.#mustEndMs, this.#heardMs + this.#endsWithinMs);
    if (this.#nowMs > mustEndMs && !carries && !this.#held)
      throw new Violation(
        "a connection that carries nothing more ends",
        this.#options.line.address,
      );
  }

  // ---- calls of the network -----------------------------------------------------------------

  received(bytes: Buffer): void {
    if (this.#isOver) return;
    this.#arrivedMs = this.#nowMs;
    if (this.#held) this.#held.push(bytes);
    else this.#read(bytes);
  }

  #read(bytes: Buffer): void {
    if (this.#isOver) return;
    this.#heardMs = this.#nowMs;
    this.#line.read(bytes.length);
    this.#options.guard(() => {
      for (const response of this.#reader.read(bytes)) this.#answered(response);
    });
  }

  ended(): void {
    if (this.#isOver) return;
    if (this.#held) {
      this.#atResume = () => this.ended();
      return;
    }
    this.#options.guard(() => this.#checkCut("ended"));
    this.#line.end();
    this.#finish();
  }

  closed(): void {
    if (this.#isOver) return;
    if (this.#held) {
      this.#atResume = () => this.closed();
      return;
    }
    this.#options.guard(() => this.#checkCut("cut"));
    this.#finish();
  }

  #write(random: SeededRandom, bytes: Buffer, sent: (bytes: number) => void): void {
    const pieces = 1 + (random.happens(wholeShare) ? 0 : random.below(4));
    const cuts = Array.from({ length: pieces - 1 }, () => random.below(bytes.length));
    const ends = [...cuts.toSorted((a, b) => a - b), bytes.length];
    let begin = 0;
    for (const [i, end] of ends.entries()) {
      const piece = bytes.subarray(begin, end);
      begin = end;
      this.#afterwards(i === 0 ? 0 : pick(random, gapsMs), () => {
        if (piece.length > 0) this.#line.send(piece);
        sent(end);
      });
    }
  }

  #answered(response: ReadResponse): void {
    const first = this.#pending.shift();
    if (!first) {
      this.#refused(response);
      return;
    }
    const { form, done, completeMs } = first;
    const answer = form.read(response);
    if (completeMs === null)
      throw new Violation("no response without a request", `${form.name}: ${response.status}`);
    const isRefusal = this.#refusalStatus !== null && this.#pending.length === 0;
    if (response.isKeptAlive === form.isLast && !isRefusal)
      throw new Violation("a connection is kept as requested", `${form.name}: ${response.status}`);
    const seconds = keepAlive.exec(response.fields.get("keep-alive") ?? "")?.[1];
    if (seconds !== undefined) this.#keepAliveMs = Number(seconds) * 1_000;
    if (form.isLast) {
      this.#mayBeCutMs = this.#nowMs;
      this.#mustEndMs = this.#nowMs + goneMs;
    }
    done(answer);
  }

  #refused({ status, isKeptAlive }: ReadResponse): void {
    if (this.#refusalStatus === null || this.#refusalStatus === 0)
      throw new Violation("no response without a request", String(status));
    if (status !== this.#refusalStatus || isKeptAlive)
      throw new Violation("a malformed request is refused", `status ${status}`);
    this.#refusalStatus = 0; // a second one is an error
  }

  #checkCut(how: string): void {
    const isIdle = this.#pending.length === 0 && !this.#reader.isInside;
    const isExpected =
      this.#nowMs >= this.#mayBeCutMs ||
      (isIdle && (this.#hasEnded || this.#nowMs - this.#arrivedMs >= this.#keepAliveMs));
    if (isExpected) return;
    const names = this.#pending.map(({ form }) => form.name).join(", ");
    const { number } = this.#options;
    throw new Violation(
      "a connection is not cut without a cause",
      `connection ${number} ${how}, waiting: ${names}`,
    );
  }

  #finish(): void {
    this.#isOver = true;
    for (const { done } of this.#pending.splice(0)) done(null);
  }
}
