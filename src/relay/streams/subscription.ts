// One open stream: the queue of its client, its counters, and its end.
//
// Created by stream-service.ts for every accepted call, and for every subscription on a WebSocket. A client
// that does not read fast enough has a bounded queue; then its stream ends with the status
// RESOURCE_EXHAUSTED and the reason `lagged`. Nobody else waits for it.

import type { Clock } from "../../core/clock.ts";
import type { DurationHistogram } from "../../core/duration-histogram.ts";
import type { GrpcStatus } from "../../core/grpc/status.ts";
import type { EndReason } from "./end-reasons.ts";
import type { StreamTransport } from "./stream-transport.ts";

/** Each dialect by its call: SubscribeEntries, …, shredTransactionSubscribe, shredSubscribe. */
export const dialects = [
  "entries",
  "deshred",
  "preprocessed",
  "transactions",
  "shred_transaction",
  "shred",
] as const;
export type Dialect = (typeof dialects)[number];

interface StreamHolder {
  readonly keyId: string;
  readonly accountId: string;
  readonly accountName: string;
}

interface SubscriptionOptions {
  readonly call: StreamTransport;
  readonly dialect: Dialect;
  readonly holder: StreamHolder;
  readonly tier: string;
  readonly queueBytes: number;
  readonly delays: DurationHistogram;
  readonly clock: Clock;
  /** Called once. */
  readonly onEnd: (reason: EndReason) => void;
}

export class Subscription {
  readonly dialect: Dialect;
  readonly holder: StreamHolder;
  readonly tier: string;
  /** Messages that were queued for the client, and their bytes. */
  sent = 0;
  sentBytes = 0;
  readonly #options: SubscriptionOptions;
  #reason: EndReason = "client";
  #arrivals: bigint[] = [];

  constructor(options: SubscriptionOptions) {
    this.#options = options;
    this.dialect = options.dialect;
    this.holder = options.holder;
    this.tier = options.tier;
    options.call.onClose(() => {
      options.onEnd(this.#reason);
    });
  }

  get waitingBytes(): number {
    return this.#options.call.waitingBytes;
  }

  /** Queues one framed message. `arrivalNs`: receive time of its shreds; null: it has none. */
  send(framed: Uint8Array, arrivalNs: bigint | null): void {
    const { call, queueBytes } = this.#options;
    if (call.isEnded) return;
    // A long group of messages does not make a client late that reads.
    if (call.waitingBytes > queueBytes) this.flush();
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
    if (arrivalNs !== null) this.#arrivals.push(arrivalNs);
  }

  /** Gives queued messages to the connection. */
  flush(): void {
    this.#options.call.flush();
    if (this.#arrivals.length === 0) return;
    const { clock, delays } = this.#options;
    const nowNs = clock.nowNs();
    for (const arrivalNs of this.#arrivals) delays.add(Number(nowNs - arrivalNs) / 1e9);
    this.#arrivals = [];
  }

  end(reason: EndReason, status: GrpcStatus, detail: string): void {
    if (this.#options.call.isEnded) return;
    this.#reason = reason;
    this.#options.call.end(status, detail, reason);
  }

  /** The stream is about to end for this reason. */
  endsFor(reason: EndReason): void {
    this.#reason = reason;
  }
}
