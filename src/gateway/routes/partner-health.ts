// Health of a partner: up, proving, down, or paused at the partner's request.
//
// partner-endpoint.ts checks it before it accepts a transaction. Five faults in a row, or one
// failed connection attempt, take the partner down. While down it is probed after 1 s and then at
// doubling intervals up to 15 s. After a successful probe it is "proving": one request at a time,
// until one succeeds. A fault while proving takes it down again, and the probe intervals continue
// to grow.

import type { Clock, Timer } from "../../core/clock.ts";

const faultsMax = 5;
const probeMsMin = 1000;
const probeMsMax = 15_000;

interface HealthListener {
  /** Sends a probe; the listener reports its result with `probed`. */
  probe(): void;
  /** Called when the partner becomes usable after a pause or an outage. */
  usable(): void;
  changed(isUp: boolean, lastFailure: string): void;
}

export class Health {
  readonly #clock: Clock;
  readonly #listener: HealthListener;
  #state: "up" | "proving" | "down" | "closed" = "up";
  #faults = 0;
  #probeMs = probeMsMin;
  #timer: Timer | undefined;
  #pause: Timer | undefined;
  #lastFailure = "";
  #lastFailureNs: bigint | null = null;

  constructor(clock: Clock, listener: HealthListener) {
    this.#clock = clock;
    this.#listener = listener;
  }

  get isUp(): boolean {
    return (this.#state === "up" || this.#state === "proving") && !this.#pause;
  }

  /** While proving, only one request at a time is allowed. */
  get isProving(): boolean {
    return this.#state === "proving";
  }

  get lastFailure(): string {
    return this.#lastFailure;
  }

  /** Wall time of the last failure. */
  get lastFailureNs(): bigint | null {
    return this.#lastFailureNs;
  }

  succeeded(): void {
    if (this.#state === "down" || this.#state === "closed") return; // the response is to an earlier request
    this.#faults = 0;
    this.#probeMs = probeMsMin;
    if (this.#state === "proving") this.#state = "up";
  }

  /** `isUnreachable`: the connection attempt failed. */
  failed(failure: string, isUnreachable: boolean): void {
    this.#note(failure);
    if (this.#state === "down" || this.#state === "closed") return;
    this.#faults++;
    if (this.#state === "up" && !isUnreachable && this.#faults < faultsMax) return;
    this.#state = "down";
    this.#probeLater();
    this.#listener.changed(false, failure);
  }

  probed(failure: string | null): void {
    if (this.#state !== "down") return;
    if (failure !== null) {
      this.#note(failure);
      this.#probeLater();
      return;
    }
    this.#state = "proving";
    this.#faults = 0;
    this.#listener.changed(true, this.#lastFailure);
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
    this.#timer = this.#clock.after(this.#probeMs, () => this.#listener.probe());
    this.#probeMs = Math.min(probeMsMax, this.#probeMs * 2);
  }
}
