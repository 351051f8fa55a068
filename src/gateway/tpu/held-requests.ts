// Requests for a process that has not opened its sockets yet. It may never do so.
//
// Owned by quic-process.ts, which gives the process what is still in time when it is ready.

import type { Clock, Timer } from "../../core/clock.ts";
import type { TpuSendRequest } from "./types.ts";

/** Interval for ending late requests. */
const sweepMs = 250;

interface Held {
  readonly request: TpuSendRequest;
  /** Monotonic. */
  readonly untilNs: bigint;
}

export class HeldRequests {
  readonly #clock: Clock;
  readonly #late: (id: number) => void;
  #held: Held[] = [];
  #sweep: Timer | undefined;

  /** `late`: the deadline of a request has passed. */
  constructor(clock: Clock, late: (id: number) => void) {
    this.#clock = clock;
    this.#late = late;
  }

  add(requests: readonly TpuSendRequest[]): void {
    const nowNs = this.#clock.monotonicNs();
    for (const request of requests)
      this.#held.push({ request, untilNs: nowNs + BigInt(Math.ceil(request.restMs * 1e6)) });
    this.#sweep ??= this.#clock.every(sweepMs, () => this.#endLate());
  }

  /** Removes all and returns those still in time, with the time that is left. */
  take(): TpuSendRequest[] {
    this.#endLate();
    const nowNs = this.#clock.monotonicNs();
    const requests = this.#held.map(({ request, untilNs }) => ({
      ...request,
      restMs: Number(untilNs - nowNs) / 1e6,
    }));
    this.clear();
    return requests;
  }

  clear(): void {
    this.#held = [];
    this.#sweep?.cancel();
    this.#sweep = undefined;
  }

  #endLate(): void {
    const nowNs = this.#clock.monotonicNs();
    const late = this.#held.filter(({ untilNs }) => untilNs <= nowNs);
    this.#held = this.#held.filter(({ untilNs }) => untilNs > nowNs);
    if (this.#held.length === 0) this.clear();
    for (const { request } of late) this.#late(request.id);
  }
}
