// One open stream: the queue of its client, its counters, and its end.
//
// Created by stream-service.ts for every accepted call. A client that does not read fast enough has a
// bounded queue; then its stream ends with the status RESOURCE_EXHAUSTED and the reason `lagged`. Nobody
// else waits for it.

import type { Clock } from "../../core/clock.ts";
import type { DurationHistogram } from "../../core/duration-histogram.ts";
import type { GrpcStream } from "../../core/grpc/grpc-stream.ts";
import type { GrpcStatus } from "../../core/grpc/status.ts";

export const dialects = ["entries", "deshred"] as const;
export type Dialect = (typeof dialects)[number];

/** Why streams end, as the metrics name it. */
export const endReasons = [
  "client",
  "lagged",
  "lost",
  "revoked",
  "tier_changed",
  "refused",
  "closing",
] as const;
export type EndReason = (typeof endReasons)[number];

interface StreamHolder {
  readonly keyId: string;
  readonly accountId: string;
  readonly accountName: string;
}

interface SubscriptionOptions {
  readonly call: GrpcStream;
  readonly dialect: Dialect;
  readonly holder: StreamHolder;
  readonly tier: string;
  readonly queueBytes: number;
  readonly delays: DurationHistogram;
  readonly clock: Clock;
  /** Called once. */
  readonly onEnd: (reason: EndReason) => void;
}

let opened = 0;

export class Subscription {
  /** Unique since the start. */
  readonly id = ++opened;
  /** Wall time. */
  readonly openedNs: bigint;
  readonly dialect: Dialect;
  readonly holder: StreamHolder;
  readonly tier: string;
  /** Messages that were queued for the client, and their bytes. */
  sent = 0;
  sentBytes = 0;
  /** The part of them that came from shreds. */
  matched = 0;
  /** Sum of their delays, from the last shred to the connection. */
  delaySumNs = 0;
  /** The text of its end; empty: the client ended it. */
  endText = "";
  readonly #options: SubscriptionOptions;
  #reason: EndReason = "client";
  #arrivals: bigint[] = [];

  constructor(options: SubscriptionOptions) {
    this.#options = options;
    this.dialect = options.dialect;
    this.holder = options.holder;
    this.tier = options.tier;
    this.openedNs = options.clock.nowNs();
    options.call.onClose(() => {
      options.onEnd(this.#reason);
    });
  }

  get waitingBytes(): number {
    return this.#options.call.waitingBytes;
  }

  /** Messages that wait for the connection. */
  get waitingMessages(): number {
    return this.#options.call.waitingMessages;
  }

  /** Queues one framed message. `arrivalNs`: receive time of its shreds; null: it has none. */
  send(framed: Uint8Array, arrivalNs: bigint | null): void {
    const { call, queueBytes } = this.#options;
    if (call.isEnded) return;
    const waiting = call.waitingBytes;
    if (waiting > queueBytes) {
      const detail =
        `lagged: ${call.waitingMessages} messages and ${waiting} bytes wait for this client; ` +
        `expected at most ${queueBytes} bytes`;
      this.end("lagged", "RESOURCE_EXHAUSTED", detail);
      return;
    }
    call.send(framed);
    this.sent++;
    this.sentBytes += framed.length;
    if (arrivalNs === null) return;
    this.matched++;
    this.#arrivals.push(arrivalNs);
  }

  /** Gives queued messages to the connection. */
  flush(): void {
    this.#options.call.flush();
    if (this.#arrivals.length === 0) return;
    const { clock, delays } = this.#options;
    const nowNs = clock.nowNs();
    for (const arrivalNs of this.#arrivals) {
      const delayNs = Number(nowNs - arrivalNs);
      this.delaySumNs += delayNs;
      delays.add(delayNs / 1e9);
    }
    this.#arrivals = [];
  }

  end(reason: EndReason, status: GrpcStatus, detail: string): void {
    if (this.#options.call.isEnded) return;
    this.#reason = reason;
    this.endText = detail;
    this.#options.call.end(status, detail);
  }

  /** The call refuses a request. */
  refused(): void {
    this.#reason = "refused";
  }
}
