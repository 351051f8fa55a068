// Whether a partner can be used: up, down, or paused because it said so.
//
// Asked by partner-endpoint.ts before anything is taken. Five faults in a row or one connection that could
// not be made mean down. While down it asks for probes, the first after a second, then less and less
// often up to every 15 s, also when nobody offers anything. After a probe that was answered, one
// request at a time goes through ("proving") until one is answered well; the next fault is enough
// then, and the pauses between probes go on growing.

import type { Clock, Timer } from "../../core/clock.ts";

const faultsMax = 5;
const probeMsMin = 1000;
const probeMsMax = 15_000;

interface HealthListener {
  /** Ask the partner whether it is there; answered by `probed`. */
  probe(): void;
  /** It may be used again after a pause or after a time down. */
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

  constructor(clock: Clock, listener: HealthListener) {
    this.#clock = clock;
    this.#listener = listener;
  }

  get isUp(): boolean {
    return (this.#state === "up" || this.#state === "proving") && !this.#pause;
  }

  /** One request at a time. */
  get isProving(): boolean {
    return this.#state === "proving";
  }

  get lastFailure(): string {
    return this.#lastFailure;
  }

  succeeded(): void {
    if (this.#state === "down" || this.#state === "closed") return; // an answer from before
    this.#faults = 0;
    this.#probeMs = probeMsMin;
    if (this.#state === "proving") this.#state = "up";
  }

  /** `isUnreachable`: no connection could be made. */
  failed(failure: string, isUnreachable: boolean): void {
    this.#lastFailure = failure;
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
      this.#lastFailure = failure;
      this.#probeLater();
      return;
    }
    this.#state = "proving";
    this.#faults = 0;
    this.#listener.changed(true, this.#lastFailure);
    if (this.isUp) this.#listener.usable();
  }

  /** The partner asked to be left alone for so long. */
  pauseFor(ms: number, failure: string): void {
    if (this.#state === "closed") return;
    this.#lastFailure = failure;
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

  #probeLater(): void {
    this.#timer = this.#clock.after(this.#probeMs, () => this.#listener.probe());
    this.#probeMs = Math.min(probeMsMax, this.#probeMs * 2);
  }
}
