// Counters of one route; every offered transaction is in exactly one column at any time.
//
// Used by a route and its endpoints. Whenever a report is made, offered = turnedAway + acknowledged
// + refused + failed + dropped + queued + inFlight holds, so a listener always sees consistent
// counters. Exceptions of listeners are logged.

import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type { OutboundTransaction, RouteCounts, RouteEvent } from "../submission/types.ts";
import type { Verdict } from "./dialect.ts";
import { SendTimes } from "./send-times.ts";

/** Literals: a spread of a verdict creates another hidden class for every event. */
function endOf(verdict: Verdict, atNs: bigint): RouteEvent {
  switch (verdict.kind) {
    case "acknowledged":
      return { kind: "acknowledged", atNs };
    case "refused":
      return { kind: "refused", atNs, reason: verdict.reason, isFinal: verdict.isFinal };
    case "failed":
      return { kind: "failed", atNs, reason: verdict.reason, isUnsent: verdict.isUnsent ?? false };
  }
}

export class RouteCounter {
  readonly #clock: Clock;
  readonly #log: Logger | undefined;
  readonly #sendTimes = new SendTimes();
  #offered = 0;
  #turnedAway = 0;
  #sent = 0;
  #queued = 0;
  #inFlight = 0;
  readonly #ends = { acknowledged: 0, refused: 0, failed: 0, dropped: 0 };

  constructor(clock: Clock, log: Logger | undefined) {
    this.#clock = clock;
    this.#log = log;
  }

  get queued(): number {
    return this.#queued;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  turnAway(): void {
    this.#offered++;
    this.#turnedAway++;
  }

  queue(): void {
    this.#offered++;
    this.#queued++;
  }

  drop(outbound: OutboundTransaction, reason: string): void {
    this.#queued--;
    this.#ends.dropped++;
    this.#report(outbound, { kind: "dropped", atNs: this.#clock.nowNs(), reason });
  }

  leaveQueue(): void {
    this.#queued--;
    this.#inFlight++;
  }

  /** Both times are monotonic; `sentNs`: the exact time, if it is earlier than this call. */
  send(outbound: OutboundTransaction, offeredNs: bigint, sentNs?: bigint): void {
    this.#sent++;
    const nowNs = this.#clock.monotonicNs();
    this.#sendTimes.add((sentNs ?? nowNs) - offeredNs, nowNs);
    let bytes = 0;
    for (const { wire } of outbound.transactions) bytes += wire.length;
    const sinceNs = sentNs === undefined || sentNs > nowNs ? 0n : nowNs - sentNs;
    this.#report(outbound, { kind: "sent", atNs: this.#clock.nowNs() - sinceNs, bytes });
  }

  end(outbound: OutboundTransaction, verdict: Verdict): void {
    this.#inFlight--;
    this.#ends[verdict.kind]++;
    this.#report(outbound, endOf(verdict, this.#clock.nowNs()));
  }

  counts(): RouteCounts {
    return {
      offered: BigInt(this.#offered),
      turnedAway: BigInt(this.#turnedAway),
      sent: BigInt(this.#sent),
      acknowledged: BigInt(this.#ends.acknowledged),
      refused: BigInt(this.#ends.refused),
      failed: BigInt(this.#ends.failed),
      dropped: BigInt(this.#ends.dropped),
    };
  }

  sendPercentileUs(p: number): number | null {
    return this.#sendTimes.percentile(p, this.#clock.monotonicNs());
  }

  #report(outbound: OutboundTransaction, event: RouteEvent): void {
    try {
      outbound.report(event);
    } catch (thrown) {
      this.#log?.error({ error: messageOf(thrown) }, "routes: a listener failed");
    }
  }
}
