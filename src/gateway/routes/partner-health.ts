// Health of a partner: unknown, up, proving, down, or paused at the partner's request.
//
// partner-endpoint.ts checks it before it accepts a transaction. A partner is unknown until the first
// connection: the first connect probe starts at once, and transactions are accepted meanwhile. Five faults
// in a row, or one failed connection attempt, take the partner down. While nothing proves that it is up, it
// is probed again by a connection. While down it is probed by a request after 1 s and then at doubling
// intervals up to 15 s. After a successful one it is "proving": one request at a time, until one succeeds. A
// fault while proving takes it down again, and the probe intervals continue to grow. A probe does not disprove
// faulty answers: a partner that they took down is shown as failing until a request succeeds.

import type { Clock, Timer } from "../../core/clock.ts";
import type { RouteSnapshot } from "../submission/types.ts";

const faultsMax = 5;
const probeMsMin = 1000;
const probeMsMax = 15_000;
/** A partner without a response in one such interval is probed in the next. */
const idleMs = 30_000;
const retryAfterMsMax = 60_000;
const failureLengthMax = 240;

/** The failed part: the connection attempt, the partner (no answer, or status 5xx), or its answer. */
type FaultKind = "unreachable" | "partner" | "answer";

/** Shortens a failure to one line. */
export function failureLine(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > failureLengthMax ? `${line.slice(0, failureLengthMax)}...` : line;
}

/** Retry-After per RFC 9110, seconds or a date; null: no pause. `nowMs`: wall clock. */
export function retryAfterMs(text: string, nowMs: number): number | null {
  const waitMs = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - nowMs;
  const ms = Math.min(retryAfterMsMax, waitMs);
  return ms > 0 ? ms : null;
}

interface HealthListener {
  /** Connects without a request; the listener reports its result with `connected`. */
  connect(): void;
  /** Sends a probe; the listener reports its result with `probed`. */
  probe(): void;
  /** Called when the partner becomes usable after a pause or an outage. */
  usable(): void;
  /** It does not accept requests any more. */
  stopped(): void;
  /** The state that is shown changed. */
  changed(isUp: boolean, lastFailure: string): void;
}

export class Health {
  readonly #clock: Clock;
  readonly #listener: HealthListener;
  #state: "unknown" | "up" | "proving" | "down" | "closed" = "unknown";
  #faults = 0;
  #probeMs = probeMsMin;
  /** The next probe, of either kind. */
  #timer: Timer | undefined;
  #pause: Timer | undefined;
  #lastFailure = "";
  #lastFailureNs: bigint | null = null;
  /** Faulty answers took it down, and no request has succeeded since. */
  #isFailing = false;
  /** The last probe did not fail. */
  #isReachable = true;
  /** The partner responded since the timer was set. */
  #isProved = false;

  constructor(clock: Clock, listener: HealthListener) {
    this.#clock = clock;
    this.#listener = listener;
  }

  get isUp(): boolean {
    return this.#state !== "down" && this.#state !== "closed" && !this.#pause;
  }

  /** While proving, only one request at a time is allowed. */
  get isProving(): boolean {
    return this.#state === "proving";
  }

  /** The state to show. "failing": it can be reached, and the last requests failed. */
  get shown(): RouteSnapshot["health"] {
    if (this.#state === "closed" || this.#pause) return "down";
    if (this.#isFailing && this.#isReachable) return "failing";
    if (this.#state === "down" || this.#state === "unknown") return this.#state;
    return "up";
  }

  get lastFailure(): string {
    return this.#lastFailure;
  }

  /** Wall time of the last failure. */
  get lastFailureNs(): bigint | null {
    return this.#lastFailureNs;
  }

  /** Tries the partner for the first time. */
  start(): void {
    this.#connectLater();
    this.#listener.connect();
  }

  succeeded(): void {
    if (this.#state === "down" || this.#state === "closed") return; // the response is to an earlier request
    this.#faults = 0;
    this.#probeMs = probeMsMin;
    this.#isProved = true;
    if (this.#state !== "up") this.#state = "up";
    if (!this.#isFailing) return;
    this.#isFailing = false;
    this.#listener.changed(true, this.#lastFailure);
  }

  failed(failure: string, kind: FaultKind): void {
    this.#note(failure);
    if (this.#state === "down" || this.#state === "closed") return;
    this.#faults++;
    if (this.#state !== "proving" && kind !== "unreachable" && this.#faults < faultsMax) {
      this.#state = "up"; // it accepts connections
      return;
    }
    const isNews = !this.#isFailing;
    this.#state = "down";
    this.#isFailing ||= kind === "answer";
    this.#isReachable = kind === "answer";
    this.#probeLater();
    this.#listener.stopped();
    if (isNews) this.#listener.changed(false, failure);
  }

  /** The result of `connect`. Faults of requests stay counted: a connection does not disprove them. */
  connected(failure: string | null): void {
    if (failure !== null) this.failed(failure, "unreachable");
    else if (this.#state === "unknown") this.#state = "up";
  }

  probed(failure: string | null): void {
    if (this.#state !== "down") return;
    this.#isReachable = failure === null;
    if (failure !== null) {
      this.#note(failure);
      this.#probeLater();
      return;
    }
    this.#state = "proving";
    this.#faults = 0;
    this.#connectLater();
    if (!this.#isFailing) this.#listener.changed(true, this.#lastFailure);
    if (this.isUp) this.#listener.usable();
  }

  /** Pauses the partner for as long as it requested. */
  pauseFor(ms: number, failure: string): void {
    if (this.#state === "closed") return;
    this.#note(failure);
    this.#pause?.cancel();
    this.#pause = this.#clock.after(ms, () => {
      this.#pause = undefined;
      if (this.isUp) this.#listener.usable();
    });
  }

  close(): void {
    this.#state = "closed";
    this.#timer?.cancel();
    this.#pause?.cancel();
    this.#pause = undefined;
  }

  #note(failure: string): void {
    this.#lastFailure = failure;
    this.#lastFailureNs = this.#clock.nowNs();
  }

  #probeLater(): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.after(this.#probeMs, () => this.#listener.probe());
    this.#probeMs = Math.min(probeMsMax, this.#probeMs * 2);
  }

  #connectLater(): void {
    this.#timer?.cancel();
    this.#isProved = false;
    this.#timer = this.#clock.after(idleMs, () => {
      const isProved = this.#isProved;
      this.#connectLater();
      if (!isProved) this.#listener.connect();
    });
  }
}
