// One open stream: the queue of its client, its counters, and its end.
//
// Created by stream-service.ts for every accepted call, and for every subscription on a WebSocket. A client
// that does not read fast enough has a bounded queue; then its stream ends with the status
// RESOURCE_EXHAUSTED and the reason `lagged`. On request, its stream drops messages instead, and a message
// reports the gap (gap-reports.ts). Nobody else waits for it.

import type { Clock } from "../../core/clock.ts";
import type { DurationHistogram } from "../../core/duration-histogram.ts";
import type { GrpcStatus } from "../../core/grpc/status.ts";
import type { EndReason } from "./end-reasons.ts";
import { extended, type StreamGap } from "./stream-gap.ts";
import type { StreamTransport } from "./stream-transport.ts";

/** Each dialect by its call: SubscribeEntries, …, shredSubscribe, startTransactionPush. */
export const dialects = [
  "entries",
  "deshred",
  "preprocessed",
  "transactions",
  "shred_transaction",
  "shred",
  "push",
] as const;
export type Dialect = (typeof dialects)[number];
/** Dialects whose streams can begin with the history. */
export const replayedDialects: ReadonlySet<Dialect> = new Set<Dialect>([
  "deshred",
  "preprocessed",
  "transactions",
]);

export interface StreamHolder {
  readonly keyId: string;
  readonly accountId: string;
  readonly accountName: string;
}

interface SubscriptionOptions {
  readonly call: StreamTransport;
  readonly dialect: Dialect;
  readonly holder: StreamHolder;
  readonly tier: string;
  /** Bytes that may wait for the client; a reload may change it. */
  readonly queueBytesMax: () => number;
  /** Drop messages while the queue is full, and report each gap with this message; absent: end the stream. */
  readonly encodeGap?: ((gap: StreamGap) => Uint8Array) | undefined;
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
  /** The key whose validity it needs; a push changes it when another key renews the lease. */
  holder: StreamHolder;
  readonly tier: string;
  /** Messages that were queued for the client, and their bytes. */
  sent = 0;
  sentBytes = 0;
  /** The part of them that came from shreds. */
  matched = 0;
  /** Sum of their delays, from the last shred until the kernel has got the message. */
  delaySumNs = 0;
  /** The text of its end; empty: the client ended it. */
  endText = "";
  /** Messages that the client asked to drop instead of an end. */
  dropped = 0;
  /** Called when the client has read something. */
  onRead: () => void = () => {};
  /** Transactions that a datagram cannot contain. */
  skipped = 0;
  /** Datagrams that the kernel refused. */
  failed = 0;
  /** Requests that waited, because they came faster than the limit. */
  delayedRequests = 0;
  readonly #options: SubscriptionOptions;
  #reason: EndReason = "client";
  /** Receive times of messages that the kernel has not got yet, oldest first. */
  #arrivals: (bigint | null)[] = [];
  /** Dropped messages that were not reported yet. */
  #gap: StreamGap | null = null;

  constructor(options: SubscriptionOptions) {
    this.#options = options;
    this.dialect = options.dialect;
    this.holder = options.holder;
    this.tier = options.tier;
    this.openedNs = options.clock.nowNs();
    options.call.onClose(() => {
      this.#arrivals = [];
      const { silence, refusal } = options.call;
      if (silence !== "") {
        this.#reason = "silent";
        this.endText = silence;
      } else if (refusal !== "") {
        this.#reason = "refused";
        this.endText = refusal;
      }
      options.onEnd(this.#reason);
    });
    options.call.onHandedOver((messages) => this.#handedOver(messages));
  }

  get waitingBytes(): number {
    return this.#options.call.waitingBytes;
  }

  /** Bytes of a replay that its queue can take now, an integer. The other half remains for what is live. */
  get replayRoom(): number {
    const { queueBytesMax, call } = this.#options;
    return Math.max(0, Math.floor(queueBytesMax() / 2) - call.waitingBytes);
  }

  /** Messages that wait for the connection. */
  get waitingMessages(): number {
    return this.#options.call.waitingMessages;
  }

  /**
   * Queues one framed message. `arrivalNs`: receive time of its shreds; null: it has none, such as a ping,
   * and is left out without a report. `slot`: for the report of a gap.
   */
  send(framed: Uint8Array, arrivalNs: bigint | null, slot: bigint | null = null): void {
    const { call, queueBytesMax, encodeGap } = this.#options;
    if (call.isEnded) return;
    const queueBytes = queueBytesMax();
    // A long group of messages does not make a client late that reads.
    if (call.waitingBytes > queueBytes) this.flush();
    const waiting = call.waitingBytes;
    if (encodeGap && !this.#reportGap(waiting)) {
      if (arrivalNs !== null) this.drop(1, slot);
      return;
    }
    if (waiting > queueBytes) {
      const detail =
        `lagged: ${call.waitingMessages} messages and ${waiting} bytes wait for this client; ` +
        `expected at most ${queueBytes} bytes`;
      this.end("lagged", "RESOURCE_EXHAUSTED", detail);
      return;
    }
    this.#queue(framed, arrivalNs);
    if (arrivalNs !== null) this.matched++;
  }

  /** The relay lost messages of this stream. */
  lost(count: bigint): void {
    if (this.#options.encodeGap) {
      this.drop(Number(count), null);
      return;
    }
    const detail = `lost: the relay was too busy and lost ${count} messages of this stream; subscribe again`;
    this.end("lost", "DATA_LOSS", detail);
  }

  /** Leaves out messages of a client that asked for it; a report follows. `slot`: null: unknown. */
  drop(count: number, slot: bigint | null): void {
    this.dropped += count;
    this.#gap = extended(this.#gap, count, slot);
  }

  /**
   * Gives queued messages to the connection. `mayReport`: also the report of a gap. Returns whether one
   * still waits.
   */
  flush(mayReport = true): boolean {
    const { call } = this.#options;
    if (call.isEnded) return false;
    if (mayReport && this.#gap) this.#reportGap(call.waitingBytes);
    call.flush();
    return this.#gap !== null;
  }

  #handedOver(messages: number): void {
    const { clock, delays } = this.#options;
    const nowNs = clock.nowNs();
    for (const arrivalNs of this.#arrivals.splice(0, messages)) {
      if (arrivalNs === null) continue;
      const delayNs = Number(nowNs - arrivalNs);
      this.delaySumNs += delayNs;
      delays.add(delayNs / 1e9);
    }
    // Perhaps no further message follows that the report of a gap could precede.
    if (this.#gap) this.flush();
    this.onRead();
  }

  /** Returns whether messages may follow. After a gap, half of the queue must be free first. */
  #reportGap(waiting: number): boolean {
    const { queueBytesMax, encodeGap } = this.#options;
    const queueBytes = queueBytesMax();
    if (!this.#gap || !encodeGap) return waiting <= queueBytes;
    if (waiting > queueBytes / 2) return false;
    const framed = encodeGap(this.#gap);
    this.#gap = null;
    this.#queue(framed, null);
    return true;
  }

  #queue(framed: Uint8Array, arrivalNs: bigint | null): void {
    this.#arrivals.push(arrivalNs);
    this.#options.call.send(framed);
    this.sent++;
    this.sentBytes += framed.length;
  }

  end(reason: EndReason, status: GrpcStatus, detail: string): void {
    if (this.#options.call.isEnded) return;
    this.#reason = reason;
    this.endText = detail;
    this.#options.call.end(status, detail, reason);
  }

  /** The stream is about to end for this reason. */
  endsFor(reason: EndReason): void {
    this.#reason = reason;
  }
}
